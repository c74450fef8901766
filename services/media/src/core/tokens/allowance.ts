// Daily bytes and storage quota of a token. The binding check is in the transaction that accepts a clip, which
// serializes the clips of one token. An earlier check only spares the transfer. Tests: test/allowances.test.ts.
import type { Kysely, Transaction } from 'kysely'
import type { DB, TokenLimits } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { holdWriter } from './require-writer.ts'
import { bytesOfDay, dayOf, recordClip, storedBytes } from './usage.store.ts'

/** Undefined means unlimited. */
export interface Allowances {
  quotaBytes: number | undefined
  dailyBytes: number | undefined
}

export interface Allowance {
  limit: number
  used: number
}

/** `reserved`: most bytes that the files of processing clips may take. */
export interface Quota extends Allowance {
  reserved: number
}

/** A clip takes seconds to minutes, and then frees the unused part of its reserve. */
const RESERVED_RETRY_SECONDS = 10

export const allowancesOf = (usual: Allowances, own: TokenLimits): Allowances => ({
  quotaBytes: own.quota_bytes ?? usual.quotaBytes,
  dailyBytes: own.daily_bytes ?? usual.dailyBytes,
})

/** Used bytes of each limit that the token has. */
export async function findAllowances(
  db: Kysely<DB>,
  tokenId: string,
  { quotaBytes, dailyBytes }: Allowances,
  now: Date,
): Promise<{ quota?: Quota; daily?: Allowance }> {
  const [stored, sent] = await Promise.all([
    quotaBytes === undefined ? undefined : storedBytes(db, tokenId),
    dailyBytes === undefined ? undefined : bytesOfDay(db, tokenId, dayOf(now)),
  ])
  return {
    ...(quotaBytes !== undefined && stored !== undefined && { quota: { limit: quotaBytes, ...stored } }),
    ...(dailyBytes !== undefined && sent !== undefined && { daily: { limit: dailyBytes, used: sent } }),
  }
}

/**
 * Throws quota_exceeded or daily_bytes_exceeded when these bytes exceed a limit, and queue_full when only the reserve
 * of processing clips is in the way. So the files of one clip at most exceed a quota.
 */
export function refuseOverAllowance(
  { quota, daily }: { quota?: Quota; daily?: Allowance },
  { kept, sent }: { kept: number; sent: number },
  now: Date,
): void {
  if (daily && daily.used + sent > daily.limit) {
    throw apiError('daily_bytes_exceeded', { details: { ...daily }, retryAfterSeconds: secondsLeftOf(now) })
  }
  if (!quota) return
  const { limit, used, reserved } = quota
  if (used + kept > limit) throw apiError('quota_exceeded', { details: { limit, used } })
  if (used + reserved + kept > limit) {
    throw apiError('queue_full', {
      message: 'Clips of this token that are still processing may use the rest of its storage.',
      details: { limit, used, reserved },
      retryAfterSeconds: RESERVED_RETRY_SECONDS,
    })
  }
}

/**
 * Takes the bytes of a new clip; throws as above, and for a token that may add no clip any more. The token's other
 * clips then wait until the transaction ends, so call it after the storage's answer and the locks of sources. Returns
 * the token's limits.
 */
export async function takeAllowance(
  trx: Transaction<DB>,
  usual: Allowances,
  clip: { tokenId: string; kept: number; sent: number; now: Date },
): Promise<TokenLimits> {
  const { tokenId, kept, sent, now } = clip
  const today = await recordClip(trx, { tokenId, day: dayOf(now), bytes: sent })
  // The row of a day does not serialize clips around midnight.
  const own = await holdWriter(trx, tokenId, now)
  const { quotaBytes, dailyBytes } = allowancesOf(usual, own)
  const daily = dailyBytes === undefined ? undefined : { limit: dailyBytes, used: today - sent }
  const quota = quotaBytes === undefined ? undefined : { limit: quotaBytes, ...(await storedBytes(trx, tokenId)) }
  refuseOverAllowance({ ...(daily && { daily }), ...(quota && { quota }) }, { kept, sent }, now)
  return own
}

const DAY_MS = 86_400_000

/** Seconds until midnight UTC. */
const secondsLeftOf = (now: Date) => Math.ceil((DAY_MS - (now.getTime() % DAY_MS)) / 1000)
