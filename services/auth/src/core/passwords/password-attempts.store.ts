import { prepared } from '@services/common/database/prepared-statement'
import { type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** Numbers of the formula in password-attempts.ts. */
export interface Wait {
  firstMs: number
  longestMs: number
  expireAfterMs: number
}

/** Counter before the attempt; `expire` in milliseconds since 1970. */
export interface Counter {
  points: number
  expire: number
  waitMs: number
}

interface Attempt extends Wait {
  account: string
  /** Number of failed attempts that cost no wait. */
  accountFree: number
  /** Account and client address; null without a trusted address. */
  pair: string | null
  pairFree: number
  /** While this counter exists, the account's own counts but refuses nothing. */
  known: string | null
  /** Read along for the caller. */
  owner: string | null
  at: number
}

/**
 * Counts an attempt for the account and the pair, unless one of them has to wait. The statement checks the waits again
 * under the rows' locks: of parallel attempts, in any number of replicas, only those allowed are counted. Returns the
 * keys counted and the counters as they were before.
 */
export async function countAttempt(db: Kysely<DB>, attempt: Attempt) {
  const rows = await count(db, attempt)
  return {
    counted: rows.filter(({ isCounted }) => isCounted).map(({ key }) => key),
    before: new Map<string, Counter>(rows.filter(({ isCounted }) => !isCounted).map((row) => [row.key, row])),
  }
}

const count = prepared((db: Kysely<DB>, attempt: Attempt) => {
  const { account, accountFree, pair, pairFree, known, owner, at } = attempt
  const table = sql.table('rate_limits')
  const now = sql`${at}::bigint`
  const expireAfter = sql`${attempt.expireAfterMs}::bigint`
  const waitOf = (counter: string) => {
    const [key, points, expire] = ['key', 'points', 'expire'].map((column) => sql.ref(`${counter}.${column}`))
    const over = sql`(${points} - case when ${key} = ${pair} then ${pairFree}::integer
      when exists (select from known) then ${points} + 1 else ${accountFree}::integer end)`
    // The exponent is bounded, because the largest would overflow.
    return sql`case when ${over} < 0 then 0 else greatest(0, ${expire} - ${expireAfter} - ${now}
      + least(${attempt.firstMs}::bigint * 2 ^ least(${over}, 20), ${attempt.longestMs}::bigint)) end`
  }
  const statement = sql<Counter & { key: string; isCounted: boolean }>`
    with known as (select from ${table} where key = ${known} and expire > ${now}),
    before as (
      select key, points, expire, ${waitOf('counter')} as "waitMs" from ${table} as counter
      where key in (${account}, ${pair}, ${known}, ${owner}) and expire > ${now}
    ),
    counted as (
      insert into ${table} as old (key, points, expire)
      select key, 1, ${now} + ${expireAfter} from (values (${account}::varchar), (${pair})) as attempt (key)
      where key is not null
        and not exists (select from before where before.key in (${account}, ${pair}) and "waitMs" > 0)
      -- The account's counter before the pair's, as in every statement about both: none waits for another in a circle.
      order by key
      on conflict (key) do update set
        points = case when old.expire > ${now} then old.points + 1 else 1 end, expire = excluded.expire
        where old.expire <= ${now} or ${waitOf('old')} <= 0
      returning key
    )
    select key, points, expire, "waitMs", false as "isCounted" from before
    union all select key, 0, 0, 0, true from counted`
  return { compile: () => statement.compile(db) }
})

/** Undoes `countAttempt`: the count, and the start of the wait (`expire`) if it is still `countedUntil`. */
export async function refundAttempt(
  db: Kysely<DB>,
  keys: string[],
  before: ReadonlyMap<string, Counter>,
  countedUntil: number,
): Promise<void> {
  // One after the other: a statement of its own waits for no other row while it holds one.
  for (const key of keys) {
    const { points, expire } = before.get(key) ?? { points: 0, expire: countedUntil }
    await sql`update ${sql.table('rate_limits')} set points = points - 1,
      expire = case when points = ${points + 1} and expire = ${countedUntil} then ${expire} else expire end
      where key = ${key} and points > 0`.execute(db)
  }
}

export async function counterExists(db: Kysely<DB>, key: string, now: Date): Promise<boolean> {
  const found = await db
    .selectFrom('rate_limits')
    .select('key')
    .where('key', '=', key)
    .where('expire', '>', now.getTime())
    .executeTakeFirst()
  return found !== undefined
}

/** Keeps the keys until `until`, except those that are kept until `unlessUntil` or longer. */
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

export const forgetCounters = prepared((db: Kysely<DB>, { keys }: { keys: string[] }) => {
  const table = sql.table('rate_limits')
  const statement = sql`delete from ${table} where key in (
    select key from ${table} where key = any(${keys}::varchar[]) order by key for update)`
  return { compile: () => statement.compile(db) }
})
