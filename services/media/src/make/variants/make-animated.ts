// Makes gif, animated webp and mp4 variants of a clip's own mp4 (or of its webm, where that is transparent). The same
// clip always gives the same bytes, so one thread encodes. Tests: test/variants.test.ts.
import { resolve } from 'node:path'
import sharp from 'sharp'
import type { Size } from '../../core/clips/geometry.ts'
import type { Variant } from '../../core/variants/variant.ts'
import { hashFile } from '../../store/blobs/measure.ts'
import { workFiles } from '../command/work-files.ts'
import { writeGif } from '../gif/write-gif.ts'
import { GIF_BUDGET_BYTES, planGif, slowestGifDelay } from '../plan/gif-plan.ts'
import { runLimits } from '../plan/run-limits.ts'
import { runFfprobe } from '../probe/ffprobe.ts'
import type { FramesPipe } from '../run/encode.ts'
import { runFfmpeg } from '../run/run-ffmpeg.ts'
import { type Rendition, verifyGif, verifyVideo } from '../run/verify-renditions.ts'
import { hasAlpha } from '../transcode/make-extras.ts'
import { fitBytes } from './fit-bytes.ts'
import {
  type Animation,
  animatedWebpCommand,
  gifFramesCommand,
  mp4Command,
  type Picture,
  variantMp4,
} from './variant-command.ts'
import type { VariantMade, VariantWork } from './variant-work.ts'

/** Gives way to clips, the API and stills. */
const NICENESS = 19

/** `original`: the clip's file of this type. */
export async function makeAnimated(
  work: VariantWork,
  { ending, maxBytes }: Variant,
  picture: Picture,
  original: Size & { bytes: number },
): Promise<VariantMade> {
  if (ending === 'mp4') {
    return maxBytes === undefined ? { file: await makeMp4(work, picture, null) } : fitMp4(work, picture, maxBytes)
  }
  const animation = await animationOf(work, picture)
  if (ending === 'anim.webp') return { file: await makeWebp(work, animation) }
  if (maxBytes === undefined) return { file: await makeGif(work, animation, GIF_BUDGET_BYTES) }
  // The writer itself saves up to a half.
  const firstShare = Math.min(1, (1.8 * maxBytes) / original.bytes)
  return fitBytes(maxBytes, firstShare, (share) => makeGif(work, reduced(animation, share), maxBytes))
}

async function animationOf(work: VariantWork, picture: Picture): Promise<Animation> {
  const { tools, workDirectory, info, signal } = work
  const { durationSeconds } = await readMp4(work)
  const { delayCentiseconds, loopCount } = planGif(
    info,
    Math.max(picture.width, picture.height),
    slowestGifDelay(durationSeconds),
  )
  const isClear = await hasAlpha(tools, resolve(workDirectory, workFiles.webm), signal)
  return { ...picture, delayCentiseconds, loopCount, hasAlpha: isClear, durationSeconds }
}

/** Fewer frames look better than a smaller picture down to this delay. */
const LONGEST_DELAY = 12
const SMALLEST_SIDE = 16

/** An animation with a share of the pixels of all frames, less of it from their number than from their size. */
function reduced(animation: Animation, share: number): Animation {
  const { width, height, delayCentiseconds } = animation
  const delay = Math.round(delayCentiseconds / Math.cbrt(share))
  const slower = Math.max(delayCentiseconds, Math.min(LONGEST_DELAY, delay))
  const scale = Math.min(1, Math.sqrt((share * slower) / delayCentiseconds))
  const side = (length: number) => Math.min(length, Math.max(SMALLEST_SIDE, Math.round(length * scale)))
  return { ...animation, width: side(width), height: side(height), delayCentiseconds: slower }
}

async function makeGif(work: VariantWork, animation: Animation, budgetBytes: number): Promise<Rendition> {
  const { width, height, delayCentiseconds, loopCount, hasAlpha, durationSeconds } = animation
  const totalCentiseconds = Math.round(durationSeconds * 100)
  const budget = { bytes: budgetBytes, frames: Math.ceil(totalCentiseconds / delayCentiseconds) }
  const format = { width, height, delayCentiseconds, loopCount, hasAlpha, budget }
  const encodeFrames = (frames: FramesPipe) =>
    runFfmpeg(work, gifFramesCommand(work.tools.ffmpeg, animation), background(work, frames))
  await writeGif(work, { file: workFiles.gif, format, totalCentiseconds }, encodeFrames, NICENESS)
  const path = resolve(work.workDirectory, workFiles.gif)
  const { seconds, ...size } = await verifyGif(path)
  requireLength(seconds, durationSeconds, delayCentiseconds / 100)
  return { ...requireSize(size, animation), ...(await hashFile(path)) }
}

async function makeWebp(work: VariantWork, animation: Animation): Promise<Rendition> {
  await runFfmpeg(work, animatedWebpCommand(work.tools.ffmpeg, animation), background(work))
  const path = resolve(work.workDirectory, workFiles.webp)
  const { width, pageHeight, height } = await sharp(path, { animated: true }).metadata()
  return { ...requireSize({ width, height: pageHeight ?? height }, animation), ...(await hashFile(path)) }
}

async function makeMp4(work: VariantWork, picture: Picture, bitRate: number | null): Promise<Rendition> {
  const { tools, workDirectory, signal } = work
  await runFfmpeg(work, mp4Command(tools.ffmpeg, picture, bitRate), background(work))
  const path = resolve(workDirectory, variantMp4)
  const size = { width: picture.width, height: picture.height }
  const seconds = await verifyVideo(tools, path, { demuxer: 'mov', codec: 'h264', size, signal })
  requireLength(seconds, (await readMp4(work)).durationSeconds, 0)
  return { ...(await hashFile(path)), ...size }
}

/** Bits per pixel and second below which fewer pixels look better. */
const FEWEST_BITS = 1.2
const LEAST_BIT_RATE = 20_000
/** Part of the bytes for the picture; the rest is for the container and an encoder that exceeds its rate. */
const PICTURE_PART = 0.95

async function fitMp4(work: VariantWork, picture: Picture, maxBytes: number): Promise<VariantMade> {
  const { durationSeconds, soundBytes } = await readMp4(work)
  const bytes = PICTURE_PART * (maxBytes - soundBytes)
  return fitBytes(maxBytes, 1, (share) => {
    const bitRate = Math.max(LEAST_BIT_RATE, Math.floor((8 * share * bytes) / durationSeconds))
    const scale = Math.min(1, Math.sqrt(bitRate / FEWEST_BITS / (picture.width * picture.height)))
    const side = (length: number) => Math.min(length, Math.max(SMALLEST_SIDE, 2 * Math.round((length * scale) / 2)))
    return makeMp4(work, { ...picture, width: side(picture.width), height: side(picture.height) }, bitRate)
  })
}

/** Length of the clip's picture, which may be less than its source declared, and the size of its sound. */
async function readMp4({ tools, workDirectory, signal }: VariantWork) {
  const path = resolve(workDirectory, workFiles.mp4)
  const verifying = { ...tools, ffprobe: tools.verifier }
  const { packets = [], streams } = await runFfprobe(verifying, path, { demuxer: 'mov', packets: true, signal })
  const picture = streams?.find(({ codec_type }) => codec_type === 'video')
  const sound = streams?.find(({ codec_type }) => codec_type === 'audio')
  const ofSound = packets.filter(({ stream_index }) => stream_index === sound?.index)
  const soundBytes = ofSound.reduce((sum, { size = '0' }) => sum + Number(size), 0)
  const durationSeconds = Number.parseFloat(picture?.duration ?? '')
  if (!(durationSeconds > 0)) throw new Error('the mp4 has no length')
  return { durationSeconds, soundBytes }
}

const background = ({ info }: VariantWork, frames?: FramesPipe) => ({
  limits: runLimits(info, 1, frames?.writerSeconds),
  niceness: NICENESS,
  ...(frames && { frames: frames.pipe }),
})

function requireSize(made: Size, { width, height }: Size): Size {
  if (made.width === width && made.height === height) return { width, height }
  throw new Error(`the variant is ${made.width}x${made.height} and not ${width}x${height}`)
}

/** Rounding may cost a frame. */
function requireLength(seconds: number, expected: number, frameSeconds: number): void {
  if (Math.abs(seconds - expected) <= 0.25 + frameSeconds) return
  throw new Error(`the variant lasts ${seconds} s and not ${expected} s`)
}
