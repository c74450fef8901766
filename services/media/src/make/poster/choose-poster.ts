// The moment whose frame stands for a clip: the caller's, or the typical frame (`typicalFrame` in
// ../command/filter-graph.ts), or another if that one is empty.
import { rename, rm } from 'node:fs/promises'
import { hashFile } from '../../store/blobs/measure.ts'
import { clearPosterCommand, posterCommand } from '../command/ffmpeg-command.ts'
import { workFiles } from '../command/work-files.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import { allToTheirEnd, encode, inWork, type TranscodeWork } from '../run/encode.ts'
import { UnusableOutput } from '../run/failures.ts'
import { type ClearPoster, isWholePoster, makePlaceholder, makePoster, posterTime } from './encode-poster.ts'

/**
 * Makes the jpg of the raw picture in `workFiles.poster`, or of the frame that the caller chose. A clip that begins
 * black or empty gets the frame at a third of its duration, unless that one is darker. Throws UnusableOutput when
 * ffmpeg made none.
 */
export async function choosePoster(work: TranscodeWork, plan: RenditionPlan): Promise<void> {
  const [raw, jpg] = [inWork(work, 'poster'), inWork(work, 'jpg')]
  if (plan.posterSeconds !== null) {
    await rm(raw, { force: true })
    await encode(work, posterCommand(plan, plan.posterSeconds))
  }
  if (!(await isWholePoster(raw, plan.video))) throw new UnusableOutput('ffmpeg made no poster')
  const first = await makePoster(raw, jpg, plan.video)
  if (!(first.dark || first.isEmpty) || plan.isStill || plan.posterSeconds !== null) return

  await rm(raw)
  await encode(work, posterCommand(plan, plan.startSeconds + plan.durationSeconds / 3))
  if (!(await isWholePoster(raw, plan.video))) return
  const second = await makePoster(raw, inWork(work, 'brighterJpg'), plan.video)
  if (second.luma > first.luma || (first.isEmpty && !second.isEmpty)) await rename(inWork(work, 'brighterJpg'), jpg)
}

/** Hashes the jpg and makes its thumbhash, for a transparent clip of a picture in the finished webm. */
export async function collectPoster(work: TranscodeWork, plan: RenditionPlan) {
  const path = inWork(work, 'jpg')
  const picture = plan.keepsAlpha ? takeClearPoster(work, plan) : path
  const [placeholder, jpg] = await allToTheirEnd(Promise.resolve(picture).then(makePlaceholder), hashFile(path))
  return { jpg: { ...jpg, ...plan.video }, placeholder }
}

async function takeClearPoster(work: TranscodeWork, { video, durationSeconds }: RenditionPlan): Promise<ClearPoster> {
  await encode(work, clearPosterCommand(work.tools.ffmpeg, workFiles.webm, posterTime(durationSeconds)))
  return { path: inWork(work, 'clearPoster'), ...video }
}
