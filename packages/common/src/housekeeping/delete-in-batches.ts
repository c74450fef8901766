import { type Kysely, type RawBuilder, sql } from 'kysely'

/** Rows per statement, so that none runs long. */
export const BATCH = 1_000

interface Expired {
  /** Time of a row; the first column of an index. */
  column: string
  /** First time to keep; a number where the column is one. */
  before: Date | number | string
  condition?: RawBuilder<unknown>
}

/**
 * Deletes expired rows, oldest first, in batches that skip locked rows; yields after each. The order makes the planner
 * use the index, whatever share of the table has expired. Each batch resumes at the last row: from the start, it would
 * pass all deleted rows again until they are vacuumed.
 */
export async function* deleteInBatches<DB>(
  db: Kysely<DB>,
  table: keyof DB & string,
  { column, before, condition = sql`true` }: Expired,
): AsyncGenerator<void, void> {
  const [rows, time] = [sql.table(table), sql.ref(column)]
  for (let last: string | undefined; ; ) {
    const isNext = last === undefined ? sql`` : sql`and ${time} >= ${last}`
    const batch = sql<{ deleted: number; last: string }>`
      with gone as (
        delete from ${rows} where ctid = any (array(
          select ctid from ${rows} where ${time} < ${before} ${isNext} and ${condition}
          order by ${time} limit ${BATCH} for update skip locked))
        returning ${time}
      )
      select count(*)::integer as deleted, max(${time})::text as last from gone`
    const [result] = (await batch.execute(db)).rows
    if (!result || result.deleted < BATCH) return
    last = result.last
    yield
  }
}

/** Repeats a batch until it changes fewer than `BATCH` rows; yields after each. */
export async function* repeatBatch(batch: (limit: number) => Promise<number>): AsyncGenerator<void, void> {
  while ((await batch(BATCH)) >= BATCH) yield
}

/** Repeats a batch until it changes fewer than `BATCH` rows, for callers that wait for the last. */
export async function runBatches(batch: (limit: number) => Promise<number>): Promise<void> {
  for await (const _ of repeatBatch(batch));
}
