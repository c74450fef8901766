import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/** Runs a program whose standard output is a pipe that has lost its reader, as behind `| head`. */
export async function runWithoutReader(
  program: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ code: number; stderr: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'without-reader-'))
  const path = join(folder, 'pipe')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDWR)
  const writer = openSync(path, constants.O_WRONLY)
  closeSync(reader)
  const [command = '', ...args] = program
  const { NODE_COMPILE_CACHE } = process.env
  const child = spawn(command, args, {
    env: { NODE_COMPILE_CACHE, ...env },
    cwd: folder,
    stdio: ['ignore', writer, 'pipe'],
  })
  closeSync(writer)
  const said = child.stderr ? text(child.stderr) : ''
  const [stderr, [code]] = await Promise.all([said, once(child, 'exit')])
  rmSync(folder, { recursive: true })
  return { code, stderr }
}
