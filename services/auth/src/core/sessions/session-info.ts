import { inDocument } from '@services/common/http/route-schema'
import type { Kysely } from 'kysely'
import { Type } from 'typebox'
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
  },
  { title: 'SessionInfo' },
)

/** Sessions shown at most; more than a person has devices. */
const MAX_SHOWN = 1_000

/** Lists a user's live sessions, newest first. Those past their limits wait for housekeeping. */
export async function listLiveSessions(
  { db, now, config }: { db: Kysely<DB>; now: () => Date; config: { sessions: SessionLimits } },
  userId: string,
) {
  const { singlePerUser } = config.sessions
  const sessions = await listSessions(db, userId, MAX_SHOWN)
  return sessions
    .map((session, index) => ({ ...session, is_replaced: singlePerUser && index > 0 }))
    .filter((session) => whyEnded(session, config.sessions, now()) === undefined)
    .map(({ is_replaced: _, ...session }) => ({
      ...session,
      created_at: session.created_at.toISOString(),
      refreshed_at: session.refreshed_at.toISOString(),
      not_after: session.not_after?.toISOString() ?? null,
    }))
}
