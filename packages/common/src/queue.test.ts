import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { openDatabase } from './database.ts'
import { createLogger } from './logger.ts'
import { openQueue, PermanentFailure, type Queue, type QueueDefinition } from './queue.ts'
import { cloneTemplate } from './testing/template-database.ts'

const log = createLogger({ name: 'test', level: 'fatal' })
const queueOf = (name: string): QueueDefinition => ({
  name,
  retryLimit: 3,
  retryDelaySeconds: 1,
  retryDelayMaxSeconds: 2,
  expireInSeconds: 60,
  heartbeatSeconds: 10,
})

let database: Awaited<ReturnType<typeof cloneTemplate>>
let queue: Queue
let db: ReturnType<typeof openDatabase>['db']

beforeAll(async () => {
  database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_queue`, async () => {})
  db = openDatabase({ url: database.url, maxPoolSize: 4, applicationName: 'test', log }).db
  queue = await openQueue({
    url: database.url,
    schema: 'jobs',
    applicationName: 'test',
    queues: ['committed', 'retried', 'hopeless', 'held', 'sought', 'backlog'].map(queueOf),
    log,
    migrate: true,
    supervise: true,
  })
})

afterAll(async () => {
  await queue.stop(1_000)
  await db.destroy()
  await database.drop()
})

test('a job exists only if its transaction commits, and starts at once', async () => {
  const seen: string[] = []
  await queue.work<{ id: string }>('committed', { concurrency: 2 }, async ({ data }) => void seen.push(data.id))
  await expect(
    db.transaction().execute(async (trx) => {
      await queue.send(trx, 'committed', { id: 'rolled back' })
      throw new Error('no')
    }),
  ).rejects.toThrow('no')
  const startedAt = performance.now()
  await db.transaction().execute((trx) => queue.send(trx, 'committed', { id: 'kept' }))
  await expect.poll(() => seen, { timeout: 5_000, interval: 5 }).toEqual(['kept'])
  // Polling alone would take up to two seconds; notified workers start in milliseconds.
  expect(performance.now() - startedAt).toBeLessThan(1_500)
})

test('a failing job is tried again', async () => {
  const tries: number[] = []
  await queue.work('retried', { concurrency: 1 }, async ({ retryCount }) => {
    tries.push(retryCount)
    if (retryCount === 0) throw new Error('not yet')
  })
  await db.transaction().execute((trx) => queue.send(trx, 'retried', {}))
  await expect.poll(() => tries, { timeout: 10_000 }).toEqual([0, 1])
})

test('a hopeless job goes to the dead letters after one try', async () => {
  let tries = 0
  await queue.work('hopeless', { concurrency: 1 }, async () => {
    tries++
    throw new PermanentFailure('never')
  })
  await db.transaction().execute((trx) => queue.send(trx, 'hopeless', { id: randomBytes(4).toString('hex') }))
  await expect.poll(() => queue.depth('hopeless.dead'), { timeout: 10_000 }).toBe(1)
  expect(tries).toBe(1)
})

test('depth counts what waits and runs', async () => {
  for (let i = 0; i < 3; i++) await db.transaction().execute((trx) => queue.send(trx, 'held', {}))
  expect(await queue.depth('held')).toBe(3)
})

test('a job is found by what is in its data, as long as it is not done', async () => {
  const has = (name: string, data: object) => db.transaction().execute((trx) => queue.has(trx, name, data))
  await db.transaction().execute((trx) => queue.send(trx, 'sought', { id: 'one', more: 1 }))
  expect(await has('sought', { id: 'one' })).toBe(true)
  expect(await has('sought', { id: 'two' })).toBe(false)
  expect(await has('held', { id: 'one' })).toBe(false)
  await queue.work('sought', { concurrency: 1 }, async () => {})
  await expect.poll(() => has('sought', { id: 'one' }), { timeout: 10_000 }).toBe(false)
})

test('a backlog is worked off without pauses', async () => {
  await db.transaction().execute(async (trx) => {
    for (let i = 0; i < 20; i++) await queue.send(trx, 'backlog', { i })
  })
  let done = 0
  await queue.work('backlog', { concurrency: 2 }, async () => void done++)
  // Workers that slept between two jobs, up to 5 s each, would need most of a minute.
  await expect.poll(() => done, { timeout: 10_000 }).toBe(20)
})
