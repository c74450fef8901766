import { tablePrefix } from '@services/common/database/pool'
import { ApiError } from '@services/common/errors'
import { readTrustedHeader } from '@services/common/http/client-address'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type pg from 'pg'
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { Rate } from '../config/limits.ts'
import type { Config } from '../config.ts'
import { apiError } from '../errors.ts'

export type TokenLimit = 'upload' | 'import' | 'read'

export type RateLimits = ReturnType<typeof createRateLimits>

interface Limit {
  rate: Rate
  limiter: RateLimiterAbstract
}

/**
 * Limits the rate of calls, counted in PostgreSQL for all replicas together; keys over their limit are refused from
 * memory. While the database is unreachable each process counts for itself.
 */
export function createRateLimits(pool: pg.Pool, { limits, database }: Pick<Config, 'limits' | 'database'>) {
  const limiters = new Map<string, RateLimiterAbstract>()
  const limiterOf = (name: string, rate: Rate) => {
    const key = `${name}:${rate.points}:${rate.seconds}`
    const limiter = limiters.get(key) ?? openLimiter(pool, database.namespace, name, rate)
    limiters.set(key, limiter)
    return limiter
  }

  /** Returns the rate-limit key of the caller: the token, or the client address without one. */
  const keyOf = (request: FastifyRequest): string => request.apiToken?.id ?? addressKeyOf(request, limits.header)

  /** Shortest window first: a call that it refuses does not count for the others. */
  const limitsOf = ({ apiToken: token }: FastifyRequest, limit: TokenLimit): Limit[] => {
    const named = (name: string, rate: Rate) => ({ rate, limiter: limiterOf(name, rate) })
    if (!token && limit !== 'read') return [named('anonymous', limits.anonymous)]
    if (!token) return limits.header === undefined ? [] : [named('read', limits.read)]
    const usual = limits[limit]
    const rate = { ...usual, points: token.limits[limit] ?? usual.points }
    if (limit !== 'import') return [named(limit, rate)]
    const burst = limits.importBurst
    const points = Math.ceil(burst.points * Math.max(1, rate.points / usual.points))
    return [named('import burst', { ...burst, points }), named(limit, rate)]
  }

  const counted = new WeakMap<FastifyRequest, { limit: TokenLimit; points: number }>()
  /** Counts a call under a key that the caller made. Throws rate_limited. */
  async function countKey(name: string, rate: Rate, key: string): Promise<void> {
    const { state, isOver } = await consume(limiterOf(name, rate), key)
    const retryAfterSeconds = Math.max(1, Math.ceil(state.msBeforeNext / 1000))
    if (isOver) throw apiError('rate_limited', { retryAfterSeconds })
  }

  return {
    keyOf,
    /**
     * Counts the call and reports the rest in headers (draft-ietf-httpapi-ratelimit-headers); of two limits the one
     * with less left. Throws rate_limited. `read` counts a caller without a token only by a known address: otherwise
     * one caller could block public routes for all. A request that does the work of several calls counts the further
     * ones itself.
     */
    async count(request: FastifyRequest, reply: FastifyReply, limit: TokenLimit, points = 1): Promise<void> {
      let nearest = Number.POSITIVE_INFINITY
      for (const { rate, limiter } of limitsOf(request, limit)) {
        const { state, isOver } = await consume(limiter, keyOf(request), points)
        const resetSeconds = Math.max(1, Math.ceil(state.msBeforeNext / 1000))
        const remaining = Math.max(0, state.remainingPoints)
        if (isOver || remaining < nearest) {
          reply.headers({
            'ratelimit-limit': rate.points,
            'ratelimit-remaining': remaining,
            'ratelimit-reset': resetSeconds,
            'ratelimit-policy': `${rate.points};w=${rate.seconds}`,
          })
        }
        nearest = Math.min(nearest, remaining)
        if (isOver) throw apiError('rate_limited', { retryAfterSeconds: resetSeconds })
      }
      counted.set(request, { limit, points: points + (counted.get(request)?.points ?? 0) })
    },
    countKey,
    /**
     * Counts a variant that is made for a caller of known address. Throws rate_limited; an image has no use for
     * headers.
     */
    async countVariant(request: FastifyRequest): Promise<void> {
      if (limits.header !== undefined) await countKey('variant', limits.variants, addressKeyOf(request, limits.header))
    },
    /** `onError` hook: takes back the count of a call answered "retry later" (503, queue_full), if it was counted. */
    async refund(request: FastifyRequest, reply: FastifyReply, error: unknown): Promise<void> {
      const call = counted.get(request)
      if (!call || !isSentAway(error)) return
      const left: number[] = []
      for (const { rate, limiter } of limitsOf(request, call.limit)) {
        const { remainingPoints } = await limiter.reward(keyOf(request), call.points)
        left.push(Math.min(rate.points, remainingPoints))
      }
      reply.header('ratelimit-remaining', Math.min(...left))
    },
  }
}

const isSentAway = (error: unknown) =>
  error instanceof ApiError && (error.status === 503 || error.code === 'queue_full')

/** Longest time a key is refused from memory, so that a raised limit takes effect soon. */
const MEMORY_BLOCK_SECONDS = 10

function openLimiter(pool: pg.Pool, namespace: string, name: string, rate: Rate): RateLimiterAbstract {
  const counts = { keyPrefix: name, points: rate.points, duration: rate.seconds }
  return new RateLimiterPostgres({
    ...counts,
    storeClient: pool,
    storeType: 'pool',
    tableName: `${tablePrefix(namespace)}rate_limits`,
    tableCreated: true,
    clearExpiredByTimeout: false,
    inMemoryBlockOnConsumed: rate.points + 1,
    inMemoryBlockDuration: Math.min(rate.seconds, MEMORY_BLOCK_SECONDS),
    insuranceLimiter: new RateLimiterMemory(counts),
  })
}

async function consume(
  limiter: RateLimiterAbstract,
  key: string,
  points = 1,
): Promise<{ state: RateLimiterRes; isOver: boolean }> {
  try {
    return { state: await limiter.consume(key, points), isOver: false }
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) return { state: refusal, isOver: true }
    throw refusal
  }
}

/** Rate-limit key of a caller without a token. Callers of unknown address share one. */
export const addressKeyOf = (request: FastifyRequest, header: string | undefined): string =>
  (header && readTrustedHeader(request, header)?.limitKey) ?? 'all'

/** Address of the client: by the trusted header if there is one, else that of the connection. */
export const clientAddressOf = (request: FastifyRequest, header: string | undefined): string | null =>
  header === undefined ? request.ip : (readTrustedHeader(request, header)?.address ?? null)
