import { type ClipFields, cleanFields, invalidField, MAX_TAG_TEXTS } from '../../core/clips/clip-fields.ts'
import type { FormField } from './receive-form.http.ts'

/**
 * Reads the fields of an upload, including the spellings of arrays and objects: `tags[]`, `tags[0]`, `attribution[site]`.
 * Ignores unknown fields, and a user without a site and URL. Throws invalid_field.
 */
export function readFormFields(fields: readonly FormField[]): ClipFields {
  const allOf = (pattern: RegExp) => fields.filter(({ name }) => pattern.test(name)).map(({ value }) => value)
  const lastOf = (name: string) => allOf(new RegExp(`^${name}$`)).at(-1) ?? ''
  const ofAttribution = (member: string) => lastOf(`attribution(_${member}|\\[${member}\\]|\\.${member})`)
  const attribution = { site: ofAttribution('site'), user: ofAttribution('user'), url: ofAttribution('url') }
  const hasAttribution = attribution.site.trim() !== '' || attribution.url.trim() !== ''
  return cleanFields(
    {
      title: lastOf('title'),
      tags: readTags(allOf(/^tags(\[\d*\])?$/)),
      nsfw: parseBoolean('nsfw', lastOf('nsfw')),
      ...(hasAttribution ? { attribution } : {}),
    },
    'attribution_',
  )
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

/** Accepts the spellings that forms and scripts send (contract/media.md 2.4). */
function parseBoolean(param: string, value: string): boolean {
  if (/^(true|1|on|yes)$/i.test(value.trim())) return true
  if (/^(false|0|off|no|)$/i.test(value.trim())) return false
  throw invalidField(param, 'must be true or false')
}
