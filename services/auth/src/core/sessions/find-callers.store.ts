import { prepared } from '@services/common/prepared'
import { type Kysely, sql } from 'kysely'
import type { Aal, AmrEntry, DB } from '../../db/tables.ts'
import { toUser, userJson } from '../users/users.store.ts'
import type { SessionLimits, SessionTimes } from './session-limits.ts'
import { isReplaced } from './sessions.store.ts'

interface FoundSession extends SessionTimes {
  id: string
  aal: Aal
  amr: AmrEntry[]
}

/** Whom a token names. */
export interface NamedCaller {
  userId: string
  sessionId: string | undefined
}

type FoundCaller = Awaited<ReturnType<typeof findCaller>>
export type FindCaller = (caller: NamedCaller) => Promise<FoundCaller>

/** The caller of a request: the user and, while its row is there, the token's session. */
export async function findCaller(db: Kysely<DB>, caller: NamedCaller, limits: Pick<SessionLimits, 'singlePerUser'>) {
  return (await findCallers(db, [caller], limits))[0]
}

/** Those of several requests, in their order, by one statement; undefined where there is no such user. */
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
  const found = new Map(rows.map((row) => [row.place, row]))
  return callers.map((_, index) => {
    const row = found.get(index + 1)
    if (!row) return undefined
    const { session_id: id, aal, amr, session_created_at: created_at, refreshed_at, not_after, is_replaced } = row
    const session = id && { id, aal, amr, created_at, refreshed_at, not_after, is_replaced }
    return { user: toUser(row.user), session: session ? (session as FoundSession) : undefined }
  })
}

const callersQuery =
  (singlePerUser: boolean) => (db: Kysely<DB>, asked: { userIds: string[]; sessionIds: (string | null)[] }) =>
    db
      .selectFrom(
        sql<{ user_id: string; session_id: string | null; place: number }>`
          unnest((select ${asked.userIds}::uuid[]), (select ${asked.sessionIds}::uuid[])) with ordinality`.as<'asked'>(
          sql`asked(user_id, session_id, place)`,
        ),
      )
      .innerJoin('users', 'users.id', 'asked.user_id')
      .leftJoin('sessions', (join) =>
        join.onRef('sessions.user_id', '=', 'users.id').onRef('sessions.id', '=', 'asked.session_id'),
      )
      .select([
        'asked.place',
        'sessions.id as session_id',
        'sessions.aal',
        'sessions.amr',
        'sessions.created_at as session_created_at',
        'sessions.refreshed_at',
        'sessions.not_after',
        isReplaced(singlePerUser).as('is_replaced'),
      ])
      .select(userJson)

const selectCallers = prepared(callersQuery(false))
const selectCallersOfNewest = prepared(callersQuery(true))
