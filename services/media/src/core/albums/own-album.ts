import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { owns } from '../tokens/scopes.ts'
import type { ApiToken } from '../tokens/tokens.store.ts'
import { type Album, findAlbum } from './albums.store.ts'

/** Throws not_found for an album of another token, too; admins have all. */
export async function findOwnAlbum(db: Kysely<DB>, token: ApiToken, id: string): Promise<Album> {
  const album = await findAlbum(db, id)
  if (!album || !owns(token, album)) throw apiError('not_found')
  return album
}
