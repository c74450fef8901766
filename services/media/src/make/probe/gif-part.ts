import type { Edit } from '../../core/edits/edit.ts'
import type { Cut } from '../../db/media-info.ts'
import { between, choosePart } from './choose-part.ts'
import { gapsOf } from './picture-times.ts'

/**
 * The delays (cs) of the frames that an edit chooses, the first and the last one cut to the part. Throws
 * edit_out_of_range.
 */
export function partOfGif(delays: readonly number[], edit: Edit): { delays: number[]; startSeconds: number; cut: Cut } {
  let at = 0
  const frames = delays.map((delay) => {
    const frame = { at: at / 100, isKeyframe: false }
    at += delay
    return frame
  })
  const { from, end, startSeconds, durationSeconds } = choosePart(frames, edit, at / 100)
  const times = [startSeconds, ...frames.slice(from + 1, end).map((frame) => frame.at), startSeconds + durationSeconds]
  return {
    delays: gapsOf(times).map((gap) => Math.max(1, toCentiseconds(gap))),
    startSeconds,
    cut: {
      seekSeconds: null,
      startSeconds,
      afterSeconds: between(frames, from),
      beforeSeconds: between(frames, end),
      skippedFrames: from,
    },
  }
}

const toCentiseconds = (seconds: number) => Math.round(seconds * 1e6) / 1e4
