import { notOwnAlbum } from '../../../core/albums/album-fields.ts'
import { findAlbum, lockAlbum } from '../../../core/albums/albums.store.ts'
import { albumFull, appendToAlbum, tooManyAlbums } from '../../../core/albums/change-album.ts'
import { listInMostAlbums, listItemIds } from '../../../core/albums/items.store.ts'
import { MAX_ITEMS } from '../../../core/albums/shown-items.store.ts'
import type { ClipsAct } from '../../../core/lifecycle/change-clips.ts'
import { owns } from '../../../core/tokens/scopes.ts'
import type { ApiToken } from '../../../core/tokens/tokens.store.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'

/**
 * Adds clips at the end of an album; those that it has stay where they are. Throws invalid_field for an album that is
 * unknown or of another token.
 */
export async function addToAlbum(deps: Deps, token: ApiToken, id: string): Promise<ClipsAct<undefined>> {
  const album = await findAlbum(deps.db, id)
  if (!album || !owns(token, album)) throw notOwnAlbum()
  let present: string[] = []
  let wanted = new Set<string>()
  let inMost = new Set<string>()
  return {
    // Order of locks: clips, album.
    begin: async (trx, clips) => {
      if (!(await lockAlbum(trx, id))) throw notOwnAlbum()
      present = await listItemIds(trx, id)
      wanted = new Set(present)
      const added = clips.flatMap((clip) => (wanted.has(clip.id) ? [] : clip.id))
      inMost = new Set(await listInMostAlbums(trx, added))
    },
    plan: (clip) => {
      if (clip.tokenId !== album.tokenId) throw apiError('not_found')
      if (wanted.has(clip.id)) return undefined
      if (inMost.has(clip.id)) throw tooManyAlbums(clip.id)
      if (wanted.size >= MAX_ITEMS) throw albumFull()
      wanted.add(clip.id)
      return undefined
    },
    write: async (trx) => {
      const added = [...wanted].slice(present.length)
      if (added.length > 0) await appendToAlbum(deps, trx, id, added)
    },
    entry: { action: 'clip_changed', details: { fields: ['album'] } },
  }
}
