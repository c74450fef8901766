import { createHash } from 'node:crypto'
import { tablePrefix } from '@services/common/database'
import type { FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import type pg from 'pg'
import {
  type IRateLimiterPostgresOptions,
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterPostgres,
  RateLimiterRes,
} from 'rate-limiter-flexible'
import type { Config } from '../config.ts'
import type { DB } from '../db/tables.ts'
import { apiError, type ErrorCode } from '../errors.ts'
import { countLimitHit } from '../metrics.ts'
import type { Rate } from '../setting-parsers.ts'
import { trustedClientAddress } from './client.ts'
import { createPasswordTries, type PasswordTries } from './password-tries.ts'

/**
 * Limits live in PostgreSQL, so that all replicas count together; keys already over are refused from memory. While the
 * database is unreachable each process counts for itself: requests fail for other reasons then, not for this one. Tries at
 * passwords are the exception to both, see password-tries.ts.
 */
export interface Limits {
  /** Counts the request against its client address; nothing is limited without a trusted header. */
  byAddress(request: FastifyRequest, limit: AddressLimit): Promise<void>
  /** Counts a mail against the budget of all users. */
  mailSent(): Promise<void>
  /** Counts a wish of a user for another address, whose answer tells whether somebody has it. */
  addressChange(userId: string): Promise<void>
  /** Runs a try at an account's password, which tells whether it was right; refuses while misses cost a wait. */
  passwordTry: PasswordTries
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

/** Nobody changes address more often; whoever asks for strangers' learns little. */
const ADDRESS_CHANGES = { points: 10, seconds: 3600 }

export function createLimits(
  { pool, db, now }: { pool: pg.Pool; db: Kysely<DB>; now: () => Date },
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
  const addressChanges = open('address-change', ADDRESS_CHANGES)

  return {
    async byAddress(request, limit) {
      const address = trustedClientAddress(request, config)
      if (address) await consume(perAddress[limit], address, 'over_request_rate_limit')
    },
    mailSent: () => consume(mails, 'all', 'over_email_send_rate_limit'),
    addressChange: (userId) => consume(addressChanges, userId, 'over_request_rate_limit'),
    passwordTry: createPasswordTries({ db, now }, { freeMisses: limits.freeWrongPasswords }),
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
    if (!(refusal instanceof RateLimiterRes)) throw refusal
    countLimitHit(limiter.keyPrefix)
    throw limitError(refusal, code)
  }
}

const limitError = (refusal: RateLimiterRes, code: ErrorCode) =>
  apiError(code, { retryAfterSeconds: Math.max(1, Math.ceil(refusal.msBeforeNext / 1000)) })

/** Addresses of people are not stored as counter keys. */
export const keyOf = (identifier: string) => createHash('sha256').update(identifier).digest('base64url')
