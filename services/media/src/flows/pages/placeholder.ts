import { thumbHashToDataURL } from 'thumbhash'
import type { ClipView } from '../../core/clips/clip-view.ts'

/** CSS that shows the clip's colours until its poster loads. Its own stylesheet, because it differs per clip. */
export function placeholderCss({ state, placeholder }: ClipView): string | undefined {
  if (state !== 'ready' || !placeholder) return undefined
  // Transparent clips: the colours would shine through, and on squares both light and dark content stands out.
  if (showsThrough(placeholder))
    return `video { background: repeating-conic-gradient(#d4d8df 0 25%, #f1f3f6 0 50%) 0 0 / 20px 20px }
@media (prefers-color-scheme: dark) { video { background-image: repeating-conic-gradient(#555c68 0 25%, #6b7280 0 50%) } }`
  return `video { background: url(${thumbHashToDataURL(placeholder)}) center / contain no-repeat }`
}

/** Alpha flag of the thumbhash: bit 23 of its header. */
const showsThrough = (placeholder: Uint8Array): boolean => ((placeholder[2] ?? 0) & 0x80) !== 0
