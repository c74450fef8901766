import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { tools } from '../../test/clips.ts'
import { type RunOptions, runFfmpeg } from './run-ffmpeg.ts'

const cwd = await mkdtemp(join(tmpdir(), 'run-ffmpeg-'))
const limits = { wallSeconds: 10, cpuSeconds: 10, memoryBytes: 2 * 1024 ** 3, fileBytes: 1024 * 1024 }

/** A shell script stands for ffmpeg, so that it does exactly what the rule is about. */
const script = (text: string, options: Partial<RunOptions> = {}) =>
  runFfmpeg('/bin/sh', ['-c', text], { limits, limiters: tools.limiters, cwd, ...options })

/** A zombie has ended; whether its new parent has asked for it is not ours to say. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}

/** The number a script writes into a file, once it is there. */
async function numberIn(file: string): Promise<number> {
  const read = async () => Number(await readFile(join(cwd, file), 'utf8').catch(() => '0'))
  await expect.poll(read).toBeGreaterThan(0)
  return read()
}

test('output, exit code and signal are told apart', async () => {
  expect(await script('echo out; echo err >&2')).toEqual({ state: 'done', stdout: 'out\n', stderr: 'err\n' })
  expect(await script('echo bad >&2; exit 3')).toMatchObject({
    state: 'failed',
    exitCode: 3,
    signal: null,
    stderr: 'bad\n',
  })
  expect(await script('kill -SEGV $$')).toMatchObject({ state: 'failed', exitCode: null, signal: 'SIGSEGV' })
})

test('nothing of our environment, no input and a process group of its own', async () => {
  const outcome = await script('env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= | sort; cat | wc -c; ps -o pid=,pgid= $$')
  const [lang, path, input, ids] = outcome.state === 'done' ? outcome.stdout.trim().split('\n') : []
  expect([lang, path?.split('=')[0], input]).toEqual(['LANG=C', 'PATH', '0'])
  const [pid, group] = ids?.trim().split(/\s+/) ?? []
  expect(group).toBe(pid)
})

test.skipIf(!tools.limiters.nice)('low priority', async () => {
  expect(await script('nice')).toMatchObject({ stdout: '10\n' })
})

test.skipIf(!tools.limiters.prlimit)('memory, file size and open files are limited', async () => {
  expect(await script('ulimit -v; ulimit -n; ulimit -c')).toMatchObject({ stdout: `${2 * 1024 ** 2}\n64\n0\n` })
  const written = await script('head -c 2000000 /dev/zero > large')
  expect(written).toMatchObject({ state: 'failed' })
  expect((await readFile(join(cwd, 'large'))).length).toBe(1024 * 1024)
})

test.skipIf(!tools.limiters.prlimit)('processor time is limited', async () => {
  const outcome = await script('while :; do :; done', { limits: { ...limits, cpuSeconds: 1 } })
  expect(outcome).toMatchObject({ state: 'failed', signal: 'SIGKILL' })
})

test('the wall clock ends a program, and one that does not listen is killed with its children', async () => {
  const started = performance.now()
  const stubborn = `trap '' TERM; sh -c "trap '' TERM; sleep 60" & echo $! > child; wait; sleep 60`
  const outcome = await script(stubborn, { limits: { ...limits, wallSeconds: 0.3 } })
  expect(outcome).toMatchObject({ state: 'timed-out' })
  expect(performance.now() - started).toBeLessThan(4000)
  expect(isRunning(await numberIn('child'))).toBe(false)
})

test('an abort rejects with its reason once the program is gone', async () => {
  const abort = new AbortController()
  const running = script('echo $$ > aborted; exec sleep 60', { signal: abort.signal })
  const pid = await numberIn('aborted')
  expect(isRunning(pid)).toBe(true)
  abort.abort(new Error('the clip was deleted'))
  await expect(running).rejects.toThrow('the clip was deleted')
  expect(isRunning(pid)).toBe(false)
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
  const noLimiters = { nice: null, prlimit: null, setpriv: null }
  const running = runFfmpeg('/nowhere/ffmpeg', [], { limits, limiters: noLimiters, cwd })
  await expect(running).rejects.toMatchObject({ code: 'ENOENT' })
})

test.skipIf(!tools.limiters.setpriv)('a killed worker leaves no program behind', async () => {
  const worker = join(cwd, 'worker.ts')
  const source = `import { runFfmpeg } from '${join(import.meta.dirname, 'run-ffmpeg.ts')}'
    runFfmpeg('/bin/sh', ['-c', 'echo $$ > orphan; exec sleep 60'], ${JSON.stringify({ limits, limiters: tools.limiters, cwd })})`
  await writeFile(worker, source)
  const abort = new AbortController()
  const running = runFfmpeg(process.execPath, [worker], {
    ...{ limits: { ...limits, memoryBytes: 64 * 1024 ** 3 }, limiters: tools.limiters, cwd, signal: abort.signal },
  })
  const pid = await numberIn('orphan')
  abort.abort()
  await expect(running).rejects.toThrow()
  await expect.poll(() => isRunning(pid)).toBe(false)
})
