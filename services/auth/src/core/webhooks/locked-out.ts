import { ApiError } from '@services/common/errors'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { noteChange, wantsEvent } from '../../db/watched-users.ts'
import { lockIdleUser } from '../users/users.store.ts'
import { findEventTime } from './deliveries.store.ts'
import type { EventName } from './events.ts'

interface Deps {
  db: Kysely<DB>
  now: () => Date
  log: Pick<Logger, 'warn'>
}

/** One event an hour: an attack is thousands of refused attempts. */
const TELL_EVERY_MS = 3_600_000

/** Remembered users at most; one that is forgotten costs a statement. */
const MAX_REMEMBERED = 10_000

const EVENT: EventName = 'security.locked_out'

interface Reports {
  isRunning: boolean
  /** Time of the last event by user, oldest first. */
  times: Map<string, number>
}

/** Reports of this process. */
const reportsOf = new WeakMap<Kysely<DB>, Reports>()

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
    if (isWait && userId !== undefined && wantsEvent(deps.db, EVENT)) {
      void report(deps, userId, how).catch((err) => deps.log.warn({ err, userId }, 'lock-out not reported'))
    }
    throw error
  }
}

/** One report at a time: guesses must not take the connections. A user that is left out has the next guess. */
async function report(deps: Deps, userId: string, how: string): Promise<void> {
  const reports = reportsOf.get(deps.db) ?? { isRunning: false, times: new Map() }
  reportsOf.set(deps.db, reports)
  const last = reports.times.get(userId)
  if (reports.isRunning || (last !== undefined && last > deps.now().getTime() - TELL_EVERY_MS)) return
  reports.isRunning = true
  try {
    const time = await storeLock(deps, userId, how)
    reports.times.delete(userId)
    if (time) reports.times.set(userId, time.getTime())
    const [oldest] = reports.times.keys()
    if (oldest !== undefined && reports.times.size > MAX_REMEMBERED) reports.times.delete(oldest)
  } finally {
    reports.isRunning = false
  }
}

/** Returns the time of the event, also of one that another process wrote. Undefined if there is none. */
async function storeLock({ db, now }: Deps, userId: string, how: string): Promise<Date | undefined> {
  const time = now()
  return db.transaction().execute(async (trx) => {
    if (!(await lockIdleUser(trx, userId))) return undefined
    const told = await findEventTime(trx, userId, EVENT, new Date(time.getTime() - TELL_EVERY_MS))
    if (told) return told
    await noteChange(trx, { userId, event: EVENT, about: { reason: how } })
    return time
  })
}
