// Counting against limits, for requests (http/rate-limit.ts) and for what costs money (core/limits/sms-guards.ts). The one rule:
// counters live in PostgreSQL and go by its clock, so that all replicas count together; keys without points are refused from
// memory. While the database is unreachable each process counts for itself: requests fail for other reasons then, not for this one.
import { createHash } from 'node:crypto'
import { regardlessOfDeadline } from '@services/common/deadline'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError, type ErrorCode } from '../../errors.ts'
import { countLimitHit } from '../../metrics.ts'
import type { Rate } from './rate.ts'
import { countPoint, giveBackPoint } from './rate-limits.store.ts'
import { createWindows } from './windows.ts'

/** A counter shared by all replicas. */
export interface Limiter {
  name: string
  /** Counts one: how to take it back, or the milliseconds left when there were too many, which counts none. */
  count(key: string): Promise<GiveBack | number>
}

export interface LimiterDeps {
  db: Kysely<DB>
  now: () => Date
}

/** Takes back what was counted, for what was not done after all. Never fails: a counter that is away expires by itself. */
export type GiveBack = () => Promise<void>

/** `name` is the counter's own among all counters. */
export function openLimiter({ db, now }: LimiterDeps, name: string, { points, seconds }: Rate): Limiter {
  const windowMs = Math.ceil(seconds * 1000)
  const over = createWindows(now)
  const insurance = createWindows(now)
  return {
    name,
    async count(key) {
      if (points <= 0) return windowMs
      const blockedMs = over.leftMs(key)
      if (blockedMs > 0) return blockedMs
      const point = { key: `${name}:${key}`, at: now().getTime(), windowMs }
      try {
        const waitMs = await countPoint(db, { ...point, points })
        if (waitMs > 0) over.begin(key, point.at + waitMs)
        return waitMs || giveBack(point)
      } catch {
        return insurance.count(key, windowMs) > points ? insurance.leftMs(key) : async () => {}
      }
    },
  }
  function giveBack(point: Parameters<typeof giveBackPoint>[1]): GiveBack {
    return async () => {
      await giveBackPoint(db, point).catch(() => {})
      // A key that was blocked may have a point left.
      over.clear()
    }
  }
}

/** Counts one; throws `code` with the time left when there were too many. */
export async function consume(limiter: Limiter, key: string, code: ErrorCode): Promise<GiveBack> {
  const counted = await limiter.count(key)
  if (typeof counted === 'function') return counted
  countLimitHit(limiter.name)
  throw apiError(code, { retryAfterSeconds: Math.max(1, Math.ceil(counted / 1000)) })
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
