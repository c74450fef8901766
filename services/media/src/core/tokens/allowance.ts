// How many bytes a token may bring in a day and keep in all. The one rule: what counts is decided in the transaction that
// accepts a clip, where those of one token come one after another; what is looked at before only spares the transfer.
// What a clip counts: usage.store.ts, and until its files are made ../transcode/most-bytes.ts. Calls per hour: ../http/rate-limit.ts.
import type { Kysely, Transaction } from 'kysely'
import type { DB, TokenLimits } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { findTokenLimits } from './tokens.store.ts'
import { bytesOfDay, dayOf, noteClip, storedBytes } from './usage.store.ts'

/** Undefined: without limit. */
export interface Allowances {
  quotaBytes: number | undefined
  dailyBytes: number | undefined
}

export interface Allowance {
  limit: number
  used: number
}

/** `reserved`: the most bytes that the files of clips which are being made may take. */
export interface Quota extends Allowance {
  reserved: number
}

/** Clips are made within seconds to minutes, and then free what they did not take of their reserve. */
const RESERVED_RETRY_SECONDS = 10

export const allowancesOf = (usual: Allowances, own: TokenLimits): Allowances => ({
  quotaBytes: own.quota_bytes ?? usual.quotaBytes,
  dailyBytes: own.daily_bytes ?? usual.dailyBytes,
})

/** What is used of each limit that a token has. */
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
 * Throws quota_exceeded or daily_bytes_exceeded when so many bytes more would be too many, queue_full when they might be,
 * because of clips that are being made: a quota is exceeded by the files of one clip at most.
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
      message: 'The clips of this token that are being made may take the rest of its storage.',
      details: { limit, used, reserved },
      retryAfterSeconds: RESERVED_RETRY_SECONDS,
    })
  }
}

/**
 * Takes so many bytes of a token's allowances for a clip that is being accepted; throws as above, and then nothing is
 * taken. First in its transaction: from here on other clips of this token wait.
 */
export async function takeAllowance(
  trx: Transaction<DB>,
  usual: Allowances,
  clip: { tokenId: string; kept: number; sent: number; now: Date },
): Promise<void> {
  const { tokenId, kept, sent, now } = clip
  const { quotaBytes, dailyBytes } = allowancesOf(usual, await findTokenLimits(trx, tokenId))
  const today = await noteClip(trx, { tokenId, day: dayOf(now), bytes: sent })
  const daily = dailyBytes === undefined ? undefined : { limit: dailyBytes, used: today - sent }
  const quota = quotaBytes === undefined ? undefined : { limit: quotaBytes, ...(await storedBytes(trx, tokenId)) }
  refuseOverAllowance({ ...(daily && { daily }), ...(quota && { quota }) }, { kept, sent }, now)
}

const DAY_MS = 86_400_000

/** Until midnight of UTC. */
const secondsLeftOf = (now: Date) => Math.ceil((DAY_MS - (now.getTime() % DAY_MS)) / 1000)
