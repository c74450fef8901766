import { Kysely, PostgresDialect } from 'kysely'
import type { BenchDatabase } from './postgres.ts'
import type { startReport } from './report.ts'

/** Fewest rows a second that housekeeping deletes by one statement after another. */
const BOUND = 10_000

export interface MeasuredDeletion<DB> {
  table: string
  what: string
  /** Deletes rows in batches, as housekeeping does. */
  begin: (db: Kysely<DB>) => AsyncGenerator<void, void>
}

/** Measures rows a second of each deletion. The rows stay deleted, so it comes last. */
export async function measureDeletions<DB>(
  { report, database }: { report: ReturnType<typeof startReport>; database: BenchDatabase },
  deletions: readonly MeasuredDeletion<DB>[],
): Promise<void> {
  const db = new Kysely<DB>({ dialect: new PostgresDialect({ pool: database.pool }) })
  for (const { table, what, begin } of deletions) {
    const before = await database.rowCount(table)
    const startedAt = performance.now()
    for await (const _ of begin(db));
    const seconds = (performance.now() - startedAt) / 1000
    const deleted = before - (await database.rowCount(table))
    report.row({
      ...{ id: `delete-${table}`, what: `${what} that housekeeping deletes`, against: 'the bound', unit: '/s' },
      ...{ ours: deleted / seconds, theirs: BOUND, compared: 'ratio', goal: { atLeast: 1 } },
    })
  }
}
