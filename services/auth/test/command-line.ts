import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { runCommand } from '@services/common/process/command-line'
import { programOf } from '@services/common/testing/run/program'
import { vi } from 'vitest'
import { commands } from '../src/commands.ts'
import { processEnvironment } from './process-environment.ts'

const cli = programOf('auth', 'cli')

/** The real command line in a process of its own. */
export async function auth(
  args: string[],
  settings: Record<string, string | undefined> = {},
  input: string | Buffer = '',
) {
  // Every run warns of an unknown setting: the warning must not get among the result.
  const env = processEnvironment({ AUTH_UNKNOWN: 'x', ...settings })
  const child = spawn(process.execPath, [cli, ...args], { cwd: tmpdir(), env })
  // A command that needs no input is gone before it was written.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code, stdout, stderr }
}

/**
 * The same in this process, many times as fast: for all that is not about the process itself. One at a time, because
 * environment and streams are those of the process and the logger writes past the captured ones.
 */
export async function authHere(args: string[], settings: Record<string, string> = {}, input: string | Buffer = '') {
  for (const [name, value] of Object.entries(processEnvironment({ AUTH_LOG_LEVEL: 'fatal', ...settings })))
    vi.stubEnv(name, value)
  const written = { stdout: '', stderr: '' }
  let hasLeft = false
  const capture = (name: 'stdout' | 'stderr') =>
    vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
      if (!hasLeft) written[name] += chunk
      return true
    })
  const stdin = Readable.from([Buffer.from(input)]) as unknown as typeof process.stdin
  const leaving = new Error('the command left the process')
  const stubs = [
    capture('stdout'),
    capture('stderr'),
    vi.spyOn(process, 'stdin', 'get').mockReturnValue(stdin),
    vi.spyOn(process, 'exit').mockImplementation((code) => {
      if (!hasLeft) process.exitCode = code
      hasLeft = true
      throw leaving
    }),
  ]
  try {
    await runCommand('auth', commands, args).catch((error) => {
      if (error !== leaving) throw error
    })
    return { code: process.exitCode ?? 0, ...written }
  } finally {
    process.exitCode = undefined
    vi.unstubAllEnvs()
    for (const stub of stubs) stub.mockRestore()
  }
}
