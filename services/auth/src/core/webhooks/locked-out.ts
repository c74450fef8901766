import { ApiError } from '@services/common/errors'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { isWatched, noteChange } from '../../db/watched-users.ts'
import { lockUser } from '../users/users.store.ts'
import { hadEventSince } from './deliveries.store.ts'
import type { EventName } from './events.ts'

interface Deps {
  db: Kysely<DB>
  now: () => Date
  log: Pick<Logger, 'warn'>
}

/** One event an hour: an attack is thousands of refused attempts. */
const TELL_EVERY_MS = 3_600_000

const EVENT: EventName = 'security.locked_out'

/**
 * Runs an attempt that may be refused because too many have failed, and reports the refusal. Nothing is awaited: the
 * time of the answer would reveal that there is an account.
 */
export async function reportLock<Result>(
  deps: Deps,
  userId: string | undefined,
  how: 'password' | 'second_factor',
  attempt: () => Promise<Result>,
): Promise<Result> {
  try {
    return await attempt()
  } catch (error) {
    const isWait = error instanceof ApiError && error.code === 'over_request_rate_limit'
    if (isWait && userId !== undefined && isWatched(deps.db)) {
      void storeLock(deps, userId, how).catch((err) => deps.log.warn({ err, userId }, 'lock-out not reported'))
    }
    throw error
  }
}

async function storeLock({ db, now }: Deps, userId: string, how: string): Promise<void> {
  const since = new Date(now().getTime() - TELL_EVERY_MS)
  if (await hadEventSince(db, userId, EVENT, since)) return
  await db.transaction().execute(async (trx) => {
    await lockUser(trx, userId)
    if (await hadEventSince(trx, userId, EVENT, since)) return
    await noteChange(trx, { userId, event: EVENT, about: { reason: how } })
  })
}
