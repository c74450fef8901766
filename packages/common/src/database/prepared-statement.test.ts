import { type Kysely, sql } from 'kysely'
import { pino } from 'pino'
import { expect, inject, onTestFinished, test } from 'vitest'
import { openDatabase } from './pool.ts'
import { prepared } from './prepared-statement.ts'

test('a statement is built once for a database and its transactions, and again for another one', async () => {
  const open = () => {
    const { db, close } = openDatabase<object>({
      ...{ url: inject('databaseServerUrl'), maxPoolSize: 1, applicationName: 'test' },
      log: pino({ level: 'silent' }),
    })
    onTestFinished(close)
    return db
  }
  let built = 0
  const double = prepared((_: Kysely<object>, { one }: { one: number }) => {
    built++
    return sql<{ two: number }>`select 2 * ${one}::int as two`
  })
  const [database, other] = [open(), open()]
  for (const one of [1, 2]) {
    expect(await double(database, { one })).toEqual([{ two: 2 * one }])
    const within = database.transaction().execute((trx) => double(trx, { one: one + 1 }))
    expect(await within).toEqual([{ two: 2 * one + 2 }])
  }
  expect(built).toBe(1)
  await double(other, { one: 1 })
  expect(built).toBe(2)
})
