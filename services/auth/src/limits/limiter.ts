// Counting against limits, for requests (http/rate-limit.ts) and for what costs money (sms/sms-guards.ts). The one rule:
// counters live in PostgreSQL, so that all replicas count together; keys already over are refused from memory. While the
// database is unreachable each process counts for itself: requests fail for other reasons then, not for this one.
import { createHash } from 'node:crypto'
import { tablePrefix } from '@services/common/database'
import type pg from 'pg'
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import { apiError, type ErrorCode } from '../errors.ts'
import { countLimitHit } from '../metrics.ts'
import type { Rate } from './rate.ts'

export type Limiter = RateLimiterAbstract

/** A counter shared by all replicas; `name` is its own among all counters. */
export function openLimiter(pool: pg.Pool, namespace: string, name: string, { points, seconds }: Rate): Limiter {
  return new RateLimiterPostgres({
    keyPrefix: name,
    points,
    duration: seconds,
    storeClient: pool,
    storeType: 'pool',
    tableName: `${tablePrefix(namespace)}rate_limits`,
    tableCreated: true,
    clearExpiredByTimeout: false,
    inMemoryBlockOnConsumed: points + 1,
    insuranceLimiter: new RateLimiterMemory({ keyPrefix: name, points, duration: seconds }),
  })
}

/** Counts one; throws `code` with the time left when there were too many. */
export async function consume(limiter: Limiter, key: string, code: ErrorCode): Promise<void> {
  try {
    await limiter.consume(key)
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal
    countLimitHit(limiter.keyPrefix)
    throw apiError(code, { retryAfterSeconds: Math.max(1, Math.ceil(refusal.msBeforeNext / 1000)) })
  }
}

/** Addresses of people are not stored as counter keys. */
export const keyOf = (identifier: string) => createHash('sha256').update(identifier).digest('base64url')
