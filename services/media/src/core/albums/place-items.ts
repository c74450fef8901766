import { invalidField } from '../clips/clip-fields.ts'
import { isClipId } from '../clips/clip-id.ts'
import { albumFull } from './change-album.ts'
import { MAX_ITEMS } from './shown-items.store.ts'

/** Checks the ids that a caller sent. Throws album_full and invalid_field. */
export function checkIds(ids: readonly string[]): void {
  if (ids.length > MAX_ITEMS) throw albumFull()
  if (new Set(ids).size < ids.length) throw invalidField('ids', 'must not have a clip twice')
  if (!ids.every(isClipId)) throw invalidField('ids', 'must be ids of clips')
}

/**
 * Puts clips into an album: before another clip, where those that are in it already move too, or at its end. Throws
 * invalid_field.
 */
export function placeItems(
  current: readonly string[],
  { ids, before }: { ids: readonly string[]; before?: string | undefined },
): string[] {
  const moved = new Set(ids)
  if (before === undefined) {
    const known = new Set(current)
    return [...current, ...ids.filter((id) => !known.has(id))]
  }
  const others = current.filter((id) => !moved.has(id))
  const at = others.indexOf(before)
  if (at === -1) throw invalidField('before', 'must be another clip of the album')
  return others.toSpliced(at, 0, ...ids)
}
