import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { PATIENCE_MS } from '../../packages/common/src/testing/patience.ts'
import { blocksOf, readGuide } from './guide.ts'

export interface Ran {
  code: number | null
  stdout: string
  stderr: string
}

export interface Started {
  /** Output so far. */
  output(): string
  /** Waits for a match in the output and returns its first group. */
  says(pattern: RegExp): Promise<string>
  stop(): Promise<void>
}

export interface Shell {
  folder: string
  /** Runs a block to its end; its exports stay set for the next one. */
  run(block: string): Promise<Ran>
  /** Starts a block that serves until it is stopped. */
  start(block: string): Started
  write(file: string, content: string): Promise<void>
  close(): Promise<void>
}

/** Longest stop; a service may take 25 s. */
const STOP_PATIENCE_MS = 30_000

/** `auth` and `media`, as the index of the guides defines them. */
const SHORT_NAMES = blocksOf(readGuide('README.md')).find(({ language }) => language === 'sh')?.text ?? ''

/** Environment of a terminal, without other variables of the test run. */
const terminal = () => ({
  PATH: [join(import.meta.dirname, 'bin'), dirname(process.execPath), process.env.PATH].join(delimiter),
  HOME: process.env.HOME,
  TMPDIR: tmpdir(),
  NODE_COMPILE_CACHE: join(import.meta.dirname, '../../node_modules/.cache/node'),
})

/** Opens a terminal in an empty folder, in which the blocks of one guide run one after the other. */
export async function openShell(settings: Record<string, string> = {}): Promise<Shell> {
  const folder = await mkdtemp(join(tmpdir(), 'guide-'))
  const state = join(folder, '.exported')
  const env = { ...terminal(), ...settings }
  const started: Started[] = []
  // `set -a` keeps the assignments of a block for the next one, as in a terminal.
  const opening = `[ -f '${state}' ] && . '${state}'\nset -a\n${SHORT_NAMES}`
  await writeFile(state, '')
  return {
    folder,
    async run(block) {
      const script = `${opening}\nset -e\n${block}\nexport -p > '${state}'`
      const child = spawn('sh', ['-c', script], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
      const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
      return { code, stdout, stderr }
    },
    start(block) {
      // A separate process group, so that a signal reaches the shell's children.
      const options: SpawnOptions = { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] }
      const one = follow(spawn('sh', ['-c', `${opening}\n${block}`], options))
      started.push(one)
      return one
    },
    async write(file, content) {
      await mkdir(dirname(join(folder, file)), { recursive: true })
      await writeFile(join(folder, file), content)
    },
    async close() {
      await Promise.all(started.map((one) => one.stop()))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function follow(child: ChildProcess): Started {
  let output = ''
  let notify = () => {}
  const ended = once(child, 'close').then(() => notify())
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      output += chunk
      notify()
    })
  }
  return {
    output: () => output,
    async says(pattern) {
      const deadline = Date.now() + PATIENCE_MS
      for (let found = pattern.exec(output); ; found = pattern.exec(output)) {
        if (found) return found[1] ?? found[0]
        if (child.exitCode !== null || Date.now() > deadline) throw new Error(`it never said ${pattern}:\n${output}`)
        const { promise, resolve } = Promise.withResolvers<void>()
        notify = resolve
        const timer = setTimeout(resolve, 1_000)
        await promise
        clearTimeout(timer)
      }
    },
    async stop() {
      if (child.exitCode === null && child.signalCode === null) signalGroup(child, 'SIGTERM')
      const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), STOP_PATIENCE_MS)
      await ended
      clearTimeout(timer)
    },
  }
}

/** Signals the shell and its children: a signal to the shell alone would leave the service running. */
function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
