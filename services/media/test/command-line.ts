import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'
import { runCommand } from '@services/common/process/command-line'
import { programOf } from '@services/common/testing/run/program'
import { vi } from 'vitest'
import { commands } from '../src/commands.ts'

interface Outcome {
  code: number
  stdout: string
  stderr: string
}

/** The real command line in a process of its own. */
export async function media(args: string[], settings: Record<string, string>): Promise<Outcome> {
  const cli = programOf('media', 'cli')
  const options = { env: { ...process.env, ...settings }, cwd: tmpdir() }
  return promisify(execFile)(process.execPath, [cli, ...args], options).then(
    (result) => ({ code: 0, ...result }),
    ({ code, stdout, stderr }: Outcome) => ({ code, stdout, stderr }),
  )
}

/**
 * The same in this process, many times as fast. One at a time, because environment and streams are those of the
 * process.
 */
export async function mediaHere(args: string[], settings: Record<string, string>): Promise<Outcome> {
  for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value)
  const written = { stdout: '', stderr: '' }
  const capture = (name: 'stdout' | 'stderr') =>
    vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
      written[name] += chunk
      return true
    })
  // Code after an exit would not run in a process of its own.
  let left: Outcome | undefined
  const exit = vi.spyOn(process, 'exit').mockImplementation((code) => {
    left ??= { code: Number(code), ...written }
    throw new Error('the command left the process')
  })
  const stubs = [capture('stdout'), capture('stderr'), exit]
  try {
    await runCommand('media', commands, args).catch((error) => {
      if (!left) throw error
    })
    return left ?? { code: Number(process.exitCode ?? 0), ...written }
  } finally {
    process.exitCode = undefined
    vi.unstubAllEnvs()
    for (const stub of stubs) stub.mockRestore()
  }
}
