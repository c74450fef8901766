import { layOutCaption } from '../../core/captions/caption.ts'
import type { Size } from '../../core/clips/geometry.ts'
import { type Edit, outOfRange, resolveCrop } from '../../core/edits/edit.ts'
import type { AnimationInfo, Cut, Edited, MediaInfo, ResolvedEdit, VideoInfo } from '../../db/media-info.ts'

interface Found {
  cut: Cut
  /** Start of the part in the picture. */
  startSeconds: number
  /** Length of the whole source; null if unknown. */
  sourceSeconds: number | null
}

/**
 * The facts of the result, from those of the chosen part at its own speed and size; unchanged if the edit changes
 * nothing. Throws edit_out_of_range.
 */
export function editVideo(info: VideoInfo, edit: Edit, found: Found): VideoInfo {
  const { speed = 1, mute } = edit
  const edited = resolve(info, edit, found)
  if (!edited) return info
  // Only its pictures as they are can be a copy.
  const { start, duration, crop, caption } = edited.edit
  const isWhole = start === undefined && duration === undefined && !crop && !caption && speed === 1
  const { stored, ...rest } = info
  return {
    ...rest,
    ...pictureOf(info, edited),
    baseFps: info.baseFps * speed,
    longestFrameSeconds: info.longestFrameSeconds / speed,
    shortestFrameSeconds: info.shortestFrameSeconds / speed,
    ...(mute && { hasAudio: false, audioStream: null }),
    ...(isWhole && stored && { stored }),
  }
}

export function editGif(info: AnimationInfo, edit: Edit, found: Found): AnimationInfo {
  const edited = resolve(info, edit, found)
  return edited ? { ...info, ...pictureOf(info, edited), rewritable: false } : info
}

function pictureOf({ durationSeconds, fps, ...picture }: MediaInfo, edited: Edited) {
  const { speed = 1, crop } = edited.edit
  const { width, height } = crop ?? picture
  return { width, height, durationSeconds: durationSeconds / speed, fps: fps * speed, edited }
}

function resolve(info: MediaInfo, edit: Edit, { cut, startSeconds, sourceSeconds }: Found): Edited | undefined {
  const { posterAt, speed = 1, mute, caption } = edit
  if (posterAt !== undefined && posterAt >= info.durationSeconds / speed) {
    throw outOfRange('poster_at', { duration: info.durationSeconds / speed })
  }
  const crop = edit.crop && resolveCrop(edit.crop, info)
  const changesSize = crop && (crop.width < info.width || crop.height < info.height)
  const layout = caption && layOutCaption(caption.text, crop ?? info)
  if (caption && !layout) throw outOfRange('caption', { picture: sizeOf(crop ?? info) })
  const isFromStart = startSeconds === 0 && !edit.missingSeconds
  const { duration = Number.POSITIVE_INFINITY } = edit
  // A part of a source of unknown length is shorter than requested only if the source ends.
  const isWholeRest =
    sourceSeconds === null
      ? info.durationSeconds < duration - 0.001
      : info.durationSeconds >= sourceSeconds - startSeconds - 0.001
  const isToEnd = cut.beforeSeconds === null && isWholeRest
  const resolved: ResolvedEdit = {
    ...(!isFromStart && edit.start !== undefined && { start: edit.start }),
    ...(!isToEnd && { duration: round(info.durationSeconds) }),
    ...(changesSize && { crop }),
    ...(speed !== 1 && { speed }),
    ...(mute && info.hasAudio && { mute }),
    ...(posterAt !== undefined && { posterAt }),
    ...(caption && { caption }),
  }
  if (Object.keys(resolved).length === 0) return undefined
  const { width, height } = info
  const source = { width, height, durationSeconds: sourceSeconds && round(sourceSeconds) }
  return { edit: resolved, source, cut, ...(layout && { caption: layout }) }
}

const sizeOf = ({ width, height }: Size) => `${width}x${height}`

const round = (value: number) => Math.round(value * 1000) / 1000
