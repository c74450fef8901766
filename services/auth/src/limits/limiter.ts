// Counting against limits, for requests (http/rate-limit.ts) and for what costs money (sms/sms-guards.ts). The one rule:
// counters live in PostgreSQL, so that all replicas count together; keys already over are refused from memory. While the
// database is unreachable each process counts for itself: requests fail for other reasons then, not for this one.
import { createHash } from 'node:crypto'
import { tablePrefix } from '@services/common/database'
import { regardlessOfDeadline } from '@services/common/deadline'
import type pg from 'pg'
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import { apiError, type ErrorCode } from '../errors.ts'
import { countLimitHit } from '../metrics.ts'
import type { Rate } from './rate.ts'

export type Limiter = RateLimiterPostgres

/** Takes back what was counted, for what was not done after all. Never fails: a counter that is away expires by itself. */
export type GiveBack = () => Promise<void>

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
export async function consume(limiter: Limiter, key: string, code: ErrorCode): Promise<GiveBack> {
  try {
    await limiter.consume(key)
    return () => giveBack(limiter, key)
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal
    countLimitHit(limiter.keyPrefix)
    // Unless memory refused it, the refused one was counted as well. Left so it would take the place that the rest of a request
    // gives back: of two mails refused at the second, none leaves and none stays counted.
    if (refusal.consumedPoints > 0) await limiter.reward(key).catch(() => {})
    throw apiError(code, { retryAfterSeconds: Math.max(1, Math.ceil(refusal.msBeforeNext / 1000)) })
  }
}

async function giveBack(limiter: Limiter, key: string): Promise<void> {
  await limiter.reward(key).catch(() => {})
  // What was over may not be any more.
  limiter.deleteInMemoryBlockedAll()
}

/** Counts everywhere or nowhere, in this order: what one limit refuses is not done and uses up no other's share. */
export async function countAll(counts: (() => Promise<GiveBack>)[]): Promise<GiveBack> {
  const counted: GiveBack[] = []
  const undo: GiveBack = async () => {
    await regardlessOfDeadline(() => Promise.all(counted.map((takeBack) => takeBack())))
  }
  try {
    for (const count of counts) counted.push(await count())
  } catch (refusal) {
    await undo()
    throw refusal
  }
  return undo
}

/** Runs `work` after it was counted; work that throws has not been done and counts for nothing. */
export async function whileCounted<Result>(
  counts: (() => Promise<GiveBack>)[],
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

/** Addresses of people and of their machines are not stored as counter keys. */
export const keyOf = (identifier: string) => createHash('sha256').update(identifier).digest('base64url')
