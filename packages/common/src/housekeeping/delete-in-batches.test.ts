import pg from 'pg'
import { pino } from 'pino'
import { expect, inject, onTestFinished, test } from 'vitest'
import { openDatabase } from '../database/pool.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { BATCH, deleteInBatches } from './delete-in-batches.ts'

interface Tables {
  things: { id: number; expires_at: Date; body: string }
}

/** A table of `count` things that expire one second after another, from 1970 on. */
async function openThings(count: number) {
  const { url, drop } = await cloneTemplate(
    inject('databaseServerUrl'),
    `${inject('testRunId')}_things`,
    async (at) => {
      const client = new pg.Client({ connectionString: at })
      await client.connect()
      await client.query('create table things (id integer primary key, expires_at timestamptz not null, body text)')
      await client.query('create index things_expires_at_idx on things (expires_at)')
      await client.end()
    },
  )
  const other = new pg.Client({ connectionString: url })
  await other.connect()
  await other.query(
    `insert into things select n, to_timestamp(n), repeat('x', 500) from generate_series(1, $1::int) n`,
    [count],
  )
  await other.query('vacuum (analyze) things')
  const log = pino({ level: 'silent' })
  const database = openDatabase<Tables>({ url, maxPoolSize: 1, applicationName: 'test', log })
  onTestFinished(async () => {
    await database.close()
    await other.end()
    await drop()
  })
  return { ...database, other }
}

const until = (second: number) => ({ column: 'expires_at', before: new Date(second * 1000) })

async function all(batches: AsyncGenerator<void, void>): Promise<number> {
  let steps = 1
  for await (const _ of batches) steps++
  return steps
}

test('rows expired before a time are deleted in batches, the oldest first', async () => {
  const { db, other } = await openThings(3_500)
  const batches = deleteInBatches(db, 'things', until(2_501))
  await batches.next()
  const left = async () => (await other.query('select min(id)::int, count(*)::int from things')).rows[0]
  expect(await left()).toEqual({ min: BATCH + 1, count: 3_500 - BATCH })
  await all(batches)
  expect(await left()).toEqual({ min: 2_501, count: 1_000 })
})

test('equal times that fill several batches are all deleted', async () => {
  const { db, other } = await openThings(3_000)
  await other.query('update things set expires_at = to_timestamp(7)')
  await all(deleteInBatches(db, 'things', until(8)))
  expect((await other.query('select from things')).rowCount).toBe(0)
})

test('two processes share the rows, and neither waits for a row that is locked', async () => {
  const { db, other } = await openThings(4_000)
  await other.query('begin')
  await other.query('select from things where id in (5, 3999) for update')
  await Promise.all([
    all(deleteInBatches(db, 'things', until(5_000))),
    all(deleteInBatches(db, 'things', until(5_000))),
  ])
  expect((await other.query('select id from things order by id')).rows).toEqual([{ id: 5 }, { id: 3_999 }])
  await other.query('commit')
})

test('rows are found by the index, and each is read about once though a long transaction keeps all of them', async () => {
  const { db, other, close } = await openThings(20_000)
  await other.query('begin isolation level repeatable read')
  await other.query('select count(*) from things where id = 1')
  expect(await all(deleteInBatches(db, 'things', until(15_001)))).toBe(16)
  // A backend reports its numbers at its end.
  await close()
  await other.query('commit')
  const read = async () =>
    (await other.query(`select sum(idx_tup_read)::integer as sum from pg_stat_user_indexes`)).rows[0].sum
  await expect.poll(read).toBeGreaterThanOrEqual(15_000)
  expect(await read()).toBeLessThan(2 * 15_000)
})
