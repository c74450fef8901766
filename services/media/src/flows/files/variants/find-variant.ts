// Finds a variant of a public clip, and has it made at its first request. The one rule: a row claims a variant before any work
// begins, so one process makes it, and a source has a bounded number. Tests: test/variants.test.ts. Next: make/variants/.
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError } from '@services/common/errors'
import { allowancesOf } from '../../../core/tokens/allowance.ts'
import { findTokenLimits } from '../../../core/tokens/tokens.store.ts'
import { storedBytes } from '../../../core/tokens/usage.store.ts'
import {
  type FoundVariant,
  isStill,
  nameOfVariant,
  parseFixedVariant,
  sizeOfVariant,
  VARIANT_TYPES,
  type Variant,
} from '../../../core/variants/variant.ts'
import {
  type Claim,
  claimVariant,
  findVariant,
  recordUse,
  releaseClaim,
} from '../../../core/variants/variants.store.ts'
import type { Deps } from '../../../deps.ts'
import { apiError, busy } from '../../../errors.ts'
import { hasLackedTime, isDiskFull } from '../../../ffmpeg/machine-faults.ts'
import { giveUp } from '../../../make/jobs/add-variant.ts'
import { tenantOf, VARIANTS_QUEUE, type VariantJob } from '../../../make/jobs/queues.ts'
import { makeVariant } from '../../../make/variants/store-variant.ts'

/** Frames and signed variants of one source, whatever their state. Neither takes the place of the other fixed ones, which are 27. */
const MAX_VARIANTS = { frame: 24, size: Number.POSITIVE_INFINITY, signed: 40 }
/** Variants that nothing requests are deleted after 30 days. */
const FULL_RETRY_SECONDS = 86_400

/** Longer than a still may take (make/variants/make-still.ts): its process was killed, and another request makes it. */
const STILL_CLAIM_MS = 60_000
/** Interval of checks for a still that another process is making. */
const CHECK_EVERY_MS = 50

/** Uses are recorded once a day, because each costs a write. */
const USE_RECORDED_MS = 86_400_000

/** Failed variants are deleted after an hour by housekeeping, and then tried again. */
const FAILED_RETRY_SECONDS = 3_600

/** An operator has to free space. */
const DISK_RETRY_SECONDS = 60

interface Wanted {
  id: string
  variant: Variant
  /** Rate-limit key of the caller. */
  callerKey: string
  /** Counts a variant that has to be made; throws rate_limited. */
  countBuild: () => Promise<void>
}

type Found = NonNullable<Awaited<ReturnType<typeof findVariant>>>

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

async function find(deps: Deps, { id, variant }: Wanted): Promise<Found> {
  const { original } = VARIANT_TYPES[variant.ending]
  const found = await findVariant(deps.db, id, nameOfVariant(variant), original)
  if (found) return found
  // It was deleted or failed within the last second, for which its files are cached.
  deps.knownFiles.evict(id)
  throw apiError((await deps.knownFiles.find(id, original))?.state === 'absent' ? 'not_found' : 'gone')
}

/** The clip's file fits already, or is no larger in pixels. */
function isOriginal(variant: Variant, { original }: Found): boolean {
  if (variant.maxBytes !== undefined) return original.bytes <= variant.maxBytes
  return variant.atSeconds === undefined && sizeOfVariant(variant, original) === null && !isOtherFormat(variant)
}

/** A signed address may name no size, but a format that the clip has no file of. */
const isOtherFormat = ({ ending, width, height }: Variant) =>
  width === undefined && height === undefined && ending !== VARIANT_TYPES[ending].original

/** Undefined for a variant that is not made yet, or is being made. */
async function settledOf(deps: Deps, { variant }: Wanted, { source, row }: Found): Promise<FoundVariant | undefined> {
  if (!row || row.state === 'making') return undefined
  const now = deps.now()
  const before = new Date(now.getTime() - USE_RECORDED_MS)
  if (row.usedAt < before) {
    const key = { sourceId: source.id, name: nameOfVariant(variant) }
    await recordUse(deps.db, key, { now, before }).catch((err) =>
      deps.log.warn({ err }, 'use of a variant not recorded'),
    )
  }
  const { state, sha256, bytes } = row
  if (state === 'refused') throw apiError('cannot_fit', { details: { smallest: bytes } })
  if (state === 'failed') {
    const message = 'This variant could not be made; it will be tried again later.'
    throw apiError('unavailable', { message, retryAfterSeconds: FAILED_RETRY_SECONDS })
  }
  return state === 'stored' && sha256 ? { state, sha256, bytes } : { state: 'original' }
}

/** Queues the job with its claim, so that no crash comes between. */
async function queueVariant(deps: Deps, wanted: Wanted, { source, tokenId, original, row }: Found) {
  const { config, db, queue, tools } = deps
  const { variant } = wanted
  const processing = { state: 'processing', progress: 0 } as const
  if (row) return processing
  if (variant.ending === 'anim.webp' && !tools.ffmpeg.animatesWebp) throw apiError('format_not_supported')
  await wanted.countBuild()
  await requireStorage(deps, variant, tokenId, original.bytes)
  const { queueLimit } = config.worker
  if ((await queue.waiting(VARIANTS_QUEUE.name, queueLimit)) >= queueLimit) throw busy(false)
  const name = nameOfVariant(variant)
  await db.transaction().execute(async (trx) => {
    const claim = { sourceId: source.id, name, claimedAt: deps.now() }
    if ((await takeClaim(trx, claim, variant, null)) === 'taken') return
    const job: VariantJob = { sourceId: source.id, name, variant }
    await queue.send(trx, VARIANTS_QUEUE.name, job, { tenant: tenantOf(tokenId) })
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

function kindOf(name: string): keyof typeof MAX_VARIANTS {
  const fixed = parseFixedVariant(name)
  if (!fixed) return 'signed'
  return fixed.atSeconds === undefined ? 'size' : 'frame'
}

/** Throws gone and too_many_variants. */
async function takeClaim(
  trx: Parameters<typeof claimVariant>[0],
  claim: Claim,
  { ending }: Variant,
  staleBefore: Date | null,
): Promise<'claimed' | 'taken'> {
  const { extension } = VARIANT_TYPES[ending]
  const kind = kindOf(claim.name)
  const most = MAX_VARIANTS[kind]
  const isAlike = (name: string) => kindOf(name) === kind
  const outcome = await claimVariant(trx, claim, { extension, most, isAlike, staleBefore })
  if (outcome === 'gone') throw apiError('gone')
  if (outcome === 'full') {
    throw apiError('too_many_variants', { details: { limit: most }, retryAfterSeconds: FULL_RETRY_SECONDS })
  }
  return outcome
}

/** Throws quota_exceeded if the file could exceed the quota of the clip's token, whose numbers are not the caller's concern. */
async function requireStorage(
  { db, config }: Deps,
  { maxBytes }: Variant,
  tokenId: string | null,
  originalBytes: number,
): Promise<void> {
  if (tokenId === null) return
  const { quotaBytes } = allowancesOf(config.allowances, await findTokenLimits(db, tokenId))
  if (quotaBytes === undefined) return
  const { used, reserved } = await storedBytes(db, tokenId)
  const most = Math.min(maxBytes ?? originalBytes, originalBytes)
  if (used + reserved + most <= quotaBytes) return
  throw apiError('quota_exceeded', { message: 'The owner of this clip has reached its storage quota.' })
}
