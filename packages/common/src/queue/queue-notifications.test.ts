import pg from 'pg'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import type { AnyTransaction } from '../database/after-commit.ts'
import { openDatabase } from '../database/pool.ts'
import { NOTIFY_MODES, type NotifyMode } from '../database/settings.ts'
import { createLogger } from '../telemetry/logger.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { channelOf } from './pg-boss-tables.ts'
import { openQueue, type Queue } from './queue.ts'

const log = createLogger({ name: 'test', level: 'fatal' })
const limits = {
  ...{ retryLimit: 3, retryDelaySeconds: 1, retryDelayMaxSeconds: 2 },
  ...{ expireInSeconds: 60, heartbeatSeconds: 10 },
}
const names = ['lone', 'undone', 'advanced', 'upgraded', 'last', ...NOTIFY_MODES]
const queues = names.map((name) => ({ name, ...limits, ...(name === 'advanced' && { hasTenants: true as const }) }))

/** Poll interval longer than a test, so that only notifications start jobs. */
const NEVER = 3_600

let database: Awaited<ReturnType<typeof cloneTemplate>>
let opened: ReturnType<typeof openDatabase>

const open = (notify: NotifyMode, migrate = false): Promise<Queue> =>
  openQueue({
    ...{ url: database.url, schema: 'jobs', applicationName: notify, log, queues, notify },
    ...{ migrate, supervise: false },
  })

beforeAll(async () => {
  database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_notified`, async () => {})
  opened = openDatabase({ url: database.url, maxPoolSize: 2, applicationName: 'test', log })
  await (await open('batched', true)).stop(0)
})

afterAll(async () => {
  await opened.close()
  await database.drop()
})

const send = (queue: Queue, name: string, how?: { afterSeconds?: number }) =>
  opened.db.transaction().execute((trx) => queue.send(trx, name, {}, how))

test('a job that advances to a tenant with a free slot begins without a poll', async () => {
  const [queue, quiet, held] = [await open('batched'), await open('none'), Promise.withResolvers<void>()]
  const begun: string[] = []
  const slots = { concurrency: 2, maxPerTenant: 1, pollSeconds: NEVER }
  await queue.work<{ n: string }>('advanced', slots, async ({ data }) => {
    begun.push(data.n)
    if (data.n === 'first') await held.promise
  })
  const inTrx = (work: (trx: AnyTransaction) => Promise<void>) => opened.db.transaction().execute(work)
  await inTrx((trx) => queue.send(trx, 'advanced', { n: 'first' }, { tenant: 'one' }))
  await expect.poll(() => begun).toEqual(['first'])
  await inTrx((trx) => quiet.send(trx, 'advanced', { n: 'second' }, { tenant: 'one' }))
  for (const tenant of ['one', 'two']) {
    await inTrx((trx) => queue.advance(trx, 'advanced', { n: 'second' }, { tenant }))
  }
  await expect.poll(() => begun).toEqual(['first', 'second'])
  held.resolve()
  for (const each of [quiet, queue]) await each.stop(1_000)
})

/** Collects the names of queues that the channel carries. */
async function listen(): Promise<string[]> {
  const heard: string[] = []
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  client.on('notification', ({ payload = '' }) => heard.push(payload))
  await client.query(`listen ${channelOf('jobs')}`)
  onTestFinished(() => client.end())
  return heard
}

test.each(['batched', 'each'] as const)('a lone job begins without a poll in another process (%s)', async (mode) => {
  const [sender, worker] = [await open(mode), await open(mode)]
  const begun = Promise.withResolvers<void>()
  await worker.work('lone', { concurrency: 1, pollSeconds: NEVER }, async () => begun.resolve())
  await expect.poll(() => sender.depth('lone')).toBe(0)
  await send(sender, 'lone')
  await begun.promise
  await Promise.all([sender.stop(1_000), worker.stop(1_000)])
})

test('a job of a transaction that rolls back, or that begins later, wakes no worker', async () => {
  const heard = await listen()
  const queue = await open('batched')
  const undone = opened.db.transaction().execute(async (trx) => {
    await queue.send(trx, 'undone', {})
    throw new Error('rolled back')
  })
  await expect(undone).rejects.toThrow('rolled back')
  await send(queue, 'undone', { afterSeconds: 60 })
  await send(queue, 'last')
  await expect.poll(() => heard).toEqual(['last'])
  await queue.stop(0)
})

test('a process that stops has notified of all its jobs', async () => {
  const heard = await listen()
  const queue = await open('batched')
  await send(queue, 'lone')
  await send(queue, 'last')
  await queue.stop(0)
  await expect.poll(() => new Set(heard)).toEqual(new Set(['lone', 'last']))
})

test('without notifications a process neither notifies nor listens, and its workers poll', async () => {
  const heard = await listen()
  const [silent, loud] = [await open('none'), await open('each')]
  await send(silent, 'none')
  await send(loud, 'each')
  await expect.poll(() => heard).toEqual(['each'])
  const { rows } = await opened.pool.query(
    `select application_name as name from pg_stat_activity where datname = current_database() and query ~ '^listen'`,
  )
  expect(rows.map(({ name }) => name)).not.toContain('none queue')
  const begun = Promise.withResolvers<void>()
  await silent.work('none', { concurrency: 1 }, async () => begun.resolve())
  await begun.promise
  await Promise.all([silent.stop(1_000), loud.stop(1_000)])
})

test('a queue of a version that notified in the transaction is changed, and works until then', async () => {
  await opened.pool.query(`update jobs.queue set notify = true where name = 'upgraded'`)
  const queue = await open('batched')
  const begun = Promise.withResolvers<void>()
  await queue.work('upgraded', { concurrency: 1, pollSeconds: NEVER }, async () => begun.resolve())
  await send(queue, 'upgraded')
  await begun.promise
  await queue.stop(1_000)
  await (await open('batched', true)).stop(0)
  const { rows } = await opened.pool.query(`select notify from jobs.queue where name = 'upgraded'`)
  expect(rows).toEqual([{ notify: false }])
})

test('an announcement reaches listeners of its topic in all processes, unless notifications are off', async () => {
  const queues = await Promise.all(NOTIFY_MODES.map((mode) => open(mode)))
  const heard: string[] = []
  const forget = queues.flatMap((queue, n) =>
    ['news', 'other news'].map((topic) =>
      queue.onAnnouncement(topic, () => heard.push(`${topic} at ${NOTIFY_MODES[n]}`)),
    ),
  )
  for (const queue of queues) {
    const undone = opened.db.transaction().execute(async (trx) => {
      await queue.announce(trx, 'other news')
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    await opened.db.transaction().execute((trx) => queue.announce(trx, 'news'))
  }
  await expect
    .poll(() => heard.toSorted())
    .toEqual(['batched', 'batched', 'each', 'each'].map((mode) => `news at ${mode}`))
  for (const end of forget) end()
  for (const queue of queues) await queue.stop(1_000)
})
