import { type RawBuilder, sql } from 'kysely'

/** Position of a row in the order of creation; the time as PostgreSQL writes it, to the microsecond. */
export interface Position {
  created_at: string
  id: string
}

/** Part of a condition: rows behind this position; all without one. */
export const andBehind = (after: Position | undefined): RawBuilder<unknown> =>
  after ? sql`and (created_at, id) > (${after.created_at}::timestamptz, ${after.id}::uuid)` : sql``

/** Condition for rows that follow this position in a list with the newest first. */
export const isOlder = ({ created_at: time, id }: Position): RawBuilder<unknown> => sql`(
  created_at <= ${time}::timestamptz and (created_at < ${time}::timestamptz or id > ${id}::uuid))`

/** Splits rows, one more than a page has where more follow, into the page and the position of its last row. */
export function cutPage<Row extends { id: string; place: string }>(rows: readonly Row[], limit: number) {
  const last = rows.length > limit ? rows[limit - 1] : undefined
  const page = rows.slice(0, limit).map(({ place: _, ...row }) => row)
  return { page, next: last && ({ created_at: last.place, id: last.id } satisfies Position) }
}
