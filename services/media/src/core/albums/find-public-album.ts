import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { createLink, type Link, type PublicAddress, readLink } from '../clip-access/share-links.ts'
import { type ClipView, toView } from '../clip-views/clip-view.ts'
import type { Clip } from '../clips/clips.store.ts'
import { findForVisitor, type VisitedAlbum } from './albums.store.ts'

/** An album that a request without a token may see, and the link that it came with if the album is private. */
export interface ShownAlbum {
  album: VisitedAlbum
  link: Link | undefined
}

/**
 * Finds the album of a public page, as it was a moment ago, and what `read` returns about it. Throws not_found, for a
 * private album without a valid link too.
 */
export const findShownAlbum = <Found>(
  { reads, config, now }: Pick<Deps, 'reads' | 'config' | 'now'>,
  id: string,
  address: PublicAddress,
  read: (db: Kysely<DB>, album: VisitedAlbum) => Promise<Found>,
): Promise<ShownAlbum & { found: Found }> =>
  reads.recent(async (db) => {
    const album = await findForVisitor(db, id)
    const link = readLink(config.encryptionKey, album ?? { id, linkSalt: null }, { ...address, now: now() })
    if (!album || (album.visibility === 'private' && !link)) throw apiError('not_found')
    return { album, link: album.visibility === 'private' ? link : undefined, found: await read(db, album) }
  })

/**
 * A clip as its album shows it. The addresses of a private clip are signed for the album: they end with the link, and
 * as soon as the clip leaves. The player of an album leads to those of clips, not to their pages.
 */
export function toItemView(
  { encryptionKey, site }: Pick<Deps['config'], 'encryptionKey' | 'site'>,
  { album, link }: ShownAlbum,
  { clip, target }: { clip: Clip; target: 'page' | 'embed' },
): ClipView {
  if (!link || clip.visibility !== 'private') return toView(clip, site)
  const key = { id: clip.id, albumId: album.id, linkSalt: album.linkSalt }
  return toView(clip, site, createLink(encryptionKey, key, { target, expiresAt: link.expiresAt }))
}
