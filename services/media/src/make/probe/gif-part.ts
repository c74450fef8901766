import type { Edit } from '../../core/edits/edit.ts'
import type { Cut } from '../../db/media-info.ts'
import { between, choosePart } from './choose-part.ts'

/** The delays (cs) of the frames that an edit chooses, the last one cut to its end. Throws edit_out_of_range. */
export function partOfGif(delays: readonly number[], edit: Edit): { delays: number[]; cut: Cut } {
  let at = 0
  const frames = delays.map((delay) => {
    const frame = { at: at / 100, isKeyframe: false }
    at += delay
    return frame
  })
  const { from, end, startSeconds, durationSeconds } = choosePart(frames, edit, at / 100)
  const shown = delays.slice(from, end)
  const earlier = shown.slice(0, -1)
  const rest = durationSeconds * 100 - earlier.reduce((sum, delay) => sum + delay, 0)
  return {
    delays: [...earlier, Math.max(1, Math.round(rest * 1e4) / 1e4)],
    cut: {
      seekSeconds: null,
      startSeconds,
      afterSeconds: between(frames, from),
      beforeSeconds: between(frames, end),
      skippedFrames: from,
    },
  }
}
