import { sql } from 'kysely'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import type { AnyTransaction } from '../database/after-commit.ts'
import { openDatabase } from '../database/pool.ts'
import { createLogger } from '../telemetry/logger.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { openQueue } from './queue.ts'

const log = createLogger({ name: 'test', level: 'fatal' })
const definition = {
  ...({ name: 'crowded', hasTenants: true, soughtBy: 'id' } as const),
  ...{ retryLimit: 3, retryDelaySeconds: 1, retryDelayMaxSeconds: 2, expireInSeconds: 60, heartbeatSeconds: 10 },
}
const INDEXES = ['job_by_id', 'job_current_turn', 'job_last_turn']

let database: Awaited<ReturnType<typeof cloneTemplate>>
let opened: ReturnType<typeof openDatabase>

beforeAll(async () => {
  database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_indexes`, async () => {})
  // One connection, because counts of pages become visible when its own transaction ends.
  opened = openDatabase({ url: database.url, maxPoolSize: 1, applicationName: 'test', log })
})

afterAll(async () => {
  await opened.close()
  await database.drop()
})

const open = (schema: string, migrate = true) =>
  openQueue({
    ...{ url: database.url, schema, applicationName: 'test', log, queues: [definition] },
    ...{ migrate, supervise: false },
  })

const indexesOf = async (schema: string) => {
  const { rows } = await opened.pool.query(
    `select indexrelid::regclass::text as name, indexrelid::int as id, indisvalid as valid from pg_index
      where indrelid = $1::regclass and indexrelid::regclass::text ~ 'job_(by|current|last)_' order by name`,
    [`${schema}.job_common`],
  )
  return rows as { name: string; id: number; valid: boolean }[]
}

/** Pages of the table of jobs and its indexes that `work` reads. */
async function pagesRead(schema: string, work: (trx: AnyTransaction) => Promise<unknown>): Promise<number> {
  const read = async () => {
    await opened.pool.query('select pg_stat_force_next_flush()')
    const { rows } = await opened.pool.query(
      `select (heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)::int as pages from pg_statio_all_tables
        where schemaname = $1 and relname = 'job_common'`,
      [schema],
    )
    return rows[0].pages as number
  }
  const before = await read()
  await opened.db.transaction().execute(work)
  return (await read()) - before
}

test.each([
  ['of one tenant', `'one', -i, now()`],
  ['of as many tenants', `'tenant ' || i, 0, now()`],
  ['scheduled for later', `'one', -i, now() + interval '1 hour'`],
])('finding turns and jobs reads a few pages with 20,000 jobs %s', async (kind, values) => {
  const schema = kind.replaceAll(' ', '_')
  const queue = await open(schema)
  // Pages that a vacuum reads would be counted too.
  await opened.pool.query(`alter table ${schema}.job_common set (autovacuum_enabled = false)`)
  await opened.db.transaction().execute(async (trx) => {
    // Without the checks of foreign keys, which take most of the time.
    await sql`set local session_replication_role = 'replica'`.execute(trx)
    await sql
      .raw(
        `insert into ${schema}.job (name, data, group_id, priority, start_after)
          select 'crowded', jsonb_build_object('id', i::text), ${values} from generate_series(1, 20000) i`,
      )
      .execute(trx)
  })
  const advancing = await pagesRead(schema, (trx) => queue.advance(trx, 'crowded', { id: '19000' }, { tenant: 'new' }))
  const looking = await pagesRead(schema, (trx) => queue.has(trx, 'crowded', { id: 'none' }))
  // All jobs are on more than 500 pages.
  expect(advancing).toBeLessThan(200)
  expect(looking).toBeLessThan(50)
  await queue.stop(0)
})

test.each([
  [
    'the first job that is due',
    [
      [0, 60],
      [3, 0],
      [5, 0],
    ],
    4,
  ],
  [
    'the first job when none is due',
    [
      [2, 60],
      [4, 60],
    ],
    3,
  ],
  [
    'the first job when a hundred are not due before one that is',
    [...Array.from({ length: 100 }, (_, i) => [i, 60]), [200, 0]],
    1,
  ],
])('a newcomer gets the turn after %s', async (kind, jobs, turn) => {
  const schema = kind.replaceAll(' ', '_').slice(-40)
  const queue = await open(schema)
  await opened.pool.query(
    `insert into ${schema}.job (name, group_id, priority, start_after)
      select 'crowded', 'one', -(job ->> 0)::int, now() + (job ->> 1)::int * interval '1 minute'
        from jsonb_array_elements($1::jsonb) as job`,
    [JSON.stringify(jobs)],
  )
  await opened.db.transaction().execute((trx) => queue.send(trx, 'crowded', {}, { tenant: 'new' }))
  const { rows } = await opened.pool.query(`select -priority as turn from ${schema}.job where group_id = 'new'`)
  expect(rows).toEqual([{ turn }])
  await queue.stop(0)
})

test('replicas that start at once make each index once', async () => {
  const replicas = await Promise.all([open('replicas'), open('replicas'), open('replicas')])
  const made = await indexesOf('replicas')
  expect(made).toEqual(INDEXES.map((name) => ({ name: `replicas.${name}`, id: expect.any(Number), valid: true })))
  const later = await open('replicas')
  expect(await indexesOf('replicas')).toEqual(made)
  await Promise.all([...replicas, later].map((queue) => queue.stop(0)))
})

test('an invalid index that a crash left is made again', async () => {
  await (await open('crashed')).stop(0)
  const [lost, ...others] = await indexesOf('crashed')
  await opened.pool.query('update pg_index set indisvalid = false where indexrelid = $1', [lost?.id])
  await (await open('crashed')).stop(0)
  const [made, ...kept] = await indexesOf('crashed')
  expect(made).toMatchObject({ name: lost?.name, valid: true })
  expect(made?.id).not.toBe(lost?.id)
  expect(kept).toEqual(others)
})

test('a queue without tenants has no index of ours', async () => {
  const plain = { ...definition, hasTenants: undefined, soughtBy: undefined }
  const options = { url: database.url, schema: 'plain', applicationName: 'test', log }
  await (await openQueue({ ...options, queues: [plain], migrate: true, supervise: false })).stop(0)
  expect(await indexesOf('plain')).toEqual([])
})

test('waiting and running jobs are counted up to a bound', async () => {
  const queue = await open('counted')
  for (let i = 0; i < 5; i++) {
    await opened.db.transaction().execute((trx) => queue.send(trx, 'crowded', {}, { tenant: 'one' }))
  }
  await opened.pool.query(`update counted.job set state = 'active' where id in (select id from counted.job limit 2)`)
  expect([await queue.waiting('crowded', 10), await queue.waiting('crowded', 2)]).toEqual([3, 2])
  expect([await queue.running('crowded', 10), await queue.running('crowded', 1)]).toEqual([2, 1])
  const ofTenant = (tenant: string, max: number) =>
    opened.db.transaction().execute((trx) => queue.waitingOf(trx, 'crowded', tenant, max))
  expect([await ofTenant('one', 10), await ofTenant('one', 2), await ofTenant('two', 10)]).toEqual([3, 2, 0])
  await queue.stop(0)
})
