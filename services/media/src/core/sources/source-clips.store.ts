// Clips of a source: it counts them, and housekeeping deletes a source that has none. States and facts:
// sources.store.ts.
import { sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { notFailed, type SourceRow } from './sources.store.ts'

/** Adds a clip to the source. Undefined when the source failed or was deleted. */
export async function attachToSource(trx: Transaction<DB>, id: string): Promise<SourceRow | undefined> {
  return trx
    .updateTable('sources')
    .set({ clip_count: sql`clip_count + 1`, unreferenced_at: null })
    .where('id', '=', id)
    .where(notFailed)
    .returningAll()
    .executeTakeFirst()
}

/** Takes a clip from the source; housekeeping deletes a source without clips. */
export async function detachFromSource(trx: Transaction<DB>, id: string, now: Date): Promise<void> {
  await trx
    .updateTable('sources')
    .set({
      clip_count: sql`clip_count - 1`,
      unreferenced_at: sql`case when clip_count = 1 then ${now}::timestamptz end`,
    })
    .where('id', '=', id)
    .execute()
}

/** Takes a clip from a source for each time that it is named. */
export async function detachFromSources(trx: Transaction<DB>, ids: readonly string[], now: Date): Promise<void> {
  const sources = sql.table('sources')
  await sql`select from ${sources} where id = any (${ids}::uuid[]) order by id for update`.execute(trx)
  await sql`
    update ${sources} set clip_count = clip_count - clips,
      unreferenced_at = case when clip_count = clips then ${now}::timestamptz end
    from (select named, count(*)::integer as clips from unnest(${ids}::uuid[]) named group by named) detached
    where id = named`.execute(trx)
}

/** Deletes a failed source without clips; it has no files. */
export async function deleteFailedSource(trx: Transaction<DB>, id: string): Promise<void> {
  await trx
    .deleteFrom('sources')
    .where('id', '=', id)
    .where('state', '=', 'failed')
    .where('clip_count', '=', 0)
    .execute()
}

/** Deletes a processing source; the caller has locked it, and knows that it has no clip. */
export async function deleteAbandonedSource(trx: Transaction<DB>, id: string): Promise<void> {
  await trx.deleteFrom('sources').where('id', '=', id).execute()
}
