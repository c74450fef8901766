import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

let directory: string
const started: ChildProcess[] = []
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'cluster-'))
})
afterEach(async () => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
  await rm(directory, { recursive: true, force: true })
})

/** Starts a service that follows the file `plan` and records its pid once it serves. */
async function run(plan: string, count: number) {
  await writeFile(join(directory, 'plan'), plan)
  const program = join(directory, 'service.ts')
  await writeFile(
    program,
    `import { appendFileSync, readFileSync } from 'node:fs'
    import cluster from 'node:cluster'
    import { createLogger } from '${join(import.meta.dirname, '../telemetry/logger.ts')}'
    import { runProcesses } from '${join(import.meta.dirname, 'run-service.ts')}'
    const note = (file) => appendFileSync('${directory}/' + file, process.pid + '\\n')
    await runProcesses(${count}, createLogger({ name: 'test', level: 'fatal' }), async () => {
      if (readFileSync('${directory}/plan', 'utf8') === 'fail') {
        note('failed')
        process.exit(7)
      }
      setInterval(() => {}, 1000)
      process.once('SIGTERM', () => { note('stopped'); process.exit(0) })
      return true
    }, 300)
    // Recorded once the primary process knows it too.
    if (${count} === 1 || cluster.isWorker) note('serving')`,
  )
  const child = spawn(process.execPath, [program], { stdio: ['ignore', 'ignore', 'inherit'] })
  started.push(child)
  return { child, ended: once(child, 'exit').then(([code, signal]) => code ?? signal) }
}

const pidsIn = async (file: string) =>
  (await readFile(join(directory, file), 'utf8').catch(() => '')).split('\n').filter(Boolean).map(Number)

const expectPids = (file: string, count: number) =>
  expect.poll(async () => (await pidsIn(file)).length).toBeGreaterThanOrEqual(count)

test('one process is the service itself', async () => {
  const { child } = await run('serve', 1)
  await expectPids('serving', 1)
  expect(await pidsIn('serving')).toEqual([child.pid])
})

test('a signal to the primary process stops all, and it exits last with 0', async () => {
  const { child, ended } = await run('serve', 2)
  await expectPids('serving', 2)
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
  expect((await pidsIn('stopped')).toSorted()).toEqual((await pidsIn('serving')).toSorted())
})

test('a suspended process does not keep the others from ending', async () => {
  const { child, ended } = await run('serve', 2)
  await expectPids('serving', 2)
  const [suspended] = (await pidsIn('serving')) as [number, number]
  process.kill(suspended, 'SIGSTOP')
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
  expect(() => process.kill(suspended, 0)).toThrow('ESRCH')
})

test('a service that cannot start exits with its code instead of retrying forever', async () => {
  const { ended } = await run('fail', 2)
  expect(await ended).toBe(7)
})

test('a dead process is replaced, and the others serve while its replacements fail', async () => {
  const { child } = await run('serve', 2)
  await expectPids('serving', 2)
  const [victim, survivor] = (await pidsIn('serving')) as [number, number]
  await writeFile(join(directory, 'plan'), 'fail')
  process.kill(victim, 'SIGKILL')
  await expectPids('failed', 2)
  expect(await pidsIn('stopped')).toEqual([])
  expect([process.kill(survivor, 0), child.exitCode]).toEqual([true, null])
  await writeFile(join(directory, 'plan'), 'serve')
  await expectPids('serving', 3)
})
