// Frames of animations for ffmpeg, and whether their transparency is in use.
import { stat } from 'node:fs/promises'
import { isAnimation } from '../../db/media-info.ts'
import { readLaidApng } from '../animation/laid-apng.ts'
import { unpackAnimation } from '../animation/unpack-animation.ts'
import { transparencyCommand } from '../command/ffmpeg-command.ts'
import { readLaidFrames, writeGifForFfmpeg } from '../gif/drawn-gif.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import { findUnsurePixels } from '../plan/unsure-pixels.ts'
import { encode, inWork, type TranscodeWork } from '../run/encode.ts'
import { mayRetry } from '../run/failures.ts'

/** Writes the frames of an animation that ffmpeg itself would not read, or draw otherwise. */
export async function writeFrames(work: TranscodeWork, { file }: RenditionPlan): Promise<void> {
  const { type } = work.info
  if (file === 'input' || (await exists(inWork(work, file)))) return
  if (type === 'apng' || type === 'webp') await unpackAnimation(work, type)
  else await writeGifForFfmpeg(inWork(work, 'input'), inWork(work, file), work.signal)
}

/**
 * Most GIFs only seem transparent, as their frames omit unchanged pixels; a needless alpha plane doubles the webm's
 * cost.
 */
export async function keepAlphaInUse(work: TranscodeWork, plan: RenditionPlan): Promise<RenditionPlan> {
  if (!isAnimation(work.info) || !plan.keepsAlpha) return plan
  const path = inWork(work, plan.file)
  const frames = await (work.info.type === 'gif' ? readLaidFrames(path) : readLaidApng(path))
  const unsure = findUnsurePixels(work.info.edited?.source ?? work.info, frames)
  if (unsure === 'certain') return plan
  if (unsure === null) return { ...plan, keepsAlpha: false }
  try {
    await encode(work, transparencyCommand(plan, unsure))
    return { ...plan, keepsAlpha: await exists(inWork(work, 'transparency')) }
  } catch (error) {
    if (!mayRetry(work, error)) throw error
    return { ...plan, keepsAlpha: false }
  }
}

/** False for an empty file, too. */
export const exists = async (path: string): Promise<boolean> =>
  ((await stat(path).catch(() => undefined))?.size ?? 0) > 0
