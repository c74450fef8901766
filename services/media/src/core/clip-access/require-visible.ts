import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { isExpired } from '../clips/access.ts'
import type { ClipAccess, OfAlbum } from '../clips/clips.store.ts'
import { albumIn, type Link, type PublicAddress, readLink } from './share-links.ts'

/** End of a clip's lifetime, or of the link that shows it; undefined for one that lasts. */
export const endOfView = ({ expiresAt }: Pick<ClipAccess, 'expiresAt'>, link: Link | undefined): Date | undefined =>
  [expiresAt, link?.expiresAt].filter((end) => end instanceof Date).sort((a, b) => a.getTime() - b.getTime())[0]

/**
 * Decides whether a request without a token may see a clip: every public address asks here. Throws not_found for a
 * private clip without a valid link, even if it is deleted or hidden; gone for a deleted or expired clip; hidden.
 * Returns the link of a private clip.
 */
export function requireVisible(
  { config, now }: Pick<Deps, 'now'> & { config: Pick<Deps['config'], 'encryptionKey'> },
  clip: ClipAccess & OfAlbum & { id: string; isDeleted: boolean },
  address: PublicAddress,
): Link | undefined {
  const albumId = albumIn(address.query)
  const key = albumId === undefined ? clip : { id: clip.id, albumId, linkSalt: clip.albumSalt ?? null }
  const link = readLink(config.encryptionKey, key, { ...address, now: now() })
  if (clip.visibility === 'private' && !link) throw apiError('not_found')
  if (clip.isDeleted || isExpired(clip, now())) throw apiError('gone')
  if (clip.hiddenAt) throw apiError('hidden')
  return clip.visibility === 'private' ? link : undefined
}
