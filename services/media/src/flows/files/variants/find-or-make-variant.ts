// Finds a variant of a public clip, and has it made at its first request. A row claims a variant before any work
// begins, so one process makes it, and a source has a bounded number. Tests: test/variants.test.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '@services/common/errors'
import { requireStorage } from '../../../core/variants/require-storage.ts'
import { takeClaim } from '../../../core/variants/take-claim.ts'
import { type FoundVariant, isStill, nameOfVariant, type Variant } from '../../../core/variants/variant.ts'
import { releaseClaim } from '../../../core/variants/variants.store.ts'
import type { Deps } from '../../../deps.ts'
import { apiError, busy } from '../../../errors.ts'
import { hasLackedTime, isDiskFull } from '../../../ffmpeg/machine-faults.ts'
import { giveUp } from '../../../make/jobs/add-variant.ts'
import { tenantOf, VARIANTS_QUEUE, type VariantJob } from '../../../make/jobs/queues.ts'
import { makeVariant } from '../../../make/variants/store-variant.ts'
import { variantWeight } from '../../../make/variants/variant-weight.ts'
import { type Address, type Found, find, isOriginal, settledOf } from './find-variant.ts'

/** Longer than a still may take (make/variants/make-still.ts): its process was killed, and another request makes it. */
const STILL_CLAIM_MS = 60_000
/** Interval of checks for a still that another process is making. */
const CHECK_EVERY_MS = 50

/** An operator has to free space. */
const DISK_RETRY_SECONDS = 60

interface Wanted extends Address {
  /** Rate-limit key of the caller. */
  callerKey: string
  /** Counts a variant that has to be made; throws rate_limited. */
  countBuild: () => Promise<void>
}

/** Call it only for a clip that may be shown. Throws gone, not_found, cannot_fit, and the refusals of a build. */
export async function findOrMakeVariant(deps: Deps, wanted: Wanted): Promise<FoundVariant> {
  const { variant } = wanted
  const found = await find(deps, wanted)
  const { state, progress, info } = found.source
  if (state !== 'ready') return { state: 'processing', progress }
  if (variant.atSeconds !== undefined && variant.atSeconds >= info.durationSeconds) throw apiError('not_found')
  if (isOriginal(variant, found)) return { state: 'original' }
  const settled = await settledOf(deps, wanted, found)
  if (settled) return settled
  if (!isStill(variant)) return queueVariant(deps, wanted, found)
  // Requests of one process for the same still share what the first of them gets, a failure as well.
  const key = `${found.source.id} ${nameOfVariant(variant)}`
  const known = deps.stillsInWork.get(key)
  if (known) {
    return known.catch((error) => {
      // The limits of the first caller are not those of the others.
      if (error instanceof ApiError && error.status === 429) return findOrMakeVariant(deps, wanted)
      throw error
    })
  }
  const work = makeStillNow(deps, wanted).finally(() => deps.stillsInWork.delete(key))
  deps.stillsInWork.set(key, work)
  return work
}

/** Queues the job with its claim, so that no crash comes between. */
async function queueVariant(deps: Deps, wanted: Wanted, { source, tokenId, original, row }: Found) {
  const { config, db, queue, tools } = deps
  const { variant } = wanted
  const processing = { state: 'processing', progress: 0 } as const
  const name = nameOfVariant(variant)
  const turn = { tenant: tenantOf(tokenId), weight: variantWeight(source.info, variant) }
  if (row) {
    // A clip of another token may have had it queued: it waits no longer than if this clip were the first.
    await db
      .transaction()
      .execute((trx) => queue.advance(trx, VARIANTS_QUEUE.name, { sourceId: source.id, name }, turn))
    return processing
  }
  if (variant.ending === 'anim.webp' && !tools.ffmpeg.animatesWebp) throw apiError('format_not_supported')
  await wanted.countBuild()
  await requireStorage(deps, variant, tokenId, original.bytes)
  const { queueLimit, queueLimitPerToken } = config.worker
  const waiting = await queue.waiting(VARIANTS_QUEUE.name, 2 * queueLimit)
  if (waiting >= 2 * queueLimit) throw busy(false)
  // A token without a waiting variant has one more, so that the others together do not lock it out.
  const most = waiting >= queueLimit ? 1 : queueLimitPerToken
  await db.transaction().execute(async (trx) => {
    const claim = { sourceId: source.id, name, claimedAt: deps.now() }
    if ((await takeClaim(trx, claim, variant, null)) === 'taken') return
    const job: VariantJob = { sourceId: source.id, name, variant }
    await queue.send(trx, VARIANTS_QUEUE.name, job, turn)
    // Not before: requests at once would all find capacity.
    if ((await queue.waitingOf(trx, VARIANTS_QUEUE.name, turn.tenant, most + 1)) > most) throw busy(false)
  })
  return processing
}

async function makeStillNow(deps: Deps, wanted: Wanted): Promise<FoundVariant> {
  const { variant } = wanted
  let hasCounted = false
  for (let waitedMs = 0; waitedMs < deps.timeLimits.otherStillMs; waitedMs += CHECK_EVERY_MS) {
    const found = await find(deps, wanted)
    const settled = await settledOf(deps, wanted, found)
    if (settled) return settled
    const { source, tokenId, original } = found
    if (!hasCounted) {
      await wanted.countBuild()
      await requireStorage(deps, variant, tokenId, original.bytes)
      hasCounted = true
    }
    const isMade = await deps.stills.run(() => claimAndMake(deps, variant, source), { key: wanted.callerKey })
    if (deps.stopping.aborted) break
    if (!isMade) await sleep(CHECK_EVERY_MS)
  }
  return { state: 'processing', progress: 0 }
}

/** False when another process is making it. */
async function claimAndMake(deps: Deps, variant: Variant, { id, info }: Found['source']): Promise<boolean> {
  const claim = { sourceId: id, name: nameOfVariant(variant), claimedAt: deps.now() }
  const staleBefore = new Date(claim.claimedAt.getTime() - STILL_CLAIM_MS)
  const taken = await deps.db.transaction().execute((trx) => takeClaim(trx, claim, variant, staleBefore))
  if (taken === 'taken') return false
  try {
    await makeVariant(deps, claim, { info, variant, signal: deps.forceStop })
    return true
  } catch (error) {
    // The machine may be busy, or the file slow: the claim stays, so that another attempt is made when it is stale.
    if (hasLackedTime(error)) {
      throw apiError('unavailable', { retryAfterSeconds: STILL_CLAIM_MS / 1000, cause: error })
    }
    // Without the database the claim becomes stale.
    await (deps.forceStop.aborted ? releaseClaim(deps.db, claim) : giveUp(deps, claim, error)).catch(() => {})
    if (isDiskFull(error)) throw apiError('unavailable', { retryAfterSeconds: DISK_RETRY_SECONDS, cause: error })
    throw error
  }
}
