import { execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

/**
 * Runs a program whose standard output is a pipe that has lost its reader, as behind `| head`. Throws if it cannot
 * start.
 */
export async function runWithoutReader(
  program: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ code: number; stderr: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'without-reader-'))
  try {
    const child = startInto(openUnread(join(folder, 'pipe')), program, { env, cwd: folder })
    const said = child.stderr ? text(child.stderr) : ''
    const [stderr, [code]] = await Promise.all([said, once(child, 'exit')])
    return { code, stderr }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Opens a new pipe for writing. */
function openUnread(path: string): number {
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDWR)
  const writer = openSync(path, constants.O_WRONLY)
  closeSync(reader)
  return writer
}

/** Closes this process's end of the output, also when the program cannot start. */
function startInto(output: number, [command = '', ...args]: readonly string[], options: SpawnOptions) {
  try {
    return spawn(command, args, { ...options, stdio: ['ignore', output, 'pipe'] })
  } finally {
    closeSync(output)
  }
}
