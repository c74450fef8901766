import { type ClipFields, cleanFields, invalidField } from '../clips/clip-fields.ts'
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
      tags: allOf('tags', 'tags[]').flatMap(splitTags),
      nsfw: parseBoolean('nsfw', lastOf('nsfw')),
      ...(hasAttribution ? { attribution } : {}),
    },
    'attribution_',
  )
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
  return value.split(',')
}

/** contract/media.md 2.4: what forms and scripts send for yes and no. */
function parseBoolean(param: string, value: string): boolean {
  if (/^(true|1|on|yes)$/i.test(value.trim())) return true
  if (/^(false|0|off|no|)$/i.test(value.trim())) return false
  throw invalidField(param, 'must be true or false')
}
