import { randomBytes, randomUUID } from 'node:crypto'
import type { Transaction } from 'kysely'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { openDatabase } from '../database/pool.ts'
import { createLogger } from '../telemetry/logger.ts'
import { pooledAddress } from '../testing/database/pooled.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { startWay } from '../testing/database/way-to-server.ts'
import type { Members } from './pg-boss-tables.ts'
import { openQueue, type Queue } from './queue.ts'
import type { QueueDefinition } from './queue-definition.ts'
import { PermanentFailure } from './run-job.ts'

const log = createLogger({ name: 'test', level: 'fatal' })
const queueOf = (name: string): QueueDefinition => ({
  name,
  retryLimit: 3,
  retryDelaySeconds: 1,
  retryDelayMaxSeconds: 2,
  expireInSeconds: 60,
  heartbeatSeconds: 10,
})

/** Poll interval longer than a test, so that only notifications start jobs. */
const NEVER = 3_600

let database: Awaited<ReturnType<typeof cloneTemplate>>
let queue: Queue
let db: ReturnType<typeof openDatabase>['db']
let pool: ReturnType<typeof openDatabase>['pool']

beforeAll(async () => {
  database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_queue`, async () => {})
  ;({ db, pool } = openDatabase({ ...pooledAddress(database.url), maxPoolSize: 4, applicationName: 'test', log }))
  queue = await openQueue({
    url: database.url,
    schema: 'jobs',
    applicationName: 'test',
    queues: `committed retried hopeless held parallel sought backlog shared taken told advanced replaced
       overtaken weighted awaited idle reserved silent notified regained finished`
      .split(/\s+/)
      .map(queueOf),
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
  const how = { concurrency: 2, pollSeconds: NEVER }
  await queue.work<{ id: string }>('committed', how, async ({ data }) => void seen.push(data.id))
  await expect(
    db.transaction().execute(async (trx) => {
      await queue.send(trx, 'committed', { id: 'rolled back' })
      throw new Error('no')
    }),
  ).rejects.toThrow('no')
  await db.transaction().execute((trx) => queue.send(trx, 'committed', { id: 'kept' }))
  await expect.poll(() => seen).toEqual(['kept'])
})

test('a failed job is retried', async () => {
  const tries: number[] = []
  await queue.work('retried', { concurrency: 1, pollSeconds: 1 }, async ({ retryCount }) => {
    tries.push(retryCount)
    if (retryCount === 0) throw new Error('not yet')
  })
  await db.transaction().execute((trx) => queue.send(trx, 'retried', {}))
  await expect.poll(() => tries).toEqual([0, 1])
})

test('a permanent failure goes to the dead-letter queue after one attempt', async () => {
  let tries = 0
  await queue.work('hopeless', { concurrency: 1 }, async () => {
    tries++
    throw new PermanentFailure('never')
  })
  await db.transaction().execute((trx) => queue.send(trx, 'hopeless', { id: randomBytes(4).toString('hex') }))
  await expect.poll(() => queue.depth('hopeless.dead')).toBe(1)
  expect(tries).toBe(1)
})

test('depth counts waiting and running jobs', async () => {
  for (let i = 0; i < 3; i++) await db.transaction().execute((trx) => queue.send(trx, 'held', {}))
  expect(await queue.depth('held')).toBe(3)
})

test('figures distinguish waiting, scheduled, retrying and dead jobs', async () => {
  const told = async () => (await queue.figures()).find((figures) => figures.queue === 'told')
  const none = { queue: 'told', waiting: 0, scheduled: 0, running: 0, retrying: 0, dead: 0 }
  expect(await told()).toEqual({ ...none, oldestWaitingSeconds: 0, oldestRetryingSeconds: 0 })
  await db.transaction().execute(async (trx) => {
    await queue.send(trx, 'told', { how: 'later' }, { afterSeconds: 3_600 })
    await queue.send(trx, 'told', { how: 'fail' })
    await queue.send(trx, 'told', { how: 'never' })
  })
  expect(await told()).toMatchObject({ ...none, waiting: 2, scheduled: 1, oldestRetryingSeconds: 0 })
  expect((await told())?.oldestWaitingSeconds).toBeGreaterThan(0)
  await queue.work<{ how: string }>('told', { concurrency: 1 }, async ({ data: { how } }) => {
    throw how === 'never' ? new PermanentFailure('never') : new Error('not yet')
  })
  await expect.poll(told).toMatchObject({
    ...{ ...none, scheduled: 1, retrying: 1, dead: 1, oldestWaitingSeconds: 0 },
    oldestRetryingSeconds: expect.any(Number),
  })
})

test('an unfinished job is found by members of its data', async () => {
  const has = (name: string, data: Members) => db.transaction().execute((trx) => queue.has(trx, name, data))
  await db.transaction().execute((trx) => queue.send(trx, 'sought', { id: 'one', more: 1 }))
  expect(await has('sought', { id: 'one' })).toBe(true)
  expect(await has('sought', { id: 'two' })).toBe(false)
  expect(await has('held', { id: 'one' })).toBe(false)
  await queue.work('sought', { concurrency: 1 }, async () => {})
  await expect.poll(() => has('sought', { id: 'one' })).toBe(false)
})

test('a backlog is processed without pauses', async () => {
  await db.transaction().execute(async (trx) => {
    for (let i = 0; i < 20; i++) await queue.send(trx, 'backlog', { i })
  })
  let done = 0
  await queue.work('backlog', { concurrency: 2, pollSeconds: NEVER }, async () => void done++)
  await expect.poll(() => done).toBe(20)
})

test('tenants take turns however many jobs each has, and the one with most is served too', async () => {
  const send = (...tenants: string[]) =>
    db.transaction().execute(async (trx) => {
      for (const tenant of tenants) await queue.send(trx, 'shared', { tenant }, { tenant })
    })
  await send(...Array(8).fill('many'))
  await send('few', 'few')
  expect([await queue.depth('shared'), await queue.depth('shared', 'few')]).toEqual([10, 2])
  const begun: string[] = []
  await queue.work<{ tenant: string }>('shared', { concurrency: 1 }, async ({ data: { tenant } }) => {
    begun.push(tenant)
    if (begun.length === 4) await send('late')
    // This tenant always has exactly one job.
    if (tenant === 'late' && begun.length < 9) await send('late')
  })
  await expect.poll(() => begun.length).toBe(13)
  expect(begun).toEqual([
    ...['many', 'few', 'many', 'few', 'late', 'many', 'late', 'many', 'late', 'many', 'many', 'many', 'many'],
  ])
})

/** A worker with one slot, in which each job runs until `next()`; `begun` has the names of all so far. */
async function workByHand(name: string) {
  const begun: string[] = []
  let end = () => {}
  await queue.work<{ job: string }>(name, { concurrency: 1 }, async ({ data: { job } }) => {
    await new Promise<void>((resolve) => {
      end = resolve
      begun.push(job)
    })
  })
  const send = (job: string, tenant: string, weight?: number) =>
    db.transaction().execute((trx) => queue.send(trx, name, { job }, { tenant, ...(weight && { weight }) }))
  const next = async () => {
    const count = begun.length
    end()
    await expect.poll(() => begun.length).toBe(count + 1)
  }
  onTestFinished(() => end())
  return { begun, send, next }
}

test('a waiting job begins although others send one after the other without end', async () => {
  const { begun, send, next } = await workByHand('overtaken')
  await send('first', 'many')
  await expect.poll(() => begun).toEqual(['first'])
  await send('second', 'many')
  for (let n = 0; n < 8 && !begun.includes('second'); n++) {
    // Each has finished its last job when it sends the next.
    await send(`other ${n}`, n % 2 === 0 ? 'even' : 'odd')
    await next()
  }
  expect(begun).toEqual(['first', 'other 0', 'other 1', 'second'])
})

test('a costly job waits for as many usual ones of others as it costs, and the next of its tenant for it', async () => {
  const { begun, send, next } = await workByHand('weighted')
  await send('running', 'busy')
  await expect.poll(() => begun).toEqual(['running'])
  await send('costly', 'one', 3)
  await send('after it', 'one')
  for (let n = 1; n <= 6; n++) await send(`usual ${n}`, 'two')
  await send('late', 'three')
  for (let n = 0; n < 9; n++) await next()
  expect(begun).toEqual([
    ...['running', 'usual 1', 'late', 'usual 2', 'costly', 'usual 3', 'after it', 'usual 4', 'usual 5', 'usual 6'],
  ])
})

test('a costly job begins although others send usual ones one after the other without end', async () => {
  const { begun, send, next } = await workByHand('awaited')
  await send('first', 'many')
  await expect.poll(() => begun).toEqual(['first'])
  await send('costly', 'one', 2)
  for (let n = 0; n < 8 && !begun.includes('costly'); n++) {
    await send(`other ${n}`, n % 2 === 0 ? 'even' : 'odd')
    await next()
  }
  expect(begun).toEqual(['first', 'other 0', 'other 1', 'other 2', 'costly'])
})

test('on an idle queue a costly job begins at once', async () => {
  const { begun, send } = await workByHand('idle')
  await send('costly', 'one', 60)
  await expect.poll(() => begun).toEqual(['costly'])
})

test('concurrent jobs of one tenant get different turns', async () => {
  const send = () => db.transaction().execute((trx) => queue.send(trx, 'taken', {}, { tenant: 'one' }))
  await Promise.all([send(), send(), send()])
  const { rows } = await pool.query(`select -priority as turn from jobs.job where name = 'taken' order by turn`)
  expect(rows).toEqual([{ turn: 0 }, { turn: 3 }, { turn: 6 }])
})

test('a tenant does not wait for the transaction of another', async () => {
  const order: string[] = []
  await db.transaction().execute(async (open) => {
    await queue.send(open, 'parallel', {}, { tenant: 'one' })
    await db.transaction().execute((trx) => queue.send(trx, 'parallel', {}, { tenant: 'two' }))
    order.push('two')
  })
  order.push('one')
  expect(order).toEqual(['two', 'one'])
})

test('a waiting job advances to the turn of another tenant, belongs to it, and never moves back', async () => {
  const inTrx = (work: (trx: Transaction<unknown>) => Promise<void>) => db.transaction().execute(work)
  for (let n = 0; n < 4; n++) await inTrx((trx) => queue.send(trx, 'advanced', { n }, { tenant: 'one' }))
  const turns = async () => {
    const sql = `select (data ->> 'n')::int as n, group_id as tenant, -priority as turn from jobs.job where name = 'advanced' order by n`
    return (await pool.query(sql)).rows.map(({ n, tenant, turn }) => [n, tenant, turn])
  }
  await inTrx((trx) => queue.advance(trx, 'advanced', { n: '3' }, { tenant: 'two' }))
  await inTrx((trx) => queue.advance(trx, 'advanced', { n: '2' }, { tenant: 'two' }))
  await inTrx((trx) => queue.advance(trx, 'advanced', { n: '0' }, { tenant: 'two' }))
  const advanced = [
    [0, 'one', 0],
    [1, 'one', 3],
    [2, 'two', 4],
    [3, 'two', 1],
  ]
  expect(await turns()).toEqual(advanced)
  // Running jobs do not change.
  await pool.query(`update jobs.job set state = 'active' where name = 'advanced'`)
  await inTrx((trx) => queue.advance(trx, 'advanced', { n: '1' }, { tenant: 'three' }))
  expect(await turns()).toEqual(advanced)
})

test('a job in place of another has its tenant and turn', async () => {
  await db.transaction().execute(async (trx) => {
    for (let n = 0; n < 2; n++) await queue.send(trx, 'replaced', { n }, { tenant: 'two' })
  })
  const { rows } = await pool.query(
    `update jobs.job set state = 'active' where name = 'replaced' and data @> '{"n":1}' returning id`,
  )
  await db.transaction().execute(async (trx) => {
    await queue.send(trx, 'replaced', { n: 9 }, { tenant: 'other', inPlaceOf: rows[0].id, afterSeconds: 60 })
    // The other job is gone: the next turn of its tenant.
    await queue.send(trx, 'replaced', { n: 10 }, { tenant: 'other', inPlaceOf: randomUUID() })
  })
  const sent = await pool.query(
    `select group_id, priority from jobs.job where name = 'replaced' and data ->> 'n' in ('9', '10')
      order by created_on, group_id desc`,
  )
  expect(sent.rows).toEqual([
    { group_id: 'two', priority: -3 },
    { group_id: 'other', priority: -1 },
  ])
})

test('a tenant with more jobs than slots leaves one to the others', async () => {
  const send = (tenant: string, jobs: number) =>
    db.transaction().execute(async (trx) => {
      for (let n = 0; n < jobs; n++) await queue.send(trx, 'reserved', { tenant }, { tenant })
    })
  const held: (() => void)[] = []
  const done: string[] = []
  await send('many', 6)
  await queue.work<{ tenant: string }>(
    'reserved',
    { concurrency: 3, maxPerTenant: 2 },
    async ({ data: { tenant } }) => {
      if (tenant === 'many') await new Promise<void>((resolve) => held.push(resolve))
      done.push(tenant)
    },
  )
  await expect.poll(() => held.length).toBe(2)
  for (let n = 1; n <= 3; n++) {
    await send('few', 1)
    await expect.poll(() => done).toEqual(Array(n).fill('few'))
  }
  expect(held).toHaveLength(2)
  for (let n = 0; n < 6; n++) {
    await expect.poll(() => held.length).toBeGreaterThan(n)
    held[n]?.()
  }
  await expect.poll(() => done.length).toBe(9)
})

test('a queue whose connections all go silent reconnects and is notified of jobs again', async () => {
  const way = await startWay(database.url)
  onTestFinished(way.close)
  const names = { schema: 'jobs', applicationName: 'test', queues: [] }
  const worker = await openQueue({ url: way.url, ...names, log, migrate: false, supervise: false })
  onTestFinished(() => worker.stop(0))
  const seen: string[] = []
  const expectRun = async (name: string, id: string) => {
    await db.transaction().execute((trx) => queue.send(trx, name, { id }))
    await expect.poll(() => seen.at(-1)).toBe(id)
    await expect.poll(() => queue.depth(name)).toBe(0)
  }
  const note = async ({ data }: { data: { id: string } }) => void seen.push(data.id)
  // A fetch under way can take the job into silence: the supervisor returns it, and a poll finds it.
  await worker.work('silent', { concurrency: 1, pollSeconds: 1 }, note)
  await worker.work('notified', { concurrency: 1, pollSeconds: NEVER }, note)
  await expectRun('silent', 'before')
  way.silenceOpen()
  await expectRun('silent', 'into silence')
  // The first may be found at the reconnect, the second only by its notification.
  await expectRun('notified', 'at the reconnect')
  await expectRun('notified', 'after')
  expect(seen).toEqual(['before', 'into silence', 'at the reconnect', 'after'])
})

test('a job that ended on a read-only database runs again in the same attempt once the database is writable', async () => {
  const admin = await pool.connect()
  onTestFinished(() => admin.release())
  const setReadOnly = async (isReadOnly: boolean) => {
    const { rows } = await admin.query('select current_database() as name')
    const name = pg.escapeIdentifier(rows[0].name)
    await admin.query(`alter database ${name} set default_transaction_read_only = ${isReadOnly}`)
    await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'regaining%'`)
  }
  const refused = Promise.withResolvers<void>()
  const recordRefusal = (line: string) => {
    if (JSON.parse(line).msg === 'database connection given up') refused.resolve()
  }
  const names = { url: database.url, schema: 'jobs', applicationName: 'regaining', queues: [] }
  const worker = await openQueue({
    ...names,
    log: pino({ level: 'warn' }, { write: recordRefusal }),
    migrate: false,
    supervise: false,
  })
  onTestFinished(() => worker.stop(0))
  const own = openDatabase({ url: database.url, maxPoolSize: 1, applicationName: 'regaining', log })
  onTestFinished(own.close)
  const tries: number[] = []
  await worker.work('regained', { concurrency: 1, pollSeconds: 1 }, async ({ retryCount }) => {
    tries.push(retryCount)
    if (tries.length === 1) await setReadOnly(true)
    await own.pool.query('create table made_by_job ()')
  })
  await db.transaction().execute((trx) => queue.send(trx, 'regained', {}))
  await refused.promise
  await setReadOnly(false)
  await expect.poll(() => queue.depth('regained')).toBe(0)
  expect(tries).toEqual([0, 0])
})

test('a finished job is deleted within a minute after its hour', async () => {
  await db.transaction().execute(async (trx) => {
    for (const id of ['young', 'old']) await queue.send(trx, 'finished', { id })
  })
  await queue.work('finished', { concurrency: 1 }, async () => {})
  const left = async () => {
    const { rows } = await pool.query(
      `select data ->> 'id' as id, state from jobs.job where name = 'finished' order by id`,
    )
    return rows.map(({ id, state }) => `${id} ${state}`)
  }
  await expect.poll(left).toEqual(['old completed', 'young completed'])
  await pool.query(`update jobs.job set completed_on = now() - interval '59 minutes' where name = 'finished'`)
  await pool.query(`update jobs.job set completed_on = now() - interval '1 hour' where data ->> 'id' = 'old'`)
  await pool.query(`update jobs.queue set maintain_on = now() - interval '1 minute' where name = 'finished'`)
  await expect.poll(left).toEqual(['young completed'])
})
