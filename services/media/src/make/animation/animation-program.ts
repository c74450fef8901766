// A separate program, started by unpack-animation.ts, that writes an APNG of nothing but frames. A bug in a decoder of
// images, its memory and its time are then not the service's. One frame is in memory at a time; one that ends early is
// there several times, compressed and not.
import { openSync, writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import sharp from 'sharp'
import {
  type Animation,
  type AnimationFrame,
  type AnimationPart,
  BrokenAnimation,
  isEarlyEnd,
  isFrame,
  readBytes,
} from './animation.ts'
import { completeFrame } from './complete-frame.ts'
import { EXIT } from './exit-codes.ts'
import { PNG_SIGNATURE, readApng } from './read-apng.ts'
import { readWebp, stillOf } from './read-webp.ts'
import type { AnimationProgramInput } from './unpack-animation.ts'
import { createApngWriter, RGBA } from './write-apng.ts'

sharp.concurrency(1)
sharp.cache(false)

const { input, output, type } = JSON.parse(process.argv[2] ?? '') as AnimationProgramInput

async function convert(): Promise<void> {
  await using file = await open(input)
  const target = openSync(output, 'w')
  const writer = createApngWriter((bytes) => {
    for (let written = 0; written < bytes.length; ) written += writeSync(target, bytes, written)
  })
  const read: AnimationPart[] = []
  for await (const part of type === 'apng' ? readApng(file) : readWebp(file)) read.push(part)
  const [animation, ...frames] = read
  if (!animation || !('plays' in animation)) throw new BrokenAnimation('no header')
  const pictures = frames.filter(isFrame)
  const { format, more } = await readFormat(file, animation)
  const last = read.some(isEarlyEnd) ? pictures.pop() : undefined
  const isFirst = pictures.length === 0
  const ending = last && (await completeFrame(last, await readPixels(file, last), { animation, format, more, isFirst }))
  writer.begin(animation, format, more, pictures.length + (ending ? 1 : 0))
  for (const [n, frame] of pictures.entries()) {
    const pixels = await readPixels(file, frame)
    if (type === 'apng') writer.frame(frame, pixels)
    // The first frame of an APNG is the whole canvas.
    else if (n === 0) writer.frame({ ...frame, ...whole(animation) }, await decode(frame, pixels, animation))
    else writer.frame(frame, await decode(frame, pixels))
  }
  // ffmpeg holds the frame before one of which nothing shows.
  if (ending) writer.frame(ending.frame, ending.pixels)
  else if (last && isFirst) throw new BrokenAnimation('no pixel')
  writer.end()
}

async function readPixels(file: FileHandle, { parts }: AnimationFrame): Promise<Buffer[]> {
  const pixels: Buffer[] = []
  for (const { start, length } of parts) pixels.push(await readBytes(file, start, length))
  return pixels
}

const whole = ({ width, height }: Animation) => ({ left: 0, top: 0, width, height })

/** Kind of pixels and palette of all frames of an APNG. Other chunks are left out. */
async function readFormat(file: FileHandle, { header }: Animation) {
  if (header.length === 0) return { format: RGBA, more: [] }
  const chunks: { type: string; data: Buffer }[] = []
  for (const { type: name, start, length } of header) {
    if (length > 1024) throw new BrokenAnimation(`${name} of ${length} bytes`)
    chunks.push({ type: name, data: await readBytes(file, start, length) })
  }
  const [size, ...more] = chunks
  return { format: size?.data.subarray(8) ?? RGBA, more }
}

/** The compressed pixels of a frame of a WebP, on the canvas if there is one. */
async function decode(frame: AnimationFrame, pixels: Buffer[], canvas?: Animation): Promise<Buffer[]> {
  const { left, top, width, height } = frame
  const still = sharp(stillOf(frame, pixels), { limitInputPixels: width * height, failOn: 'error' })
  const found = await still.metadata()
  if (found.width !== width || found.height !== height) throw new BrokenAnimation('a frame has another size')
  const around = canvas && {
    ...{ left, top, right: canvas.width - left - width, bottom: canvas.height - top - height },
    background: { r: 0, g: 0, b: 0, alpha: 0 },
  }
  const opaque = still.toColourspace('srgb').ensureAlpha()
  const png = await (around ? opaque.extend(around) : opaque)
    .png({ compressionLevel: 1, adaptiveFiltering: false })
    .toBuffer()
  return pixelsOf(png)
}

function pixelsOf(png: Buffer): Buffer[] {
  const pixels: Buffer[] = []
  for (let offset = PNG_SIGNATURE.length; offset < png.length; ) {
    const length = png.readUInt32BE(offset)
    const name = png.toString('latin1', offset + 4, offset + 8)
    const data = png.subarray(offset + 8, offset + 8 + length)
    if (name === 'IHDR' && !data.subarray(8).equals(RGBA)) throw new Error('not RGBA')
    if (name === 'IDAT') pixels.push(data)
    offset += 12 + length
  }
  return pixels
}

await convert().catch((error) => {
  const { code, message } = error as NodeJS.ErrnoException
  // The words of a program that found the disk full (machine-faults.ts).
  console.error(code === 'ENOSPC' || code === 'EDQUOT' ? 'No space left on device' : message)
  // Errors of the system have its names; `ERR_` begins those of Node about a number of the file.
  const isMachine = code !== undefined && code !== 'EFBIG' && !code.startsWith('ERR_')
  process.exit(isMachine ? EXIT.machine : code === 'EFBIG' ? EXIT.tooLarge : EXIT.broken)
})
