import { type Kysely, sql, type Transaction } from 'kysely'
import { deleteSessions } from '../../../db/ended-sessions.store.ts'
import type { DB } from '../../../db/tables.ts'

/** Lists the consents of a user with their clients, newest first. */
export const listGrants = (db: Kysely<DB>, userId: string) =>
  db
    .selectFrom('oauth_consents')
    .innerJoin('oauth_clients', 'oauth_clients.id', 'oauth_consents.client_id')
    .select(['oauth_clients.id', 'metadata_uri', 'client_name', 'client_uri', 'logo_uri'])
    .select(['oauth_consents.scopes', 'oauth_consents.updated_at'])
    .where('user_id', '=', userId)
    .orderBy('oauth_consents.updated_at', 'desc')
    .orderBy('oauth_clients.id')
    .execute()

interface Grant {
  userId: string
  clientId: string
}

/**
 * Deletes a consent, the client's sessions of the user, and codes that wait. The user's row is locked before. False if
 * there is no consent.
 */
export async function deleteGrant(trx: Transaction<DB>, { userId, clientId }: Grant): Promise<boolean> {
  for (const table of ['oauth_authorizations', 'oauth_device_codes'] as const) {
    await trx.deleteFrom(table).where('user_id', '=', userId).where('client_id', '=', clientId).execute()
  }
  await deleteSessions(trx, sql`user_id = ${userId} and oauth_client_id = ${clientId}`)
  const consent = trx.deleteFrom('oauth_consents').where('user_id', '=', userId).where('client_id', '=', clientId)
  return (await consent.returning('client_id').executeTakeFirst()) !== undefined
}
