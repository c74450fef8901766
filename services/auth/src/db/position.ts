import { type RawBuilder, sql } from 'kysely'

/** Position of a row in the order of creation; the time as PostgreSQL writes it, to the microsecond. */
export interface Position {
  created_at: string
  id: string
}

/** Part of a condition: rows behind this position; all without one. */
export const andBehind = (after: Position | undefined): RawBuilder<unknown> =>
  after ? sql`and (created_at, id) > (${after.created_at}::timestamptz, ${after.id}::uuid)` : sql``
