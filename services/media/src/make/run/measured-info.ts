import type { MediaInfo } from '../../db/media-info.ts'
import { isAnimation } from '../../db/media-info.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import type { FfmpegLog } from './ffmpeg-log.ts'

/** Seconds that the picture of made files lacks, if that is more than rounding. */
export function missingSeconds({ durationSeconds, fps }: MediaInfo, madeSeconds: number): number {
  const missing = durationSeconds - madeSeconds
  return missing > 0.1 + 1 / fps ? missing : 0
}

/**
 * The facts of a source as its files show it. The probe counts packets, of which some are never shown, are fields of one
 * frame, or cannot be decoded.
 */
export function measuredInfo(
  info: MediaInfo,
  plan: RenditionPlan,
  { log, madeSeconds }: { log: FfmpegLog; madeSeconds: number },
): MediaInfo {
  if (isAnimation(info) || plan.isStill) return info
  const decoded = isWhole(info) ? log.framesOf(plan.videoStream) : undefined
  const frames = Math.min(info.frames, decoded || info.frames)
  const isShorter = missingSeconds(info, madeSeconds) > 0
  const durationSeconds = isShorter ? madeSeconds : info.durationSeconds
  const isDamaged = isShorter || (frames < info.frames && log.complaint !== undefined)
  return { ...info, frames, durationSeconds, fps: frames / durationSeconds, ...(isDamaged && { repaired: true }) }
}

/** Only then are the decoded frames those of the result. */
const isWhole = ({ edited }: MediaInfo): boolean =>
  edited?.edit.start === undefined && edited?.edit.duration === undefined
