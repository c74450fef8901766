import type { MediaInfo, VideoInfo } from '../../db/media-info.ts'
import { isAnimation } from '../../db/media-info.ts'
import { FPS_TOLERANCE, type RenditionPlan, toNumber } from '../plan/rendition-plan.ts'
import type { FfmpegLog } from './ffmpeg-log.ts'

/** Seconds that the picture of made files lacks, if that is more than rounding. */
export function missingSeconds({ durationSeconds, fps }: MediaInfo, madeSeconds: number): number {
  const missing = durationSeconds - madeSeconds
  return missing > 0.1 + 1 / fps ? missing : 0
}

/**
 * The facts of a source as its files show it. The probe counts packets, of which some are never shown, are fields of
 * one frame, or cannot be decoded. Of a damaged source the mp4 has the frames and the length.
 */
export function measuredInfo(
  info: MediaInfo,
  plan: RenditionPlan,
  { log, madeSeconds }: { log: FfmpegLog; madeSeconds: number },
): MediaInfo {
  if (isAnimation(info) || plan.isStill) return info
  const shown = Math.min(info.frames, shownFrames(info, plan, log) || info.frames)
  const isShorter = missingSeconds(info, madeSeconds) > 0
  const isDamaged = info.repaired || isShorter || (shown < info.frames && log.complaint !== undefined)
  // A complaint may be about frames outside the part.
  const isUnsure = isDamaged || (!isWhole(info) && log.complaint !== undefined)
  const frames = (isUnsure && log.writtenFrames) || shown
  const durationSeconds = isDamaged ? madeSeconds : info.durationSeconds
  return { ...info, frames, durationSeconds, fps: frames / durationSeconds, ...(isDamaged && { repaired: true }) }
}

/** Undefined if unknown. A part that is made regular has all of its frames unless it has more of them. */
function shownFrames(info: VideoInfo, { frameRate, videoStream }: RenditionPlan, log: FfmpegLog): number | undefined {
  if (frameRate === null) return log.writtenFrames
  if (isWhole(info)) return log.framesOf(videoStream)
  return info.baseFps > toNumber(frameRate.rate) * FPS_TOLERANCE ? undefined : log.writtenFrames
}

/** Only then are the decoded frames those of the result. */
const isWhole = ({ edited }: MediaInfo): boolean =>
  edited?.edit.start === undefined && edited?.edit.duration === undefined
