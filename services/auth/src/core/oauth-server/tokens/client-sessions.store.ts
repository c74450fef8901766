import { type Kysely, sql, type Transaction } from 'kysely'
import { deleteSessions } from '../../../db/ended-sessions.store.ts'
import type { DB } from '../../../db/tables.ts'
import { noteChange, type SessionEnd } from '../../../db/watched-users.ts'

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

/** Ends the sessions of all applications of a user, whose row is locked. */
export async function endSessionsOfApplications(trx: Transaction<DB>, userId: string, reason: SessionEnd) {
  await noteChange(trx, { userId, sessionsEnd: reason })
  await deleteSessions(trx, sql`user_id = ${userId} and oauth_client_id is not null`)
}

/** Users whose sessions one transaction ends. */
const USERS_AT_ONCE = 200

/**
 * Ends all sessions of clients that are about to be deleted, with the users locked: a cascade would announce none. A
 * session that begins meanwhile ends with its client, unannounced.
 */
export async function endSessionsOfClients(
  db: Kysely<DB>,
  clientIds: readonly string[],
  reason: SessionEnd,
): Promise<void> {
  const [users, sessions, isTheirs] = [
    ...[sql.table('users'), sql.table('sessions')],
    sql`oauth_client_id = any (${clientIds}::uuid[])`,
  ]
  for (;;) {
    const { length } = await db.transaction().execute(async (trx) => {
      const { rows } = await sql<{ id: string }>`
        select id from ${users}
        where id = any (array(select user_id from ${sessions} where ${isTheirs} limit ${USERS_AT_ONCE}))
        order by id for update`.execute(trx)
      for (const { id: userId } of rows) await noteChange(trx, { userId, sessionsEnd: reason })
      const ids = rows.map(({ id }) => id)
      if (ids.length > 0) await deleteSessions(trx, sql`user_id = any (${ids}::uuid[]) and ${isTheirs}`)
      return ids
    })
    if (length === 0) return
  }
}
