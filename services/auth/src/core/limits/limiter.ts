// Limits of requests (http/limits/rate-limit.ts) and messages (mail-guards.ts, sms-guards.ts). Counters live in
// PostgreSQL and use its clock, so all replicas count together; used-up keys are refused from memory. While the
// database is unreachable each process counts for itself. Tests: test/limits.test.ts, test/replicas.test.ts,
// adapters/sms/sms-guards.test.ts. Attempts at passwords count their own way, in password-attempts.ts.
import { createHash } from 'node:crypto'
import { ApiError } from '@services/common/errors'
import { regardlessOfDeadline } from '@services/common/request-deadline'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type ErrorCode, errorCatalogue } from '../../errors.ts'
import { countLimitHit } from '../../metrics.ts'
import type { Rate } from './rate.ts'
import { countPoint, refundPoint } from './rate-limits.store.ts'

/** Setting that the rate of a limit comes from. */
export type LimitSetting =
  | `AUTH_RATE_LIMIT_${'EMAIL_SENT' | 'SMS_SENT' | 'TOKEN_REFRESH' | 'VERIFY' | 'OTP' | 'ANONYMOUS_USERS' | 'WEB3' | 'PASSKEY' | 'O_AUTH_DYNAMIC_CLIENT_REGISTER'}`
  | `AUTH_SMS_${'MAX_PER_NUMBER' | 'MAX_PER_PREFIX' | 'DAILY_BUDGET'}`
  | 'AUTH_MAILER_MAX_PER_ADDRESS'
  | 'AUTH_MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY'

/** Identity of a limit: a name unique among all counters, and the setting of its rate, null where none changes it. */
export interface LimitId {
  name: string
  setting: LimitSetting | null
}

export interface Limiter extends LimitId {
  /** Counts one and returns a function that undoes it; at the limit counts none and returns the milliseconds left. */
  count(key: string): Promise<Refund | number>
}

export interface LimiterDeps {
  db: Kysely<DB>
  now: () => Date
}

/** Takes back a count whose work was not done. Never fails: a counter that cannot be reached expires by itself. */
export type Refund = () => Promise<void>

export function openLimiter({ db, now }: LimiterDeps, { name, setting }: LimitId, { points, seconds }: Rate): Limiter {
  const windowMs = Math.ceil(seconds * 1000)
  const over = createWindows(now)
  const insurance = createWindows(now)
  return {
    name,
    setting,
    async count(key) {
      if (points <= 0) return windowMs
      const blockedMs = over.leftMs(key)
      if (blockedMs > 0) return blockedMs
      const point = { key: `${name}:${key}`, at: now().getTime(), windowMs }
      try {
        const waitMs = await countPoint(db, { ...point, points })
        if (waitMs > 0) over.begin(key, point.at + waitMs)
        return waitMs || refund(point)
      } catch {
        return insurance.count(key, windowMs) > points ? insurance.leftMs(key) : async () => {}
      }
    },
  }
  function refund(point: Parameters<typeof refundPoint>[1]): Refund {
    return async () => {
      await refundPoint(db, point).catch(() => {})
      // A blocked key may have a point left.
      over.clear()
    }
  }
}

/** Callers choose the keys: from this many on, expired ones are dropped. */
const MANY = 10_000

/** Windows of time by key, in this process's memory; `until` in milliseconds since 1970. */
function createWindows(now: () => Date) {
  const windows = new Map<string, { until: number; count: number }>()
  const live = (key: string) => {
    const found = windows.get(key)
    return found && found.until > now().getTime() ? found : undefined
  }
  const begin = (key: string, until: number) => {
    if (windows.size >= MANY) {
      for (const each of windows.keys()) if (!live(each)) windows.delete(each)
      // None has expired: a flood of keys, whose memory is worth more than its counts.
      if (windows.size >= MANY) windows.clear()
    }
    const begun = { until, count: 0 }
    windows.set(key, begun)
    return begun
  }
  return {
    begin,
    leftMs: (key: string) => Math.max(0, (live(key)?.until ?? 0) - now().getTime()),
    /** Counts one in the key's window, which begins with the first. */
    count: (key: string, ms: number) => ++(live(key) ?? begin(key, now().getTime() + ms)).count,
    clear: () => windows.clear(),
  }
}

/** The refusal of a limit; logs name its setting, answers do not. */
export class LimitReached extends ApiError<ErrorCode> {
  readonly setting: LimitSetting | null

  constructor(code: ErrorCode, { setting }: LimitId, retryAfterSeconds: number) {
    const { status, message } = errorCatalogue[code]
    super(code, status, message, { retryAfterSeconds })
    this.setting = setting
  }
}

/** Counts one; at the limit it throws `code` with the time left. */
export async function consume(limiter: Limiter, key: string, code: ErrorCode): Promise<Refund> {
  const counted = await limiter.count(key)
  if (typeof counted === 'function') return counted
  countLimitHit(limiter.name)
  throw new LimitReached(code, limiter, Math.max(1, Math.ceil(counted / 1000)))
}

/** Counts in all, in this order, or in none: work that one limit refuses uses up no other. */
export async function countAll(counts: (() => Promise<Refund>)[]): Promise<Refund> {
  const counted: Refund[] = []
  const undo: Refund = async () => {
    await regardlessOfDeadline(() => Promise.all(counted.map((refund) => refund())))
  }
  try {
    for (const count of counts) counted.push(await count())
  } catch (refusal) {
    await undo()
    throw refusal
  }
  return undo
}

/** Runs `work` after it was counted; work that throws does not count. */
export async function whileCounted<Result>(
  counts: (() => Promise<Refund>)[],
  work: () => Promise<Result>,
): Promise<Result> {
  const undo = await countAll(counts)
  try {
    return await work()
  } catch (error) {
    await undo()
    throw error
  }
}

/** Hashes an address: counter keys hold no personal data. */
export const keyOf = (identifier: string) => createHash('sha256').update(identifier).digest('base64url')
