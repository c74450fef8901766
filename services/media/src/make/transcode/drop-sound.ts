import { rename } from 'node:fs/promises'
import { withoutSoundCommand } from '../command/ffmpeg-command.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import { encode, inWork, type TranscodeWork } from '../run/encode.ts'
import type { FfmpegLog } from '../run/ffmpeg-log.ts'

/**
 * Leaves a silent sound out of finished videos: only the log of the pass that made them shows that it is silent.
 * Returns the plan that the videos then follow.
 */
export async function dropSilence(
  work: TranscodeWork,
  plan: RenditionPlan,
  { log, videos }: { log: FfmpegLog; videos: ('mp4' | 'webm')[] },
): Promise<RenditionPlan> {
  if (plan.audioStream === null || log.isAudible) return plan
  await encode(work, withoutSoundCommand(plan, videos))
  for (const video of videos)
    await rename(inWork(work, video === 'mp4' ? 'silentMp4' : 'silentWebm'), inWork(work, video))
  return { ...plan, audioStream: null }
}
