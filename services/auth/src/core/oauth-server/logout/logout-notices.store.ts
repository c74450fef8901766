import { type Kysely, sql } from 'kysely'
import type { DB } from '../../../db/tables.ts'

/** The end of a session that its application has to hear of, with an attempt begun. */
export interface LogoutNotice {
  session_id: string
  user_id: string
  client_id: string
  /** Attempts, this one included. */
  attempts: number
  /** Id that the client is known by. */
  audience: string
  /** null: the application does not want to hear of it any more. */
  address: string | null
}

interface Claim {
  now: Date
  /** An attempt that has not ended by then was lost with its process. */
  leaseUntil: Date
  limit: number
  /** Most attempts of a client at once in this process. */
  perClient: number
  /** Attempts under way in this process, by client. */
  busy: ReadonlyMap<string, number>
}

/**
 * Begins attempts at due notices, of each client with free slots those that are due longest. Parallel callers get
 * different ones. An index is searched once for each client: no backlog of one makes a claim long. A deleted client is
 * asked at the address that it had.
 */
export async function claimNotices(
  db: Kysely<DB>,
  { now, leaseUntil, limit, perClient, busy }: Claim,
): Promise<LogoutNotice[]> {
  const [notices, clients] = [sql.table('oauth_logout_notices'), sql.table('oauth_clients')]
  const { rows } = await sql<LogoutNotice>`
    with recursive waiting (client_id) as (
      (select client_id from ${notices} order by client_id limit 1)
      union all
      select (select further.client_id from ${notices} further where further.client_id > waiting.client_id
        order by further.client_id limit 1)
      from waiting where waiting.client_id is not null
    ), busy as (
      select * from unnest(${[...busy.keys()]}::uuid[], ${[...busy.values()]}::integer[]) busy (client_id, attempts)
    ), due as materialized (
      select own.session_id, waiting.client_id
      from waiting left join busy on busy.client_id = waiting.client_id, lateral (
        select session_id, next_at from ${notices} notice
        where notice.client_id = waiting.client_id and notice.next_at <= ${now}
        order by next_at limit greatest(0, ${perClient} - coalesce(busy.attempts, 0)) for update skip locked) own
      order by own.next_at limit ${limit}
    )
    update ${notices} notice set attempts = notice.attempts + 1, next_at = ${leaseUntil}
    from due left join ${clients} client on client.id = due.client_id
    where notice.session_id = due.session_id
    returning notice.session_id, notice.user_id, notice.client_id, notice.attempts, notice.audience,
      case when client.id is null then notice.address else client.backchannel_logout_uri end as address`.execute(db)
  return rows
}

export const deleteNotice = (db: Kysely<DB>, sessionId: string) =>
  db.deleteFrom('oauth_logout_notices').where('session_id', '=', sessionId).execute()

export const putOffNotice = (db: Kysely<DB>, sessionId: string, nextAt: Date) =>
  db.updateTable('oauth_logout_notices').set({ next_at: nextAt }).where('session_id', '=', sessionId).execute()
