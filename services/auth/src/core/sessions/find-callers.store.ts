import { prepared } from '@services/common/database/prepared-statement'
import { expressionBuilder, type Kysely, sql } from 'kysely'
import type { Aal, AmrEntry, DB } from '../../db/tables.ts'
import { toUser, type UserJson, userJson } from '../users/users.store.ts'
import type { SessionLimits, SessionTimes } from './session-limits.ts'
import { isReplaced } from './sessions.store.ts'

interface FoundSession extends SessionTimes {
  id: string
  aal: Aal
  amr: AmrEntry[]
  /** Client of the OAuth server that it was given to; null: the account's own. */
  oauth_client_id: string | null
}

export interface NamedCaller {
  userId: string
  sessionId: string | undefined
}

type FoundCaller = Awaited<ReturnType<typeof findCaller>>
export type FindCaller = (caller: NamedCaller) => Promise<FoundCaller>

/** Finds the user of a token and, while its row exists, the session. */
export async function findCaller(db: Kysely<DB>, caller: NamedCaller, limits: Pick<SessionLimits, 'singlePerUser'>) {
  return (await findCallers(db, [caller], limits))[0]
}

/** Finds several callers in one statement, in the given order; undefined for an unknown user. */
export async function findCallers(
  db: Kysely<DB>,
  callers: readonly NamedCaller[],
  { singlePerUser }: Pick<SessionLimits, 'singlePerUser'>,
) {
  const select = singlePerUser ? selectCallersOfNewest : selectCallers
  const rows = await select(db, {
    userIds: callers.map(({ userId }) => userId),
    sessionIds: callers.map(({ sessionId }) => sessionId ?? null),
  })
  const found = new Map(
    rows.map(({ place, user, ...session }) => [
      place,
      { user: toUser(user), session: session.id === null ? undefined : session },
    ]),
  )
  return callers.map((_, index) => found.get(index + 1))
}

type CallerRow = { place: number; user: UserJson } & (FoundSession | { id: null })

const callersQuery =
  (singlePerUser: boolean) => (_: Kysely<DB>, input: { userIds: string[]; sessionIds: (string | null)[] }) =>
    sql<CallerRow>`
      select named.place, session.id, session.aal, session.amr, session.created_at, session.refreshed_at, session.not_after,
        session.oauth_client_id, ${isReplaced(singlePerUser, 'session')} as is_replaced, ${userJson(expressionBuilder<DB, 'users'>())}
      from unnest((select ${input.userIds}::uuid[]), (select ${input.sessionIds}::uuid[]))
        with ordinality named (user_id, session_id, place)
      join ${sql.table('users')} on ${sql.ref('users.id')} = named.user_id
      left join ${sql.table('sessions')} session on session.user_id = named.user_id and session.id = named.session_id`

const selectCallers = prepared(callersQuery(false))
const selectCallersOfNewest = prepared(callersQuery(true))
