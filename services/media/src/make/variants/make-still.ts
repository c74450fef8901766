import { readFile, stat } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import sharp, { type Sharp } from 'sharp'
import type { Variant } from '../../core/variants/variant.ts'
import { hashFile } from '../../store/blobs/measure.ts'
import { workFiles } from '../transcode/ffmpeg-command.ts'
// Its settings of sharp hold for the whole process.
import { JPEG, WEBP } from '../transcode/poster.ts'
import type { Rendition } from '../transcode/verify-renditions.ts'
import { frameCommand, type Picture } from './variant-command.ts'
import { runFfmpeg, type VariantWork } from './variant-work.ts'

/** A request waits for it. The slowest seek decodes five seconds of 1080p. */
const LIMITS = { wallSeconds: 15, cpuSeconds: 20, memoryBytes: 3 * 1024 ** 3, fileBytes: 64 * 1024 ** 2 }
const MOST_THREADS = 4
/** Frames of a slow GIF are repeated in the mp4 (make/transcode/rendition-plan.ts). */
const SLOWEST_FPS = 10
/** The usual priority of ffmpeg here (ffmpeg/run-confined.ts). */
const NICENESS = 10

/** Makes a jpg or webp of the poster, or of the frame at a moment, which needs the mp4. */
export async function makeStill(work: VariantWork, variant: Variant, picture: Picture): Promise<Rendition> {
  const { ending, atSeconds } = variant
  const image = atSeconds === undefined ? posterOf(work, picture) : await frameOf(work, picture, atSeconds)
  const path = resolve(work.workDirectory, `still.${ending}`)
  const { width, height } = await (ending === 'jpg' ? image.jpeg(JPEG) : image.webp(WEBP)).toFile(path)
  if (width !== picture.width || height !== picture.height) throw new Error(`the still is ${width}x${height}`)
  return { ...(await hashFile(path)), width, height }
}

function posterOf({ workDirectory }: VariantWork, { width, height, crops }: Picture): Sharp {
  return sharp(resolve(workDirectory, workFiles.jpg)).resize(width, height, { fit: crops ? 'cover' : 'fill' })
}

async function frameOf(work: VariantWork, picture: Picture, atSeconds: number): Promise<Sharp> {
  const threads = Math.min(MOST_THREADS, availableParallelism())
  const command = frameCommand(picture, { atSeconds, fps: Math.max(SLOWEST_FPS, work.info.fps) }, threads)
  await runFfmpeg(work, command, { limits: LIMITS, niceness: NICENESS })
  const path = resolve(work.workDirectory, workFiles.poster)
  const { width, height } = picture
  const { size } = await stat(path)
  if (size !== width * height * 3) throw new Error(`ffmpeg made no frame at ${atSeconds} s`)
  return sharp(await readFile(path), { raw: { width, height, channels: 3 } })
}
