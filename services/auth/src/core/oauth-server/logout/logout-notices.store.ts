import { type Kysely, sql } from 'kysely'
import type { DB } from '../../../db/tables.ts'

/** The end of a session that its application has to hear of, with an attempt begun. */
export interface LogoutNotice {
  session_id: string
  user_id: string
  /** Attempts, this one included. */
  attempts: number
  /** Id that the client is known by. */
  client_id: string
  /** null: the application does not want to hear of it any more. */
  backchannel_logout_uri: string | null
}

/** Begins attempts at due notices; parallel callers get different ones. */
export async function claimNotices(
  db: Kysely<DB>,
  { now, leaseUntil, limit }: { now: Date; leaseUntil: Date; limit: number },
): Promise<LogoutNotice[]> {
  const notices = sql.table('oauth_logout_notices')
  const { rows } = await sql<LogoutNotice>`
    with due as materialized (
      select session_id from ${notices} where next_at is null or next_at <= ${now}
      order by next_at nulls first limit ${limit} for update skip locked
    )
    update ${notices} notice set attempts = notice.attempts + 1, next_at = ${leaseUntil}
    from due, ${sql.table('oauth_clients')} client
    where notice.session_id = due.session_id and client.id = notice.client_id
    returning notice.session_id, notice.user_id, notice.attempts, client.backchannel_logout_uri,
      coalesce(client.metadata_uri, client.id::text) as client_id`.execute(db)
  return rows
}

export const deleteNotice = (db: Kysely<DB>, sessionId: string) =>
  db.deleteFrom('oauth_logout_notices').where('session_id', '=', sessionId).execute()

export const putOffNotice = (db: Kysely<DB>, sessionId: string, nextAt: Date) =>
  db.updateTable('oauth_logout_notices').set({ next_at: nextAt }).where('session_id', '=', sessionId).execute()
