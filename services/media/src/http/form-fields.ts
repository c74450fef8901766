import { Type } from 'typebox'
import { cleanAlbumId } from '../core/albums/album-fields.ts'
import { ACCESS_FIELDS, type AccessChanges, type AccessRules, cleanNewAccess } from '../core/clips/access.ts'
import { type ClipFields, cleanFields, MAX_TAG_TEXTS, readFlag } from '../core/clips/clip-fields.ts'
import { cleanEdit, EDIT_FIELDS, type Edit } from '../core/edits/edit.ts'
import { AccessFormFields, EditFormFields } from './shapes.ts'

export interface FormField {
  name: string
  value: string
}

export interface AddedFields {
  fields: ClipFields
  access: AccessChanges
  edit: Edit | undefined
  /** Album that the clip joins. */
  album: string | undefined
}

/**
 * Reads the fields of a form or query, including the spellings of arrays and objects: `tags[]`, `tags[0]`,
 * `attribution[site]`. Ignores unknown fields, and a user without a site and URL. Throws invalid_field.
 */
export function readFormFields(fields: readonly FormField[], rules: AccessRules): AddedFields {
  const allOf = (pattern: RegExp) => fields.filter(({ name }) => pattern.test(name)).map(({ value }) => value)
  const lastOf = (name: string) => allOf(new RegExp(`^${name}$`)).at(-1) ?? ''
  const ofAttribution = (member: string) => lastOf(`attribution(_${member}|\\[${member}\\]|\\.${member})`)
  const attribution = { site: ofAttribution('site'), user: ofAttribution('user'), url: ofAttribution('url') }
  const hasAttribution = attribution.site.trim() !== '' || attribution.url.trim() !== ''
  const cleaned = cleanFields(
    {
      title: lastOf('title'),
      tags: readTags(allOf(/^tags(\[\d*\])?$/)),
      nsfw: readFlag('nsfw', lastOf('nsfw')),
      ...(hasAttribution ? { attribution } : {}),
    },
    'attribution_',
  )
  const edit = cleanEdit(Object.fromEntries(EDIT_FIELDS.map((name) => [name, lastOf(name)])))
  const access = cleanNewAccess(Object.fromEntries(ACCESS_FIELDS.map((name) => [name, lastOf(name)])), rules)
  return { fields: cleaned, access, edit, album: readAlbumField(fields, rules) }
}

/** Reads the field `album`, before the others are there. Throws invalid_field. */
export const readAlbumField = (fields: readonly FormField[], rules: AccessRules): string | undefined =>
  cleanAlbumId(fields.findLast(({ name }) => name === 'album')?.value ?? '', rules)

export const ALBUM_FIELD = 'Id of one of your albums, which the clip joins at its end.'

/** The documented fields of a form; `cleanEdit` and `readFormFields` check them. */
export const ClipFormFields = {
  title: Type.Optional(Type.String()),
  tags: Type.Optional(
    Type.String({ description: 'Comma-separated, repeated as `tags`, `tags[]` or `tags[0]`, or a JSON array.' }),
  ),
  nsfw: Type.Optional(Type.Boolean()),
  attribution_site: Type.Optional(
    Type.String({
      description:
        'twitter, reddit, instagram, a host or a URL. Defaults to the host of `attribution_url`. ' +
        '`attribution[site]` and `attribution.site` work, too; likewise `user` and `url`.',
    }),
  ),
  attribution_user: Type.Optional(Type.String({ description: 'Ignored without a site and a URL.' })),
  attribution_url: Type.Optional(Type.String()),
  album: Type.Optional(Type.String({ description: ALBUM_FIELD })),
  ...AccessFormFields,
  ...EditFormFields,
}

/** Stops at one more than `cleanFields` accepts, which it then refuses. */
function readTags(values: readonly string[]): string[] {
  const tags: string[] = []
  for (const value of values) {
    tags.push(...splitTags(value).slice(0, MAX_TAG_TEXTS + 1))
    if (tags.length > MAX_TAG_TEXTS) break
  }
  return tags
}

/** A JSON array of strings, or a list with commas: `tags=awesome, cool, fun, gnarly` (contract/media.md 2.3). */
function splitTags(value: string): string[] {
  if (value.trimStart().startsWith('[')) {
    try {
      const parsed: unknown = JSON.parse(value)
      if (Array.isArray(parsed) && parsed.every((tag) => typeof tag === 'string')) return parsed
    } catch {
      // A tag may begin with a bracket.
    }
  }
  return value.split(',', MAX_TAG_TEXTS + 1)
}
