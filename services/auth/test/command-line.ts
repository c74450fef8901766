import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { runCommand } from '@services/common/cli'
import { vi } from 'vitest'
import { commands } from '../src/commands.ts'
import { processEnvironment } from './process-environment.ts'

const cli = fileURLToPath(new URL('../src/cli.ts', import.meta.url))

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

/** The same in this process, a hundred times as fast: for what needs neither input nor anything that must be closed. */
export async function authHere(args: string[], settings: Record<string, string> = {}) {
  for (const [name, value] of Object.entries(processEnvironment(settings))) vi.stubEnv(name, value)
  const written = { stdout: '', stderr: '' }
  const capture = (name: 'stdout' | 'stderr') =>
    vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
      written[name] += chunk
      return true
    })
  const captures = [capture('stdout'), capture('stderr')]
  try {
    await runCommand('auth', commands, args)
    return { code: process.exitCode ?? 0, ...written }
  } finally {
    process.exitCode = undefined
    vi.unstubAllEnvs()
    for (const each of captures) each.mockRestore()
  }
}
