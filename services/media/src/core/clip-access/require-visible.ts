import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { isExpired } from '../clips/access.ts'
import type { ClipAccess } from '../clips/clips.store.ts'
import { type Link, type LinkQuery, type LinkTarget, readLink } from './share-links.ts'

/** A public address of a clip, with the query that may hold a link. */
export interface PublicAddress {
  target: LinkTarget
  query: LinkQuery
}

/**
 * Decides whether a request without a token may see a clip: every public address asks here. Throws not_found for a private clip
 * without a valid link, even if it is deleted or hidden; gone for a deleted or expired clip; hidden. Returns the link of a
 * private clip.
 */
export function requireVisible(
  { config, now }: Pick<Deps, 'now'> & { config: Pick<Deps['config'], 'encryptionKey'> },
  clip: ClipAccess & { id: string; isDeleted: boolean },
  { target, query }: PublicAddress,
): Link | undefined {
  const link = readLink(config.encryptionKey, clip, { target, query, now: now() })
  if (clip.visibility === 'private' && !link) throw apiError('not_found')
  if (clip.isDeleted || isExpired(clip, now())) throw apiError('gone')
  if (clip.hiddenAt) throw apiError('hidden')
  return clip.visibility === 'private' ? link : undefined
}
