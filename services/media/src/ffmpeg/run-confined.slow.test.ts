import { spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { machineTools, tools } from '../../test/clips.ts'
import { allowsSandbox, machine } from '../../test/machine.ts'
import { type Limiters, type RunOptions, runConfined } from './run-confined.ts'
import { SANDBOX_PROGRAMS, SANDBOXES, sandboxArgs } from './sandbox.ts'

const cwd = await mkdtemp(join(tmpdir(), 'run-confined-'))
const limits = { wallSeconds: 100, cpuSeconds: 10, memoryBytes: 2 * 1024 ** 3, fileBytes: 1024 * 1024 }

/** A shell script stands for ffmpeg, so that it does exactly what the rule is about. */
const script = (text: string, options: Partial<RunOptions> = {}) =>
  runConfined('/bin/sh', ['-c', text], { limits, limiters: tools.limiters, cwd, ...options })

/** Once a script has got so far as to write this file. */
const isThere = (file: string) => expect.poll(() => readFile(join(cwd, file), 'utf8').catch(() => '')).toMatch(/\d/)

/** A command line that no other process has, of another run neither. */
const sleepFor = (seconds: number) => `sleep ${seconds}.${randomInt(1e9)}`

/** Searches the whole command line, because a sandbox has its own pids. */
const isRunning = (command: string) => spawnSync('pgrep', ['-xf', command]).status === 0

test('output, exit code and signal are reported separately', async () => {
  expect(await script('echo out; echo err >&2')).toEqual({ state: 'done', stdout: 'out\n', stderr: 'err\n' })
  expect(await script('echo bad >&2; exit 3')).toMatchObject({
    state: 'failed',
    exitCode: 3,
    signal: null,
    stderr: 'bad\n',
  })
  for (const crash of ['kill -SEGV $$', 'exit 139']) {
    expect(await script(crash)).toMatchObject({ state: 'failed', exitCode: null, signal: 'SIGSEGV' })
  }
})

test('nothing of our environment and no input', async () => {
  const outcome = await script('env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= | sort; cat | wc -c')
  const [lang, path, input] = outcome.state === 'done' ? outcome.stdout.trim().split('\n') : []
  expect([lang, path?.split('=')[0], input]).toEqual(['LANG=C', 'PATH', '0'])
})

/** Each that works on this machine, not only the best. */
const sandboxes = SANDBOXES.filter(allowsSandbox).map((kind) => ({ kind, path: `/usr/bin/${SANDBOX_PROGRAMS[kind]}` }))

test('all that works on this machine is found, and the best sandbox', () => {
  const { nice, prlimit, setpriv, sandbox } = machineTools.limiters
  expect({ nice: !!nice, prlimit: !!prlimit, setpriv: !!setpriv }).toEqual(machine)
  expect(sandbox?.kind).toBe(sandboxes[0]?.kind)
})

test.each(sandboxes)(
  'in the sandbox of $kind: no network, no view of other processes, no new privileges',
  async (sandbox) => {
    const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const secret = spawn('sleep', ['60'], { env: { SECRET: 'postgres://' }, stdio: 'ignore' })
    const probe = `const { readFileSync } = require('node:fs')
    const look = (pid) => { try { return readFileSync('/proc/' + pid + '/environ', 'latin1') } catch (error) { return '' } }
    console.log([${secret.pid}, ${process.pid}].map(look).join('').includes('=') ? 'seen' : 'unseen')
    require('node:net').connect(${port}, '127.0.0.1')
      .on('connect', () => { console.log('connected'); process.exit() }).on('error', () => console.log('no network'))`
    const look = (used: Limiters) =>
      runConfined(process.execPath, ['-e', probe], {
        ...{ limits: { ...limits, memoryBytes: 64 * 1024 ** 3 }, limiters: used, cwd },
      })
    expect(await look({ ...tools.limiters, sandbox: null })).toMatchObject({ stdout: 'seen\nconnected\n' })
    expect(await look({ ...tools.limiters, sandbox })).toMatchObject({ stdout: 'unseen\nno network\n' })
    if (machine.setpriv) {
      const rights = await script('grep NoNewPrivs /proc/self/status', { limiters: { ...tools.limiters, sandbox } })
      expect(rights).toMatchObject({ stdout: 'NoNewPrivs:\t1\n' })
    }
    secret.kill('SIGKILL')
    server.close()
  },
)

test('the arguments of bwrap: nothing shared, nothing writable but the work directory', () => {
  const bwrap = { kind: 'bwrap', path: '/usr/bin/bwrap' } as const
  const words = sandboxArgs(bwrap, { cwd: '/srv/clip', writable: ['/srv/clip'] }).join(' ')
  expect(words).toContain('--unshare-all --die-with-parent --cap-drop ALL --ro-bind / /')
  expect(words).toContain('--bind /srv/clip /srv/clip --chdir /srv/clip --')
})

test('low priority', { tags: 'nice' }, async () => {
  expect(await script('nice', { limiters: machineTools.limiters })).toMatchObject({ stdout: `${getPriority() + 10}\n` })
})

test('memory, file size and open files are limited', { tags: 'prlimit' }, async () => {
  expect(await script('ulimit -v; ulimit -n; ulimit -c')).toMatchObject({ stdout: `${2 * 1024 ** 2}\n64\n0\n` })
  const written = await script('head -c 2000000 /dev/zero > large')
  expect(written).toMatchObject({ state: 'failed' })
  expect((await readFile(join(cwd, 'large'))).length).toBe(1024 * 1024)
})

test('processor time is limited', { tags: 'prlimit' }, async () => {
  const outcome = await script('while :; do :; done', { limits: { ...limits, cpuSeconds: 1 } })
  expect(outcome).toMatchObject({ state: 'failed', signal: 'SIGKILL' })
})

test('a wall-clock limit ends a program, and one that ignores it is killed with its children', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const [inner, outer] = [sleepFor(601), sleepFor(602)]
  const stubborn = `trap '' TERM; sh -c "trap '' TERM; ${inner}" & wait; ${outer}`
  const running = script(stubborn, { limiters: { ...tools.limiters, wallFactor: 1 } })
  // A poll would move the clock instead of waiting.
  while (!isRunning(inner)) await setImmediate()
  vi.advanceTimersByTime(1_000 * limits.wallSeconds - 1)
  expect(isRunning(inner)).toBe(true)
  vi.advanceTimersByTime(1)
  expect(await running).toMatchObject({ state: 'timed-out' })
  expect([isRunning(inner), isRunning(outer)]).toEqual([false, false])
})

test('an abort rejects with its reason once the program is gone', async () => {
  const abort = new AbortController()
  const sleep = sleepFor(603)
  const running = script(`echo $$ > aborted; exec ${sleep}`, { signal: abort.signal })
  await isThere('aborted')
  await expect.poll(() => isRunning(sleep)).toBe(true)
  abort.abort(new Error('the clip was deleted'))
  await expect(running).rejects.toThrow('the clip was deleted')
  expect(isRunning(sleep)).toBe(false)
})

test('an aborted signal starts nothing', async () => {
  const signal = AbortSignal.abort(new Error('too late'))
  await expect(async () => script('echo started > never', { signal })).rejects.toThrow('too late')
  await expect(readFile(join(cwd, 'never'))).rejects.toThrow()
})

test('a flood of messages keeps its end, a flood of output ends the program', async () => {
  const outcome = await script('head -c 1000000 /dev/zero | tr "\\0" x >&2; echo the reason >&2')
  expect(outcome.state === 'done' && outcome.stderr.length).toBe(16_384)
  expect(outcome.state === 'done' && outcome.stderr.endsWith('the reason\n')).toBe(true)
  expect(await script('yes')).toEqual({ state: 'too-much-output' })
})

test('lines arrive as they are printed', async () => {
  const lines: string[] = []
  await script('printf "a=1\\nb="; sleep 0.1; printf "2\\nc"', { onLine: (line) => lines.push(line) })
  expect(lines).toEqual(['a=1', 'b=2'])
})

test('a program that is not there is an error', async () => {
  const noLimiters = { nice: null, prlimit: null, setpriv: null, sandbox: null }
  const running = runConfined('/nowhere/ffmpeg', [], { limits, limiters: noLimiters, cwd })
  await expect(running).rejects.toMatchObject({ code: 'ENOENT' })
})

test('a killed worker leaves no program behind', { tags: 'setpriv' }, async () => {
  const worker = join(cwd, 'worker.ts')
  const sleep = sleepFor(604)
  const source = `import { runConfined } from '${join(import.meta.dirname, './run-confined.ts')}'
    runConfined('/bin/sh', ['-c', 'echo $$ > orphan; exec ${sleep}'], ${JSON.stringify({ limits, limiters: tools.limiters, cwd })})`
  await writeFile(worker, source)
  const abort = new AbortController()
  const running = runConfined(process.execPath, [worker], {
    ...{ limits: { ...limits, memoryBytes: 64 * 1024 ** 3 }, cwd, signal: abort.signal },
    // Not in a sandbox itself, whose end would be the end of all in it.
    limiters: { ...tools.limiters, sandbox: null },
  })
  await isThere('orphan')
  await expect.poll(() => isRunning(sleep)).toBe(true)
  abort.abort()
  await expect(running).rejects.toThrow()
  await expect.poll(() => isRunning(sleep)).toBe(false)
})
