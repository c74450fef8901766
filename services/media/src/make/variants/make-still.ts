import { readFile, stat } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import sharp, { type Sharp } from 'sharp'
import type { Variant } from '../../core/variants/variant.ts'
import { hashFile } from '../../store/blobs/measure.ts'
import { workFiles } from '../command/work-files.ts'
// Its settings of sharp hold for the whole process.
import { JPEG, WEBP } from '../poster/encode-poster.ts'
import { runFfmpeg } from '../run/run-ffmpeg.ts'
import type { Rendition } from '../run/verify-renditions.ts'
import { frameCommand, lastFrameCommand, type Picture } from './variant-command.ts'
import type { VariantWork } from './variant-work.ts'

/** A request waits for it. The slowest seek decodes five seconds of 1080p. */
const LIMITS = { wallSeconds: 15, cpuSeconds: 20, memoryBytes: 3 * 1024 ** 3, fileBytes: 64 * 1024 ** 2 }
const MAX_THREADS = 4
/** Before the encoders, which have 10, because a request waits. */
const NICENESS = 5
/** Without mozjpeg, which takes 80 ms of 1080p for 8 % of the bytes. */
const FRAME_JPEG = { quality: JPEG.quality }

/** Makes a jpg or webp of the poster, or of the frame at a moment, which needs the mp4. */
export async function makeStill(work: VariantWork, variant: Variant, picture: Picture): Promise<Rendition> {
  const { ending, atSeconds } = variant
  const image = atSeconds === undefined ? posterOf(work, picture) : await frameOf(work, picture, atSeconds)
  const path = resolve(work.workDirectory, `still.${ending}`)
  const { width, height } = await (ending === 'jpg'
    ? image.jpeg(atSeconds === undefined ? JPEG : FRAME_JPEG)
    : image.webp(WEBP)
  ).toFile(path)
  if (width !== picture.width || height !== picture.height) throw new Error(`the still is ${width}x${height}`)
  return { ...(await hashFile(path)), width, height }
}

function posterOf({ workDirectory }: VariantWork, { width, height, crops }: Picture): Sharp {
  return sharp(resolve(workDirectory, workFiles.jpg)).resize(width, height, { fit: crops ? 'cover' : 'fill' })
}

async function frameOf(work: VariantWork, picture: Picture, atSeconds: number): Promise<Sharp> {
  const threads = Math.min(MAX_THREADS, availableParallelism())
  const path = resolve(work.workDirectory, workFiles.poster)
  const { width, height } = picture
  for (const command of [frameCommand, lastFrameCommand]) {
    await runFfmpeg(work, command(picture, atSeconds, threads), { limits: LIMITS, niceness: NICENESS })
    const { size } = await stat(path)
    if (size === width * height * 3) return sharp(await readFile(path), { raw: { width, height, channels: 3 } })
  }
  throw new Error(`ffmpeg made no frame at ${atSeconds} s`)
}
