import {
  type FoundVariant,
  nameOfVariant,
  sizeOfVariant,
  VARIANT_TYPES,
  type Variant,
} from '../../../core/variants/variant.ts'
import { findVariant, recordUse } from '../../../core/variants/variants.store.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'

/** Uses are recorded once a day, because each costs a write. */
const USE_RECORDED_MS = 86_400_000

/** Failed variants are deleted after an hour by housekeeping, and then tried again. */
const FAILED_RETRY_SECONDS = 3_600

export interface Address {
  id: string
  variant: Variant
}

export type Found = NonNullable<Awaited<ReturnType<typeof findVariant>>>

/** Throws gone and not_found. */
export async function find(deps: Deps, { id, variant }: Address): Promise<Found> {
  const { original } = VARIANT_TYPES[variant.ending]
  const found = await findVariant(deps.db, id, nameOfVariant(variant), original)
  if (found) return found
  // It was deleted or failed within the last second, for which its files are cached.
  deps.knownFiles.evict(id)
  throw apiError((await deps.knownFiles.find(id, original))?.state === 'absent' ? 'not_found' : 'gone')
}

/** The clip's file fits already, or is no larger in pixels. */
export function isOriginal(variant: Variant, { original }: Found): boolean {
  if (variant.maxBytes !== undefined) return original.bytes <= variant.maxBytes
  return variant.atSeconds === undefined && sizeOfVariant(variant, original) === null && !isOtherFormat(variant)
}

/** A signed address may name no size, but a format that the clip has no file of. */
const isOtherFormat = ({ ending, width, height }: Variant) =>
  width === undefined && height === undefined && ending !== VARIANT_TYPES[ending].original

/** Undefined for a variant that is not made yet, or is being made. */
export async function settledOf(
  deps: Deps,
  { variant }: Address,
  { source, row }: Found,
): Promise<FoundVariant | undefined> {
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
