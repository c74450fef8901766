import { type ClipFields, cleanFields, invalidField, MAX_TAG_TEXTS } from '../clips/clip-fields.ts'
import type { FormField } from '../http/receive-form.ts'

/** The fields of an upload; unknown ones are ignored. Throws invalid_field. */
export function readFormFields(fields: readonly FormField[]): ClipFields {
  const allOf = (...names: string[]) => fields.filter(({ name }) => names.includes(name)).map(({ value }) => value)
  const lastOf = (name: string) => allOf(name).at(-1) ?? ''
  const attribution = {
    site: lastOf('attribution_site'),
    user: lastOf('attribution_user'),
    url: lastOf('attribution_url'),
  }
  const hasAttribution = Object.values(attribution).some((value) => value.trim() !== '')
  return cleanFields(
    {
      title: lastOf('title'),
      tags: readTags(allOf('tags', 'tags[]')),
      nsfw: parseBoolean('nsfw', lastOf('nsfw')),
      ...(hasAttribution ? { attribution } : {}),
    },
    'attribution_',
  )
}

/** Stops where there are more than `cleanFields` looks at, which it then refuses. */
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

/** contract/media.md 2.4: what forms and scripts send for yes and no. */
function parseBoolean(param: string, value: string): boolean {
  if (/^(true|1|on|yes)$/i.test(value.trim())) return true
  if (/^(false|0|off|no|)$/i.test(value.trim())) return false
  throw invalidField(param, 'must be true or false')
}
