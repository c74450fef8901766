import { thumbHashToDataURL } from 'thumbhash'
import type { ClipView } from './clip-view.ts'

/**
 * The rule that shows the clip's colours behind the player until its poster is there, for a stylesheet of its own: it is
 * another one for each clip. Undefined where there is nothing to show yet.
 */
export function placeholderCss({ state, placeholder }: ClipView): string | undefined {
  if (state !== 'ready' || !placeholder) return undefined
  return `video { background: url(${thumbHashToDataURL(placeholder)}) center / contain no-repeat }`
}
