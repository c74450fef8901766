import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { allowancesOf } from '../tokens/allowance.ts'
import { findTokenLimits } from '../tokens/tokens.store.ts'
import { storedBytes } from '../tokens/usage.store.ts'
import type { Variant } from './variant.ts'

/**
 * Throws quota_exceeded if the file could exceed the quota of the clip's token, whose numbers are not the caller's
 * concern.
 */
export async function requireStorage(
  { db, config }: Pick<Deps, 'db' | 'config'>,
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
