import { prepared } from '@services/common/database/prepared-statement'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'

interface Point {
  key: string
  /** Milliseconds since 1970. */
  at: number
  windowMs: number
  /** Limit of one window. */
  points: number
}

/**
 * Counts one in the key's window, which begins with the first; returns 0, or the milliseconds left of a full window.
 * The condition is checked again under the row's lock: of parallel requests, in any number of replicas, only those
 * allowed count.
 */
export async function countPoint(db: Kysely<DB>, point: Point): Promise<number> {
  const [row] = await count(db, { ...point, until: point.at + point.windowMs })
  if (row?.isCounted) return 0
  // No row, or the one of an expired window: another request began a new window while this statement waited.
  return row && row.expire > point.at ? row.expire - point.at : point.windowMs
}

const count = prepared((db: Kysely<DB>, { key, at, until, points }: Point & { until: number }) => {
  const table = sql.table('rate_limits')
  const statement = sql<{ isCounted: boolean; expire: number }>`
    with counted as (
      insert into ${table} as old (key, points, expire) values (${key}, 1, ${until})
      on conflict (key) do update set
        points = case when old.expire > ${at}::bigint then old.points + 1 else 1 end,
        expire = case when old.expire > ${at}::bigint then old.expire else excluded.expire end
        where old.expire <= ${at}::bigint or old.points < ${points}::integer
      returning expire
    )
    select expire, true as "isCounted" from counted
    union all
    select expire, false from ${table} where key = ${key} and not exists (select from counted)`
  return { compile: () => statement.compile(db) }
})

/** Gives a point back unless its window has ended. Deletes a counter at 0: refusals would leave a row per address. */
export async function refundPoint(db: Kysely<DB>, { key, at, windowMs }: Omit<Point, 'points'>): Promise<void> {
  const counter = await db
    .updateTable('rate_limits')
    .set((eb) => ({ points: eb('points', '-', 1) }))
    .where('key', '=', key)
    .where('points', '>', 0)
    .where('expire', '<=', at + windowMs)
    .returning('points')
    .executeTakeFirst()
  if (counter?.points === 0)
    await db.deleteFrom('rate_limits').where('key', '=', key).where('points', '<=', 0).execute()
}

export const deleteExpiredLimits = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'rate_limits', { column: 'expire', before: before.getTime() })
