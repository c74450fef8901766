import { prepared } from '@services/common/prepared'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** A row of the limits' table: how many, and in milliseconds when it is forgotten. */
export interface Counter {
  points: number
  expire: number
}

/** A counter that makes tries wait once it is past `free`. */
export interface Guard {
  key: string
  free: number
}

export interface TryToTake {
  account: Guard
  /** Of account and client address; undefined: no trusted address. */
  pair: Guard | undefined
  /** While this counter is there, the account's own counts but refuses nothing. */
  known: string | undefined
  /** Read along, for the caller. */
  owner: string | undefined
  now: Date
  /** Until a counter is forgotten, and the longest time it makes a try wait. */
  keepMs: number
  longestWaitMs: number
}

/**
 * Counts a try for the account and then for the pair, unless one of both has to wait. One statement, whose conditions are
 * looked at again under the rows' locks: of any number at once, in any number of replicas, only those allowed are taken.
 * Resolves to the keys counted and to the counters as they were before.
 */
export async function takeTry(
  db: Kysely<DB>,
  { account, pair, known, owner, now, keepMs, longestWaitMs }: TryToTake,
): Promise<{ taken: Set<string>; before: Map<string, Counter> }> {
  const rows = await countTry(db, {
    account: account.key,
    accountFree: account.free,
    pair: pair?.key ?? null,
    pairFree: pair?.free ?? 0,
    known: known ?? null,
    owner: owner ?? null,
    at: now.getTime(),
    until: now.getTime() + keepMs,
    keepMs,
    longestWaitMs,
  })
  return {
    taken: new Set(rows.filter(({ isTaken }) => isTaken).map(({ key }) => key)),
    before: new Map(rows.filter(({ isTaken }) => !isTaken).map((row) => [row.key, row])),
  }
}

interface CountedTry {
  account: string
  accountFree: number
  pair: string | null
  pairFree: number
  known: string | null
  owner: string | null
  at: number
  until: number
  keepMs: number
  longestWaitMs: number
}

const countTry = prepared((db: Kysely<DB>, values: CountedTry) => {
  const { account, accountFree, pair, pairFree, known, owner, keepMs, longestWaitMs } = values
  const table = sql.table('rate_limits')
  const [at, until] = [sql`${values.at}::bigint`, sql`${values.until}::bigint`]
  const passes = (of: string, free: number) => {
    const [points, expire] = [sql.ref(`${of}.points`), sql.ref(`${of}.expire`)]
    const wait = sql`least(1000 * 2 ^ least(${points} - ${free}::integer, 20), ${longestWaitMs}::bigint)`
    return sql`(${points} < ${free}::integer or ${expire} - ${keepMs}::bigint + ${wait} <= ${at})`
  }
  const count = (key: string | null, condition: RawBuilder<unknown>, unless: RawBuilder<unknown>) => sql`
    insert into ${table} as old (key, points, expire) select ${key}::varchar, 1, ${until} where ${condition}
    on conflict (key) do update set
      points = case when old.expire > ${at} then old.points + 1 else 1 end, expire = excluded.expire
      where old.expire <= ${at} or ${unless}
    returning key`
  const statement = sql<Counter & { key: string; isTaken: boolean }>`
    with seen as (
      select key, points, expire from ${table}
      where key in (${account}, ${pair}, ${known}, ${owner}) and expire > ${at}
    ),
    known as (select from seen where key = ${known}),
    refused as (
      select from seen
      where (key = ${account} and not exists (select from known) and not ${passes('seen', accountFree)})
        or (key = ${pair} and not ${passes('seen', pairFree)})
    ),
    of_account as (${count(
      account,
      sql`not exists (select from refused)`,
      sql`exists (select from known) or ${passes('old', accountFree)}`,
    )}),
    of_pair as (${count(
      pair,
      sql`${pair}::varchar is not null and exists (select from of_account)`,
      passes('old', pairFree),
    )})
    select key, points, expire, false as "isTaken" from seen
    union all select key, 0, 0, true from of_account
    union all select key, 0, 0, true from of_pair`
  return { compile: () => statement.compile(db) }
})

/**
 * Undoes `takeTry`, for a try that was not made: its count, and the time the wait is reckoned from (`taken` is what `expire`
 * became) unless others were counted since `before` was seen, whose time it is then.
 */
export async function giveBack(
  db: Kysely<DB>,
  keys: string[],
  before: ReadonlyMap<string, Counter>,
  taken: number,
): Promise<void> {
  // One after the other: a statement of its own waits for no other row while it holds one.
  for (const key of keys) {
    const { points, expire } = before.get(key) ?? { points: 0, expire: taken }
    await db
      .updateTable('rate_limits')
      .set((eb) => ({
        points: eb('points', '-', 1),
        expire: eb
          .case()
          .when(eb.and([eb('points', '=', points + 1), eb('expire', '=', taken)]))
          .then(expire)
          .else(eb.ref('expire'))
          .end(),
      }))
      .where('key', '=', key)
      .where('points', '>', 0)
      .execute()
  }
}

/** Whether the counter is there. */
export async function isCounted(db: Kysely<DB>, key: string, now: Date): Promise<boolean> {
  const found = await db
    .selectFrom('rate_limits')
    .select('key')
    .where('key', '=', key)
    .where('expire', '>', now.getTime())
    .executeTakeFirst()
  return found !== undefined
}

/** Keeps the keys until `until`; leaves those alone that are kept until `unlessUntil` or longer. */
export async function keepKeys(
  db: Kysely<DB>,
  keys: string[],
  { until, unlessUntil }: { until: number; unlessUntil: number },
): Promise<void> {
  await db
    .insertInto('rate_limits')
    .values(keys.toSorted().map((key) => ({ key, points: 1, expire: until })))
    .onConflict((conflict) =>
      conflict.column('key').doUpdateSet({ expire: until }).where('rate_limits.expire', '<', unlessUntil),
    )
    .execute()
}

/** The account's counter before the pair's, as `takeTry` does: statements about both never wait for each other in a circle. */
export const forgetCounters = prepared((db: Kysely<DB>, { keys }: { keys: string[] }) =>
  db
    .deleteFrom('rate_limits')
    .where(
      'key',
      'in',
      db
        .selectFrom('rate_limits')
        .select('key')
        .where('key', '=', sql<string>`any(${keys}::varchar[])`)
        .orderBy('key')
        .forUpdate(),
    ),
)
