import type { Kysely } from 'kysely'
import type { DB } from '../../../db/tables.ts'

/** Finds the user of a client's session; undefined for sessions of others. */
export async function findUserOfClientSession(
  db: Kysely<DB>,
  { id, clientId }: { id: string; clientId: string },
): Promise<string | undefined> {
  const session = db.selectFrom('sessions').select('user_id').where('id', '=', id)
  return (await session.where('oauth_client_id', '=', clientId).executeTakeFirst())?.user_id
}

/** Finds the rights of an application's session; undefined for the account's own. */
export async function findRightsOfSession(
  db: Kysely<DB>,
  id: string,
): Promise<{ scopes: string[]; resources: string[] } | undefined> {
  const found = await db.selectFrom('sessions').select(['scopes', 'resources']).where('id', '=', id).executeTakeFirst()
  return found?.scopes && found.resources ? { scopes: found.scopes, resources: found.resources } : undefined
}
