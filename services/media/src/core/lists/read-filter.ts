import { isUuid } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'
import { invalidField, oneLine, tagKey } from '../clips/clip-fields.ts'
import { isClipId } from '../clips/clip-id.ts'
import { allows } from '../tokens/scopes.ts'
import type { ApiToken } from '../tokens/tokens.store.ts'
import type { ClipFilter } from './clip-lists.store.ts'
import type { ListQuery } from './list-query.ts'

/** Reads the clips that parameters name. Throws invalid_field and insufficient_scope. */
export function readFilter(
  { tag, album, state, nsfw, visibility, token, from, to }: ListQuery,
  caller: ApiToken,
  now: Date,
): ClipFilter {
  const filter = {
    tokenId: ownerOf(caller, token),
    tagKey: tag === undefined ? undefined : tagKey(oneLine(tag)),
    albumId: album,
    state,
    nsfw: nsfw === undefined ? undefined : nsfw === 'true',
    visibility,
    from: readTime('from', from),
    to: readTime('to', to),
    now,
  }
  if (album !== undefined && !isClipId(album)) throw invalidField('album', 'must be the id of an album')
  if (filter.from && filter.to && filter.from >= filter.to) throw invalidField('to', 'must be later than from')
  return filter
}

/** A day of UTC, or a time of RFC 3339; a `+` that is not encoded arrives as a blank. */
const TIME = /^([12]\d{3}-\d\d-\d\d)(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+ -]\d\d:\d\d))?$/i

/** Reads a day of UTC or a time. Throws invalid_field. */
export function readTime(param: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  const [, day] = TIME.exec(text) ?? []
  const isDay = day !== undefined && new Date(`${day}T00:00Z`).toJSON()?.startsWith(day) === true
  const time = new Date(text.replace(' ', '+'))
  if (!isDay || Number.isNaN(time.getTime())) {
    throw invalidField(param, 'must be a day, as in 2026-11-30, or a time, as in 2026-11-30T09:00:00Z')
  }
  return time
}

/** Token whose clips a caller lists; null: clips without one, undefined: all. Throws as `readFilter` does. */
export function ownerOf(caller: ApiToken, requested: string | undefined): string | null | undefined {
  if (!allows(caller, 'admin')) {
    if (requested === undefined || requested === caller.id) return caller.id
    throw apiError('insufficient_scope', { details: { scope: 'admin' } })
  }
  if (requested === 'none') return null
  if (requested !== undefined && !isUuid(requested)) throw invalidField('token', 'must be the id of a token, or none')
  return requested
}
