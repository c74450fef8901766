import type { MediaInfo } from '../../db/media-info.ts'

/** Part, speed and crop of an edit; the result then begins at 0 in its own time. */
export interface CutPlan {
  /** Option `-ss` before the input, which moves all times below; 0 decodes from the beginning. */
  seekSeconds: number
  startSeconds: number
  /** Times between frames; null keeps all. */
  afterSeconds: number | null
  beforeSeconds: number | null
  endSeconds: number
  speed: number
  /** The upright picture of the source, and the part of it. */
  crop: { of: string; part: string } | null
}

export function planCut({ edited, durationSeconds }: MediaInfo): CutPlan | null {
  if (!edited) return null
  const { cut, source, edit } = edited
  const { speed = 1, crop } = edit
  return {
    ...cut,
    seekSeconds: cut.seekSeconds ?? 0,
    endSeconds: cut.startSeconds + durationSeconds * speed,
    speed,
    crop: crop
      ? { of: `${source.width}:${source.height}`, part: `${crop.width}:${crop.height}:${crop.x}:${crop.y}` }
      : null,
  }
}

/** The same part, decoded from the beginning of the file. */
export const fromBeginning = (info: MediaInfo): MediaInfo =>
  info.edited ? { ...info, edited: { ...info.edited, cut: { ...info.edited.cut, seekSeconds: null } } } : info

/**
 * Frames of the part at the result's times, cropped. Decoders may give frames before the sought one, so the frames are
 * chosen by their times, at points halfway between two. The first may begin before the part. The size comes before the
 * crop, because it may change from frame to frame.
 */
export function cutPicture(cut: CutPlan | null): string[] {
  if (!cut) return []
  const at = (time: number) => (time - cut.seekSeconds).toFixed(6)
  const after = cut.afterSeconds === null ? [] : [`start=${at(cut.afterSeconds)}`]
  const before = cut.beforeSeconds === null ? [] : [`end=${at(cut.beforeSeconds)}`]
  const bounds = [...after, ...before]
  return [
    ...(bounds.length > 0 ? [`trim=${bounds.join(':')}`] : []),
    `setpts='max(PTS-${at(cut.startSeconds)}/TB,0)/${cut.speed}'`,
    ...(cut.crop ? [`scale=${cut.crop.of}`, 'setsar=1', `crop=${cut.crop.part}:exact=1`] : []),
  ]
}

/** The sound of the same part, at its pitch. */
export function cutSound(cut: CutPlan): string[] {
  const at = (time: number) => (time - cut.seekSeconds).toFixed(6)
  const start = at(cut.startSeconds)
  return [
    `atrim=start=${start}:end=${at(cut.endSeconds)}`,
    `asetpts=PTS-${start}/TB`,
    ...temposOf(cut.speed).map((tempo) => `atempo=${tempo}`),
  ]
}

/** One `atempo` takes 0.5 to 2 in every version. */
function temposOf(speed: number): number[] {
  if (speed === 1) return []
  return speed >= 0.5 && speed <= 2 ? [speed] : [Math.sqrt(speed), Math.sqrt(speed)]
}
