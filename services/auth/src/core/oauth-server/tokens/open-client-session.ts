import { batchLoads } from '@services/common/concurrency/batch-loads'
import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../../db/tables.ts'
import type { SessionLimits } from '../../sessions/session-limits.ts'
import { type CodeKind, type OpenedSession, type Opening, openClientSessions } from './open-client-session.store.ts'

/** Uses up an approved code and starts its session; undefined if nothing may come of it. */
export type OpenClientSession = (
  kind: CodeKind,
  opening: Opening,
  trx?: Transaction<DB>,
) => Promise<OpenedSession | undefined>

/** Most codes that one statement uses up. */
const MAX_TOGETHER = 32

/**
 * Exchanges concurrent codes of browsers in one statement; those it skips run again alone. One in a transaction of its
 * caller always runs alone.
 */
export function createOpenClientSession({
  db,
  now,
  config: { sessions },
}: {
  db: Kysely<DB>
  now: () => Date
  config: { sessions: SessionLimits }
}): OpenClientSession {
  const open = batchLoads<Opening, OpenedSession | undefined | 'skipped'>(async (openings) => {
    const opened = await openClientSessions(db, 'authorization_code', openings, now(), sessions)
    return openings.length === 1 ? opened : opened.map((session) => session ?? 'skipped')
  }, MAX_TOGETHER)
  return async (kind, opening, trx) => {
    const opened = trx || kind === 'device_code' ? 'skipped' : await open(opening)
    if (opened !== 'skipped') return opened
    return (await openClientSessions(trx ?? db, kind, [opening], now(), sessions))[0]
  }
}
