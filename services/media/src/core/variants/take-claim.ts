import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { parseFixedVariant, VARIANT_TYPES, type Variant } from './variant.ts'
import { type Claim, claimVariant } from './variants.store.ts'

/**
 * Frames and signed variants of one source, whatever their state. Neither takes the place of the other fixed ones,
 * which are 27.
 */
const MAX_VARIANTS = { poster: 400, frame: 24, size: Number.POSITIVE_INFINITY, signed: 40 }
/** Variants that nothing requests are deleted after 30 days. */
const FULL_RETRY_SECONDS = 86_400

function kindOf(name: string): keyof typeof MAX_VARIANTS {
  // Few are of one clip: those of its poster before are deleted with a change.
  if (name.startsWith('poster-')) return 'poster'
  const fixed = parseFixedVariant(name)
  if (!fixed) return 'signed'
  return fixed.atSeconds === undefined ? 'size' : 'frame'
}

/** Claims a variant within the number that its source may have. Throws gone and too_many_variants. */
export async function takeClaim(
  trx: Transaction<DB>,
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
