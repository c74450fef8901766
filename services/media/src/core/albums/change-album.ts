// Changes of albums by their owners and admins. Each is one transaction with its event and its limits, which concurrent
// requests cannot exceed. Locks are in one order: token, clips, album.
import { randomInt } from 'node:crypto'
import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { auditAdmin } from '../audit/audit.ts'
import { isMatch } from '../clips/clip-etag.ts'
import { makeClipId } from '../clips/clip-id.ts'
import { holdWriter } from '../tokens/require-writer.ts'
import { type EmitDeps, emitAlbumEvent } from '../webhooks/emit-event.ts'
import { describeAlbums } from './album-view.ts'
import {
  type Album,
  type AlbumFields,
  countAlbums,
  deleteAlbumRow,
  etagOf,
  findAlbum,
  insertAlbum,
  lockAlbum,
  updateAlbum,
} from './albums.store.ts'
import { appendItems, listInMostAlbums, listItemIds, lockClipsOf, MAX_ALBUMS_OF_CLIP, setItems } from './items.store.ts'
import { MAX_ITEMS } from './shown-items.store.ts'

/** Albums of a token. */
const MAX_ALBUMS = 1000

export interface Guard {
  /** The header If-Match: the change is refused if it does not name the album's ETag. */
  ifMatch?: string | undefined
  /** Step of the transaction. */
  alongside?: ReturnType<typeof auditAdmin>
}

type ChangeDeps = Pick<Deps, 'db'> & EmitDeps

export const tooManyAlbums = (id: string) => {
  const message = `A clip is in at most ${MAX_ALBUMS_OF_CLIP} albums.`
  return apiError('too_many_albums', { message, details: { limit: MAX_ALBUMS_OF_CLIP, id } })
}

export const albumFull = () => apiError('album_full', { details: { limit: MAX_ITEMS } })

/** Throws too_many_albums, and the refusals of a token that has ended. */
export async function createAlbum(
  deps: EmitDeps,
  trx: Transaction<DB>,
  { tokenId, fields }: { tokenId: string; fields: AlbumFields },
): Promise<Album> {
  const now = deps.now()
  await holdWriter(trx, tokenId, now)
  if ((await countAlbums(trx, tokenId)) >= MAX_ALBUMS) {
    const message = `A token has at most ${MAX_ALBUMS} albums.`
    throw apiError('too_many_albums', { message, details: { limit: MAX_ALBUMS } })
  }
  const row = { ...fields, token_id: tokenId, created_at: now, updated_at: now }
  let id = makeClipId(randomInt)
  while (!(await insertAlbum(trx, { ...row, id }))) id = makeClipId(randomInt)
  return announce(deps, trx, 'album.created', id)
}

/** Throws not_found and album_changed. */
export const changeFields = (
  deps: ChangeDeps,
  id: string,
  { fields, ...guard }: Guard & { fields: Partial<AlbumFields> },
): Promise<Album> => deps.db.transaction().execute((trx) => changeLocked(deps, trx, id, guard, async () => fields))

/**
 * Gives an album the clips that `place` makes of its present ones. `ids` are those that it may add. Throws not_found
 * for one that is not a clip of the album's token, album_full, too_many_albums and album_changed.
 */
export const changeItems = (
  deps: ChangeDeps,
  album: Pick<Album, 'id'>,
  {
    ids,
    place,
    ...guard
  }: Guard & { ids: readonly string[]; place: (current: readonly string[]) => readonly string[] },
): Promise<Album> =>
  deps.db.transaction().execute(async (trx) => {
    const own = await lockClipsOf(trx, album.id, { ids, now: deps.now() })
    const missing = ids.filter((id) => !own.has(id))
    if (missing.length > 0) throw apiError('not_found', { details: { ids: missing } })
    return changeLocked(deps, trx, album.id, guard, async () => {
      const current = await listItemIds(trx, album.id)
      const wanted = place(current)
      if (wanted.length === current.length && wanted.every((id, n) => id === current[n])) return undefined
      if (wanted.length > MAX_ITEMS) throw albumFull()
      const known = new Set(current)
      const added = wanted.filter((clipId) => !known.has(clipId))
      await refuseInMany(trx, added)
      await setItems(trx, album.id, { ids: wanted, added, now: deps.now() })
      return {}
    })
  })

/** Deletes an album; its clips stay. Throws not_found and album_changed. */
export async function deleteAlbum(deps: ChangeDeps, id: string, { ifMatch, alongside }: Guard): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    await lockClipsOf(trx, id, { ids: [], now: deps.now() })
    const { tokenId } = await lockUnchanged(trx, id, ifMatch)
    await emitAlbumEvent(deps, trx, 'album.deleted', { tokenId, describeIt: async () => ({ id }) })
    await deleteAlbumRow(trx, id)
    await alongside?.(trx)
  })
}

async function refuseInMany(trx: Transaction<DB>, added: readonly string[]) {
  const [clip] = added.length > 0 ? await listInMostAlbums(trx, added) : []
  if (clip !== undefined) throw tooManyAlbums(clip)
}

/** `change` returns the fields of the new version, or undefined if there is nothing to change. */
async function changeLocked(
  deps: EmitDeps,
  trx: Transaction<DB>,
  id: string,
  { ifMatch, alongside }: Guard,
  change: () => Promise<Partial<AlbumFields> | undefined>,
): Promise<Album> {
  const album = await lockUnchanged(trx, id, ifMatch)
  const fields = await change()
  if (!fields) return album
  await updateAlbum(trx, id, { ...fields, now: deps.now() })
  await alongside?.(trx)
  return announce(deps, trx, 'album.updated', id)
}

async function lockUnchanged(trx: Transaction<DB>, id: string, ifMatch: string | undefined): Promise<Album> {
  const album = await lockAlbum(trx, id)
  if (!album) throw apiError('not_found')
  const etag = etagOf(album)
  if (ifMatch === undefined || isMatch(ifMatch, etag)) return album
  throw apiError('album_changed', { details: { etag } })
}

/** Adds clips at the end of an album; the caller has locked it, and those clips that are not new. */
export async function appendToAlbum(
  deps: EmitDeps,
  trx: Transaction<DB>,
  id: string,
  clipIds: readonly string[],
): Promise<void> {
  const now = deps.now()
  await appendItems(trx, id, { ids: clipIds, now })
  await updateAlbum(trx, id, { now })
  await announce(deps, trx, 'album.updated', id)
}

/** Emits the event of an album that has changed. Returns the album. */
async function announce(
  deps: EmitDeps,
  trx: Transaction<DB>,
  event: 'album.created' | 'album.updated',
  id: string,
): Promise<Album> {
  const album = await findAlbum(trx, id)
  if (!album) throw new Error(`album ${id} is missing in the transaction that changed it`)
  const describeIt = async () => (await describeAlbums(trx, [album], { site: deps.config.site, now: deps.now() }))[0]
  await emitAlbumEvent(deps, trx, event, { tokenId: album.tokenId, describeIt })
  return album
}
