import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { openDatabase } from '../database/pool.ts'
import { createLogger } from '../telemetry/logger.ts'
import { pooledAddress } from '../testing/database/pooled.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { openQueue, type Queue } from './queue.ts'
import type { QueueDefinition } from './queue-definition.ts'
import { PermanentFailure } from './run-job.ts'

const log = createLogger({ name: 'test', level: 'fatal' })
const queueOf = (name: string): QueueDefinition => ({
  ...{ name, retryLimit: 0, retryDelaySeconds: 1, retryDelayMaxSeconds: 2, expireInSeconds: 60, heartbeatSeconds: 10 },
  hasTenants: true,
})

let database: Awaited<ReturnType<typeof cloneTemplate>>
let opened: ReturnType<typeof openDatabase>
let queue: Queue
beforeAll(async () => {
  database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_listed`, async () => {})
  opened = openDatabase({ ...pooledAddress(database.url), maxPoolSize: 2, applicationName: 'test', log })
  const queues = ['waits', 'runs', 'dies'].map(queueOf)
  queue = await openQueue({
    ...{ url: database.url, schema: 'jobs', applicationName: 'test', queues, log, migrate: true, supervise: false },
  })
})
afterAll(async () => {
  await queue.stop(1_000)
  await opened.close()
  await database.drop()
})

const send = (name: string, data: object, tenant: string) =>
  opened.db.transaction().execute((trx) => queue.send(trx, name, data, { tenant }))

test('tenants of waiting jobs are counted among the first, those with the most jobs first', async () => {
  for (const tenant of ['b', 'a', 'b', 'b']) await send('waits', {}, tenant)
  const tenants = (counted: number, limit: number) => queue.listTenants('waits', { counted, limit })
  expect(await tenants(100, 10)).toEqual([
    { tenant: 'b', jobs: 3 },
    { tenant: 'a', jobs: 1 },
  ])
  expect(await tenants(100, 1)).toEqual([{ tenant: 'b', jobs: 3 }])
  expect((await tenants(2, 10)).reduce((sum, { jobs }) => sum + jobs, 0)).toBe(2)
})

test('running jobs are listed with their data, tenant and begin', async () => {
  const held = Promise.withResolvers<void>()
  await queue.work('runs', { concurrency: 1 }, () => held.promise)
  await send('runs', { id: 'one' }, 'a')
  await expect
    .poll(() => queue.listRunning('runs', 10))
    .toEqual([{ data: { id: 'one' }, tenant: 'a', startedAt: expect.any(Date) }])
  held.resolve()
  await expect.poll(() => queue.listRunning('runs', 10)).toEqual([])
})

test('dead letters are listed page by page with their reason, and each is taken once', async () => {
  await queue.work<{ n: number }>('dies', { concurrency: 1 }, async ({ data }) => {
    throw new PermanentFailure(`not ${data.n}`)
  })
  for (let n = 0; n < 5; n++) await send('dies', { n }, 'a')
  await expect.poll(() => queue.listDead({ after: undefined, limit: 10 })).toHaveLength(5)
  const seen: string[] = []
  for (let after: { at: string; id: string } | undefined; ; ) {
    const page = await queue.listDead({ after, limit: 2 })
    seen.push(...page.map(({ id }) => id))
    after = page.at(-1)
    if (!after) break
  }
  expect(new Set(seen).size).toBe(5)
  const [last] = await queue.listDead({ after: undefined, limit: 1 })
  expect(last).toMatchObject({ queue: 'dies', tenant: 'a', attempts: 1, reason: `not ${last?.data.n}` })
  const take = () => opened.db.transaction().execute((trx) => queue.takeDead(trx, last?.id ?? ''))
  const taken = await Promise.all([take(), take()])
  expect(taken.filter(Boolean)).toEqual([last])
  expect(await queue.listDead({ after: undefined, limit: 10 })).toHaveLength(4)
})
