// The field `album` of an upload or import: the clip joins the album in the transaction that accepts it. The same
// refusals come earlier too, before bytes are taken.
import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { EmitDeps } from '../webhooks/emit-event.ts'
import { notOwnAlbum } from './album-fields.ts'
import { type Album, findAlbum, lockAlbum } from './albums.store.ts'
import { albumFull, appendToAlbum } from './change-album.ts'
import { MAX_ITEMS } from './shown-items.store.ts'

interface Joining {
  /** Id of the album; undefined for a clip that joins none. */
  album?: string | undefined
  tokenId: string | null
}

/** Throws invalid_field and album_full. */
export async function refuseAlbum(db: Kysely<DB>, { album: id, tokenId }: Joining): Promise<void> {
  if (id !== undefined) refuse(await findAlbum(db, id), tokenId)
}

/** Adds a new clip at the end of an album; call it after all that waits. Throws the same. */
export async function joinAlbum(
  deps: EmitDeps,
  trx: Transaction<DB>,
  { album: id, tokenId, clipId }: Joining & { clipId: string },
): Promise<void> {
  if (id === undefined) return
  refuse(await lockAlbum(trx, id), tokenId)
  await appendToAlbum(deps, trx, id, [clipId])
}

function refuse(album: Album | undefined, tokenId: string | null): void {
  if (!album || album.tokenId !== tokenId) throw notOwnAlbum()
  if (album.count >= MAX_ITEMS) throw albumFull()
}
