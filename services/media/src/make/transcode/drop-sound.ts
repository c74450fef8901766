import { rename } from 'node:fs/promises'
import { encode, inWork, type TranscodeWork } from './encode.ts'
import { withoutSoundCommand } from './ffmpeg-command.ts'
import type { RenditionPlan } from './rendition-plan.ts'

/** Silence and undecodable sound count as none, so that chat programs treat the clip like a GIF. */
export function isAudible(log: string): boolean {
  const loudest = /max_volume: (-?[\d.]+) dB/.exec(log)?.[1]
  return loudest !== undefined && Number(loudest) > -70
}

/**
 * Leaves a silent sound out of finished videos: only the log of the pass that made them shows that it is silent. Returns the plan
 * that the videos then follow.
 */
export async function dropSilence(
  work: TranscodeWork,
  plan: RenditionPlan,
  { log, videos }: { log: string; videos: ('mp4' | 'webm')[] },
): Promise<RenditionPlan> {
  if (plan.audioStream === null || isAudible(log)) return plan
  await encode(work, withoutSoundCommand(videos))
  for (const video of videos)
    await rename(inWork(work, video === 'mp4' ? 'silentMp4' : 'silentWebm'), inWork(work, video))
  return { ...plan, audioStream: null }
}
