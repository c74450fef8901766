import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { SourceRow } from './sources.store.ts'

/** Notifies listeners if and when the transaction commits. */
export async function announce(trx: Transaction<DB>, channel: string, sourceId: string): Promise<void> {
  await sql`select pg_notify(${channel}, ${sourceId})`.execute(trx)
}

/** States and failures of the sources `ids` that exist. */
export async function findOutcomes(
  db: Kysely<DB>,
  ids: readonly string[],
): Promise<Pick<SourceRow, 'id' | 'state' | 'error_code' | 'error_details'>[]> {
  return db
    .selectFrom('sources')
    .select(['id', 'state', 'error_code', 'error_details'])
    .where('id', '=', sql<string>`any(${ids}::uuid[])`)
    .execute()
}
