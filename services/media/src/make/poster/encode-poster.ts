// The jpg, WebP and placeholder of a picture. Which moment the picture is of: choose-poster.ts.
import { readFile, stat } from 'node:fs/promises'
import sharp, { type Sharp } from 'sharp'
import { rgbaToThumbHash } from 'thumbhash'
import type { Size } from '../../core/clips/geometry.ts'

/** One core per picture, because the others encode the video of the same clip. */
sharp.concurrency(1)
sharp.cache(false)

/** 82 with mozjpeg takes 80 ms for 1080p and looks like the frame; plain JPEG is 8 % larger (contract/media.md 5.9). */
export const JPEG = { quality: 82, mozjpeg: true }

/** A mean (0 to 255) or entropy below these marks a fade or a black start. */
const DARK_LUMA = 16
const EMPTY_ENTROPY = 0.5

/** 0.1 s to encode, and 25 % smaller than the JPEG (contract/media.md 5.9). */
export const WEBP = { quality: 75 }

export async function isWholePoster(path: string, { width, height }: Size): Promise<boolean> {
  const file = await stat(path).catch(() => undefined)
  return file?.size === width * height * 3
}

/** Encodes raw RGB as JPEG. `luma` is the mean brightness; for `dark` or `isEmpty` another frame may be better. */
export async function makePoster(
  rawPath: string,
  jpegPath: string,
  { width, height }: Size,
): Promise<{ luma: number; dark: boolean; isEmpty: boolean }> {
  const image = sharp(await readFile(rawPath), { raw: { width, height, channels: 3 } })
  const [stats] = await Promise.all([image.clone().stats(), image.clone().jpeg(JPEG).toFile(jpegPath)])
  const [red = 0, green = 0, blue = 0] = stats.channels.map((channel) => channel.mean)
  const luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue
  return { luma, dark: luma < DARK_LUMA, isEmpty: stats.entropy < EMPTY_ENTROPY }
}

/** Raw RGBA of a transparent clip. */
export interface ClearPoster extends Size {
  path: string
}

export const posterTime = (durationSeconds: number): number => (durationSeconds <= 1 ? 0 : durationSeconds / 3)

async function open(picture: string | ClearPoster): Promise<Sharp> {
  if (typeof picture === 'string') return sharp(picture)
  const { path, width, height } = picture
  return sharp(await readFile(path), { raw: { width, height, channels: 4 } })
}

/** A thumbhash of some 25 bytes, shown until the poster loads. The algorithm takes at most 100 pixels a side. */
export async function makePlaceholder(picture: string | ClearPoster): Promise<Buffer> {
  const small = (await open(picture)).resize(100, 100, { fit: 'inside', withoutEnlargement: true }).ensureAlpha()
  const { data, info } = await small.raw().toBuffer({ resolveWithObject: true })
  return Buffer.from(rgbaToThumbHash(info.width, info.height, data))
}

export async function makeWebp(picture: string | ClearPoster, webpPath: string): Promise<void> {
  await (await open(picture)).webp(WEBP).toFile(webpPath)
}
