import { thumbHashToDataURL } from 'thumbhash'
import type { ClipView } from '../../core/clips/clip-view.ts'

/**
 * The rule that shows the clip's colours behind the player until its poster is there, for a stylesheet of its own: it is
 * another one for each clip. Undefined where there is nothing to show yet.
 */
export function placeholderCss({ state, placeholder }: ClipView): string | undefined {
  if (state !== 'ready' || !placeholder) return undefined
  // Whatever is drawn on it, light or dark, stands out; the colours themselves would shine through.
  if (showsThrough(placeholder))
    return `video { background: repeating-conic-gradient(#d4d8df 0 25%, #f1f3f6 0 50%) 0 0 / 20px 20px }
@media (prefers-color-scheme: dark) { video { background-image: repeating-conic-gradient(#555c68 0 25%, #6b7280 0 50%) } }`
  return `video { background: url(${thumbHashToDataURL(placeholder)}) center / contain no-repeat }`
}

/** The flag of the thumbhash: bit 23 of its header. */
const showsThrough = (placeholder: Uint8Array): boolean => ((placeholder[2] ?? 0) & 0x80) !== 0
