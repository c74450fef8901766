import { prepared } from '@services/common/database/prepared-statement'
import { type Kysely, sql } from 'kysely'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import type { SessionLimits, SessionTimes } from '../../sessions/session-limits.ts'
import { isReplaced } from '../../sessions/sessions.store.ts'

/** Ids that a request for introspection names; null: it names none, or none that is a UUID. */
export interface NamedInRequest {
  clientId: string | null
  sessionId: string | null
  /** Client of a token without a session. */
  machineId: string | null
}

export interface Introspected {
  /** Client that asks. */
  client: OAuthClient | undefined
  /** Session of the token, while its row exists. */
  session: (SessionTimes & SessionRow) | undefined
  /** Whether the client of a token without a session exists. */
  hasMachine: boolean
}

interface SessionRow {
  user_id: string
  oauth_client_id: string | null
  scopes: string[] | null
  refresh_counter: number
  banned_until: Date | null
}

/** Finds what several requests name, in one statement and the given order. */
export async function findIntrospected(
  db: Kysely<DB>,
  requests: readonly NamedInRequest[],
  { singlePerUser }: Pick<SessionLimits, 'singlePerUser'>,
): Promise<Introspected[]> {
  const rows = await (singlePerUser ? selectOfNewest : select)(db, {
    clientIds: requests.map(({ clientId }) => clientId),
    sessionIds: requests.map(({ sessionId }) => sessionId),
    machineIds: requests.map(({ machineId }) => machineId),
  })
  const byPlace = new Map(rows.map((row) => [row.place, row]))
  return requests.map((_, index) => {
    const { client, session, has_machine: hasMachine } = byPlace.get(index + 1) as Row
    return {
      client: client ? toClient(client) : undefined,
      session: session ? toSession(session) : undefined,
      hasMachine,
    }
  })
}

/** Rows as PostgreSQL's JSON has them. */
type ClientJson = Omit<OAuthClient, 'secret_hash'> & { secret_hash: string | null }
type SessionJson = Record<'created_at' | 'refreshed_at', string> &
  Record<'not_after' | 'banned_until', string | null> &
  Omit<SessionTimes & SessionRow, 'created_at' | 'refreshed_at' | 'not_after' | 'banned_until'>

interface Row {
  place: number
  client: ClientJson | null
  session: SessionJson | null
  has_machine: boolean
}

/** The times of a client stay texts: nothing here reads them. */
const toClient = ({ secret_hash: hash, ...client }: ClientJson): OAuthClient => ({
  ...client,
  secret_hash: hash === null ? null : Buffer.from(hash.slice(2), 'hex'),
})

const toSession = ({ created_at, refreshed_at, not_after, banned_until, ...session }: SessionJson) => ({
  ...session,
  created_at: new Date(created_at),
  refreshed_at: new Date(refreshed_at),
  not_after: not_after === null ? null : new Date(not_after),
  banned_until: banned_until === null ? null : new Date(banned_until),
})

interface Input {
  clientIds: (string | null)[]
  sessionIds: (string | null)[]
  machineIds: (string | null)[]
}

const query = (singlePerUser: boolean) => (_: Kysely<DB>, input: Input) =>
  sql<Row>`
  select named.place, to_json(client) as client, machine.id is not null as has_machine,
    case when session.id is not null then json_build_object('user_id', session.user_id,
      'oauth_client_id', session.oauth_client_id, 'scopes', session.scopes, 'refresh_counter', session.refresh_counter,
      'created_at', session.created_at, 'refreshed_at', session.refreshed_at, 'not_after', session.not_after,
      'banned_until', owner.banned_until, 'is_replaced', ${isReplaced(singlePerUser, 'session')}) end as session
  from unnest((select ${input.clientIds}::uuid[]), (select ${input.sessionIds}::uuid[]),
    (select ${input.machineIds}::uuid[])) with ordinality named (client_id, session_id, machine_id, place)
  left join ${sql.table('oauth_clients')} client on client.id = named.client_id
  left join ${sql.table('sessions')} session on session.id = named.session_id
  left join ${sql.table('users')} owner on owner.id = session.user_id
  left join ${sql.table('oauth_clients')} machine on machine.id = named.machine_id`

const select = prepared(query(false))
const selectOfNewest = prepared(query(true))
