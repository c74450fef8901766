// The GIF of a clip: which program writes it, beside which encoders, and what is done until it is small enough.
import { stat } from 'node:fs/promises'
import { hashFile } from '../../store/blobs/measure.ts'
import { smallerGifCommand } from '../command/ffmpeg-command.ts'
import type { GifSource } from '../command/filter-graph.ts'
import { GIF_BUDGET_BYTES, smallerGifs } from '../plan/gif-plan.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import { ENCODING, encode, inWork, type TranscodeWork } from '../run/encode.ts'
import type { FfmpegLog } from '../run/ffmpeg-log.ts'
import { type Rendition, verifyGif } from '../run/verify-renditions.ts'
import { clearAfterEachFrame, rewriteGif } from './gif-rewrite.ts'
import { gifOf, writeGif } from './write-gif.ts'

export function gifSourceOf(work: TranscodeWork, plan: RenditionPlan): GifSource {
  if (plan.gif.from === 'rewrite') return 'none'
  return work.gifEncoder === 'own' ? 'frames' : 'palette-file'
}

/** Runs a command whose outputs include the GIF or its frames, and returns what its log shows. */
export async function encodeWithGif(
  work: TranscodeWork,
  plan: RenditionPlan,
  { command, gif, progress = ENCODING }: { command: string[]; gif: GifSource; progress?: typeof ENCODING },
): Promise<FfmpegLog> {
  if (gif === 'frames') return writeGif(work, gifOf(plan), (frames) => encode(work, command, { progress, frames }))
  const log = await encode(work, command, { progress })
  if (gif !== 'none' && plan.keepsAlpha) await clearAfterEachFrame(inWork(work, 'gif'))
  return log
}

/** Verifies and hashes the GIF, which of a GIF is the source itself, rewritten. */
export async function collectGif(work: TranscodeWork, plan: RenditionPlan): Promise<Rendition & { seconds: number }> {
  const path = inWork(work, 'gif')
  if (plan.gif.from === 'rewrite') await rewriteGif(inWork(work, 'input'), path)
  return { ...(await verifyGif(path)), ...(await hashFile(path)) }
}

/** Makes the GIF again from the finished video, smaller each time, until it is within the usual bytes. */
export async function shrinkGif(work: TranscodeWork, plan: RenditionPlan, gif: GifSource): Promise<void> {
  if (plan.gif.from === 'rewrite') return
  for (const smaller of smallerGifs(work.info, plan.gif)) {
    const { size } = await stat(inWork(work, 'gif'))
    if (size <= GIF_BUDGET_BYTES) return
    const shrunk = { ...plan, gif: smaller }
    const command = smallerGifCommand(work.tools.ffmpeg, shrunk, { threads: work.threads, gif })
    await encodeWithGif(work, shrunk, { command, gif })
  }
}
