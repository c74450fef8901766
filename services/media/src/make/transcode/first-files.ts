import { hashFile } from '../../store/blobs/measure.ts'
import { copyCommand } from '../command/ffmpeg-command.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import { choosePoster, collectPoster } from '../poster/choose-poster.ts'
import { encode, type FirstFiles, inWork, type TranscodeWork } from '../run/encode.ts'
import { requireFitToItsEnd, verifyMp4 } from '../run/verify-renditions.ts'
import { dropSilence } from './drop-sound.ts'

/** Progress of the whole while the copy is decoded: about a tenth of the time that the encoders take. */
const COPYING = { from: 0.05, to: 0.15 }

/**
 * Makes poster and mp4 of a source whose own streams are the mp4, so that both can be shown before anything is encoded.
 * A copy is published only after it decoded without errors, which costs one extra decode. Otherwise throws
 * UnusableOutput.
 */
export async function makeFirstFiles(work: TranscodeWork, plan: RenditionPlan): Promise<FirstFiles> {
  const { tools, info, threads, signal, workDirectory: directory } = work
  const command = copyCommand(tools.ffmpeg, plan, { threads, poster: plan.posterSeconds === null })
  const log = await encode(work, command, { progress: COPYING })
  await requireFitToItsEnd(log, { directory, plan, info })
  const made = await dropSilence(work, plan, { log, videos: ['mp4'] })
  await verifyMp4(tools, { directory, plan: made, signal })
  await choosePoster(work, made)
  const mp4 = { ...(await hashFile(inWork(work, 'mp4'))), ...plan.video, copied: true }
  return { ...(await collectPoster(work, made)), mp4, hasAudio: made.audioStream !== null }
}
