import { inDocument } from '@services/common/http/route-schema'
import type { Kysely } from 'kysely'
import { Type } from 'typebox'
import { cutPage, type Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'
import { type SessionLimits, whyEnded } from './session-limits.ts'
import { listSessions } from './sessions.store.ts'

const Timestamp = Type.String({ format: 'date-time' })

/** A session as its owner and admins see it: enough to recognise a device, and no secret. */
export const SessionInfoShape = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    created_at: Timestamp,
    refreshed_at: Timestamp,
    not_after: Type.Union([Timestamp, Type.Null()], {
      description: 'Latest end of the session; null when it has none.',
    }),
    aal: Type.String({ description: 'aal2 after a second factor.', ...inDocument({ enum: ['aal1', 'aal2'] }) }),
    user_agent: Type.Union([Type.String(), Type.Null()]),
    ip: Type.Union([Type.String(), Type.Null()], {
      description: 'Address that the client claims; fit for display only.',
    }),
    client: Type.Optional(
      Type.Object(
        { id: Type.String(), name: Type.Optional(Type.String()) },
        { description: "Application of the OAuth server that has the session; absent for the user's own." },
      ),
    ),
  },
  { title: 'SessionInfo' },
)

/** Sessions shown at most; more than a person has devices. */
const MAX_SHOWN = 1_000

interface Listing {
  db: Kysely<DB>
  now: () => Date
  config: { sessions: SessionLimits }
}

/** Lists a user's live sessions, newest first. */
export const listLiveSessions = async (deps: Listing, userId: string) =>
  (await listLiveSessionsAfter(deps, userId, { limit: MAX_SHOWN, after: undefined })).sessions

/**
 * Lists live sessions after a position, newest first; `next` is the last one's, if more follow. Those past their limits
 * wait for housekeeping and are left out, so a page can have fewer.
 */
export async function listLiveSessionsAfter(
  { db, now, config }: Listing,
  userId: string,
  { limit, after }: { limit: number; after: Position | undefined },
) {
  const { singlePerUser } = config.sessions
  const { page, next } = cutPage(await listSessions(db, userId, limit + 1, after), limit)
  const sessions = page
    .map((session, index) => ({ ...session, is_replaced: singlePerUser && (after !== undefined || index > 0) }))
    .filter((session) => whyEnded(session, config.sessions, now()) === undefined)
    .map(({ is_replaced: _, client, ...session }) => ({
      ...{ ...session, ...(client && { client }) },
      created_at: session.created_at.toISOString(),
      refreshed_at: session.refreshed_at.toISOString(),
      not_after: session.not_after?.toISOString() ?? null,
    }))
  return { sessions, next }
}
