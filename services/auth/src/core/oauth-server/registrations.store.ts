import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { endSessionsOfClients } from './tokens/client-sessions.store.ts'

/** Registrations without an administrator, each kind of which is bounded. */
export type Registration = 'dynamic' | 'metadata_document'

/** Makes registrations of a kind wait for each other, so that each counts the others. */
export const lockRegistrations = (trx: Transaction<DB>, kind: Registration) =>
  sql`select pg_advisory_xact_lock(hashtextextended(${`oauth_clients ${kind}`}, 0))`.execute(trx)

/** Registrations of a kind, or those of them whose metadata document is at a host. */
export interface Registrations {
  kind: Registration
  host?: string | undefined
}

const host = sql<string | null>`substring(metadata_uri from '^https?://(\\[[^]]*\\]|[^/:]*)')`

export async function countRegistrations(db: Kysely<DB>, counted: Registrations): Promise<number> {
  const { count } = await db
    .selectFrom('oauth_clients')
    .select(sql<number>`count(*)::integer`.as('count'))
    .where('registration_type', '=', counted.kind)
    .$if(counted.host !== undefined, (query) => query.where(host, '=', counted.host ?? null))
    .executeTakeFirstOrThrow()
  return count
}

/** Deletes the oldest ones that got no tokens since their registration before this time. Returns how many they were. */
export async function deleteUnused(
  trx: Transaction<DB>,
  unused: Registrations,
  { before, limit }: { before: Date; limit: number },
): Promise<number> {
  const oldest = trx
    .selectFrom('oauth_clients')
    .select('id')
    .where('registration_type', '=', unused.kind)
    .$if(unused.host !== undefined, (query) => query.where(host, '=', unused.host ?? null))
    .where('last_used_at', 'is', null)
    .where('created_at', '<', before)
    .orderBy('created_at')
    .limit(limit)
    .forUpdate()
    .skipLocked()
  const deleted = await trx.deleteFrom('oauth_clients').where('id', 'in', oldest).returning('id').execute()
  return deleted.length
}

/** Ends the sessions of a batch of those without tokens since this time, and deletes them. */
export async function deleteForgotten(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  const isForgotten = sql<boolean>`registration_type <> 'manual' and coalesce(last_used_at, created_at) < ${before}`
  const forgotten = await db.selectFrom('oauth_clients').select('id').where(isForgotten).limit(limit).execute()
  const ids = forgotten.map(({ id }) => id)
  if (ids.length === 0) return 0
  await endSessionsOfClients(db, ids, 'expired')
  const locked = db.selectFrom('oauth_clients').select('id').where('id', 'in', ids).where(isForgotten)
  const deleted = db.deleteFrom('oauth_clients').where('id', 'in', locked.forUpdate().skipLocked())
  return (await deleted.returning('id').execute()).length
}
