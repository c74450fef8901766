import type { Visibility } from '../../db/tables.ts'
import type { AccessRules } from '../clips/access.ts'
import { cleanTitle, invalidField, plainText } from '../clips/clip-fields.ts'
import { isClipId } from '../clips/clip-id.ts'
import type { AlbumFields } from './albums.store.ts'

export const MAX_DESCRIPTION = 1000

/** Fields as callers send them; null clears the description. */
export interface RawAlbumFields {
  title?: string
  description?: string | null
  visibility?: Visibility
}

/** Reads the fields that are given. Throws invalid_field. */
export function cleanAlbumFields({ title, description, visibility }: RawAlbumFields): Partial<AlbumFields> {
  return {
    ...(title !== undefined && { title: requireTitle(title) }),
    ...(description !== undefined && { description: plainText('description', description ?? '', MAX_DESCRIPTION) }),
    ...(visibility && { visibility }),
  }
}

export function requireTitle(text: string): string {
  const title = cleanTitle(text)
  if (title === null) throw invalidField('title', 'must not be empty')
  return title
}

/** Refusal of an album that is unknown or of another token. */
export const notOwnAlbum = () => invalidField('album', 'must be the id of one of your albums')

/** Reads the field `album` of a new clip; undefined if it is empty. Throws invalid_field. */
export function cleanAlbumId(text: string, { hasToken }: Pick<AccessRules, 'hasToken'>): string | undefined {
  const id = text.trim()
  if (id === '') return undefined
  if (!hasToken) throw invalidField('album', 'needs a token')
  if (!isClipId(id)) throw notOwnAlbum()
  return id
}
