import { createHash } from 'node:crypto'
import { tablePrefix } from '@services/common/database'
import type { FastifyRequest } from 'fastify'
import type pg from 'pg'
import {
  type IRateLimiterPostgresOptions,
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterPostgres,
  RateLimiterRes,
} from 'rate-limiter-flexible'
import type { Config, Rate } from '../config.ts'
import { apiError, type ErrorCode } from '../errors.ts'
import { trustedAddress } from './client.ts'

/**
 * Limits live in PostgreSQL, so that all replicas count together; keys already over are refused from memory. While the
 * database is unreachable each process counts for itself: requests fail for other reasons then, not for this one. Wrong
 * passwords are the exception to both: they are read before each try, from the one place that knows.
 */
export interface Limits {
  /** Counts the request against its client address; nothing is limited without a trusted header. */
  byAddress(request: FastifyRequest, limit: AddressLimit): Promise<void>
  /** Counts a mail against the budget of all users. */
  mailSent(): Promise<void>
  /**
   * Runs a try at an account's password, which tells whether it was right; refuses when there were too many wrong ones.
   * Tries under way count as wrong until they are known, or parallel guesses would all pass. `identifier` is what was
   * typed, known or not.
   */
  passwordTry(identifier: string, isRight: () => Promise<boolean>): Promise<boolean>
}

export type AddressLimit =
  | 'signup'
  | 'anonymous'
  | 'token'
  | 'verify'
  | 'user'
  | 'otp'
  | 'magiclink'
  | 'recover'
  | 'resend'

const FIVE_MINUTES = 300

export function createLimits(
  pool: pg.Pool,
  config: { limits: Config['limits']; database: { namespace: string }; server: { trustSbForwardedFor: boolean } },
): Limits {
  const { limits } = config
  const open = (name: string, rate: Rate) =>
    openLimiter(pool, config.database.namespace, name, rate, {
      inMemoryBlockOnConsumed: rate.points + 1,
      insuranceLimiter: new RateLimiterMemory({ keyPrefix: name, points: rate.points, duration: rate.seconds }),
    })
  const perAddress: Record<AddressLimit, RateLimiterAbstract> = {
    signup: open('signup', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    anonymous: open('anonymous', { points: limits.anonymousPerHour, seconds: 3600 }),
    token: open('token', { points: limits.tokenPer5Minutes, seconds: FIVE_MINUTES }),
    verify: open('verify', { points: limits.verifyPer5Minutes, seconds: FIVE_MINUTES }),
    user: open('user', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    otp: open('otp', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    magiclink: open('magiclink', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    recover: open('recover', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
    resend: open('resend', { points: limits.otpPer5Minutes, seconds: FIVE_MINUTES }),
  }
  const mails = open('mails', limits.mailsSent)
  const failures = openLimiter(pool, config.database.namespace, 'sign-ins', {
    points: limits.failedSignInsPer15Minutes,
    seconds: 900,
  })

  /** Per process: replicas learn of each other's tries when they turn out wrong. */
  const underWay = new Map<string, number>()

  return {
    async byAddress(request, limit) {
      const address = limitedAddress(request, limits.header, config.server.trustSbForwardedFor)
      if (address) await consume(perAddress[limit], address, 'over_request_rate_limit')
    },
    mailSent: () => consume(mails, 'all', 'over_email_send_rate_limit'),
    async passwordTry(identifier, isRight) {
      const key = keyOf(identifier)
      const waiting = underWay.get(key) ?? 0
      underWay.set(key, waiting + 1)
      try {
        const wrong = await failures.get(key)
        if ((wrong?.consumedPoints ?? 0) + waiting >= limits.failedSignInsPer15Minutes) {
          throw limitError(wrong, 'over_request_rate_limit')
        }
        const right = await isRight()
        if (!right) await failures.penalty(key)
        return right
      } finally {
        const left = (underWay.get(key) ?? 1) - 1
        if (left === 0) underWay.delete(key)
        else underWay.set(key, left)
      }
    },
  }
}

/** A counter shared by all replicas; `name` is its own among all counters. */
export function openLimiter(
  pool: pg.Pool,
  namespace: string,
  name: string,
  rate: Rate,
  options: Partial<IRateLimiterPostgresOptions> = {},
): RateLimiterAbstract {
  return new RateLimiterPostgres({
    keyPrefix: name,
    points: rate.points,
    duration: rate.seconds,
    storeClient: pool,
    storeType: 'pool',
    tableName: `${tablePrefix(namespace)}rate_limits`,
    tableCreated: true,
    clearExpiredByTimeout: false,
    ...options,
  })
}

/** Counts one; throws `code` with the time left when there were too many. */
export async function consume(limiter: RateLimiterAbstract, key: string, code: ErrorCode): Promise<void> {
  try {
    await limiter.consume(key)
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) throw limitError(refusal, code)
    throw refusal
  }
}

const limitError = (refusal: RateLimiterRes | null, code: ErrorCode) =>
  apiError(code, { retryAfterSeconds: Math.max(1, Math.ceil((refusal?.msBeforeNext ?? 0) / 1000)) })

/** Addresses of people are not stored as counter keys. */
export const keyOf = (identifier: string) => createHash('sha256').update(identifier).digest('base64url')

/** The address a trusted proxy vouches for; X-Forwarded-For is never used, a client can write it. */
function limitedAddress(request: FastifyRequest, header: string | undefined, trustSbForwardedFor: boolean) {
  const trusted = trustSbForwardedFor ? trustedAddress(request) : undefined
  if (trusted || !header) return trusted
  const [first] = String(request.headers[header] ?? '').split(',', 1)
  return first?.trim().slice(0, 200) || undefined
}
