import { type OperationNodeSource, type RawBuilder, sql, type Transaction } from 'kysely'
import type { DB } from './tables.ts'
import { noteChange, wantsEvent } from './watched-users.ts'

/** Sessions of one part. Each is about 300 bytes, and the events of a part are one statement. */
export const SESSIONS_OF_PART = 1_000

/**
 * Deletes sessions that match, with the owners' rows locked, and notes them for their events. Returns their number.
 * `others` are further parts of the statement, by name. The service does not parse the sessions, which may be many.
 */
export async function deleteSessions(
  trx: Transaction<DB>,
  matches: RawBuilder<unknown>,
  others: Record<string, OperationNodeSource> = {},
): Promise<number> {
  const deletion = sql`delete from ${sql.table('sessions')} where ${matches}`
  const named = Object.entries(others).map(([name, part]) => sql`${sql.ref(name)} as (${part})`)
  if (!wantsEvent(trx, 'session.ended')) {
    const before = named.length > 0 ? sql`with ${sql.join(named)}` : sql``
    const { numAffectedRows } = await sql`${before} ${deletion}`.execute(trx)
    return Number(numAffectedRows ?? 0)
  }
  const { rows } = await sql<{ user_id: string; sessions: string; count: number }>`
    with ${sql.join([...named, sql`gone as (${deletion} returning *)`])}, ended as (
      select user_id, ${sessionJson} as session,
        row_number() over (partition by user_id order by created_at, id) as place from gone
    )
    select user_id, json_agg(session order by place)::text as sessions, count(*)::integer as count
    from ended group by user_id, (place - 1) / ${sql.lit(SESSIONS_OF_PART)} order by user_id, min(place)`.execute(trx)
  for (const { user_id: userId, sessions: endedSessions, count } of rows) {
    await noteChange(trx, { userId, endedSessions, count })
  }
  return rows.reduce((sum, { count }) => sum + count, 0)
}

/** A session as events show it. */
const sessionJson = sql`json_build_object('id', id, 'created_at', created_at, 'aal', aal,
  'methods', (select json_agg(entry ->> 'method') from jsonb_array_elements(amr) entry),
  'user_agent', user_agent, 'ip', host(ip))`
