import type { Kysely } from 'kysely'
import type { DB } from '../db/tables.ts'

/** A row of the limits' table: how many, and in milliseconds when it is forgotten. */
export interface Counter {
  points: number
  expire: number
}

/** The counters among `keys` that are not forgotten, by key. */
export async function readCounters(db: Kysely<DB>, keys: string[], now: Date): Promise<Map<string, Counter>> {
  const rows = await db
    .selectFrom('rate_limits')
    .select(['key', 'points', 'expire'])
    .where('key', 'in', keys)
    .where('expire', '>', now.getTime())
    .execute()
  return new Map(rows.map(({ key, points, expire }) => [key, { points, expire: Number(expire) }]))
}

/** Adds one and starts the time until the counter is forgotten anew. */
export async function countUp(db: Kysely<DB>, key: string, now: Date, keepMs: number): Promise<void> {
  const expire = now.getTime() + keepMs
  await db
    .insertInto('rate_limits')
    .values({ key, points: 1, expire })
    .onConflict((conflict) =>
      conflict.column('key').doUpdateSet((eb) => ({
        points: eb
          .case()
          .when('rate_limits.expire', '>', now.getTime())
          .then(eb('rate_limits.points', '+', 1))
          .else(1)
          .end(),
        expire,
      })),
    )
    .execute()
}

/** As `countUp`, but only if nobody counted since the counter was `seen`; tells whether. */
export async function countUpIfUnchanged(
  db: Kysely<DB>,
  key: string,
  seen: Counter,
  now: Date,
  keepMs: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('rate_limits')
    .set((eb) => ({ points: eb('points', '+', 1), expire: now.getTime() + keepMs }))
    .where('key', '=', key)
    .where('points', '=', seen.points)
    .where('expire', '=', seen.expire)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function forgetCounters(db: Kysely<DB>, keys: string[]): Promise<void> {
  await db.deleteFrom('rate_limits').where('key', 'in', keys).execute()
}
