import { type Kysely, sql, type Transaction } from 'kysely'
import { deleteSessions } from '../../../db/ended-sessions.store.ts'
import type { DB } from '../../../db/tables.ts'

/** Session of a browser, whose user approved requests of applications. */
interface Approver {
  userId: string
  sessionId: string
}

/** Lists the newest approved session of each application with a page for frames, the newest first. */
export async function listFrontChannels(
  db: Kysely<DB>,
  { userId, sessionId }: Approver,
  limit: number,
): Promise<{ id: string; address: string }[]> {
  const { rows } = await sql<{ id: string; address: string }>`
    select id, address from (
      select distinct on (client.id) session.id, session.created_at, client.frontchannel_logout_uri as address
      from ${sql.table('sessions')} session join ${sql.table('oauth_clients')} client on client.id = session.oauth_client_id
      where session.user_id = ${userId} and session.approved_by = ${sessionId}
        and client.frontchannel_logout_uri is not null
      order by client.id, session.created_at desc, session.id) newest
    order by created_at desc, id limit ${limit}`.execute(db)
  return rows
}

/**
 * Ends approved sessions with the user's row locked, and returns their number. Those with offline_access outlive the
 * browser (OpenID Connect Back-Channel Logout 1.0, section 2.7).
 */
export const endApproved = (trx: Transaction<DB>, { userId, sessionId }: Approver): Promise<number> =>
  deleteSessions(
    trx,
    sql`user_id = ${userId} and approved_by = ${sessionId} and not coalesce(scopes ? 'offline_access', false)`,
  )
