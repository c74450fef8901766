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
 * database is unreachable each process counts for itself: requests fail for other reasons then, not for this one. Tries
 * at passwords are the exception to both: right ones are taken back, which memory would not learn.
 */
export interface Limits {
  /** Counts the request against its client address; nothing is limited without a trusted header. */
  byAddress(request: FastifyRequest, limit: AddressLimit): Promise<void>
  /** Counts a mail against the budget of all users. */
  mailSent(): Promise<void>
  /**
   * Counts a try at an account's password before it is looked at, or parallel guesses would all pass; refuses when there
   * were too many. `identifier` is what was typed, known or not.
   */
  beforeSignIn(identifier: string): Promise<void>
  /** Takes the count of a right password back. */
  passwordWasRight(identifier: string): Promise<void>
}

export type AddressLimit = 'signup' | 'anonymous' | 'token' | 'verify' | 'user'

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
  }
  const mails = open('mails', limits.mailsSent)
  const failures = openLimiter(pool, config.database.namespace, 'sign-ins', {
    points: limits.failedSignInsPer15Minutes,
    seconds: 900,
  })

  return {
    async byAddress(request, limit) {
      const address = limitedAddress(request, limits.header, config.server.trustSbForwardedFor)
      if (address) await consume(perAddress[limit], address, 'over_request_rate_limit')
    },
    mailSent: () => consume(mails, 'all', 'over_email_send_rate_limit'),
    beforeSignIn: (identifier) => consume(failures, keyOf(identifier), 'over_request_rate_limit'),
    async passwordWasRight(identifier) {
      await failures.reward(keyOf(identifier))
    },
  }
}

function openLimiter(
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

async function consume(limiter: RateLimiterAbstract, key: string, code: ErrorCode): Promise<void> {
  try {
    await limiter.consume(key)
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) throw limitError(refusal, code)
    throw refusal
  }
}

const limitError = (refusal: RateLimiterRes, code: ErrorCode) =>
  apiError(code, { retryAfterSeconds: Math.max(1, Math.ceil(refusal.msBeforeNext / 1000)) })

/** Addresses of people are not stored as counter keys. */
const keyOf = (identifier: string) => createHash('sha256').update(identifier).digest('base64url')

/** The address a trusted proxy vouches for; X-Forwarded-For is never used, a client can write it. */
function limitedAddress(request: FastifyRequest, header: string | undefined, trustSbForwardedFor: boolean) {
  const trusted = trustSbForwardedFor ? trustedAddress(request) : undefined
  if (trusted || !header) return trusted
  const [first] = String(request.headers[header] ?? '').split(',', 1)
  return first?.trim().slice(0, 200) || undefined
}
