import type { FileHandle } from 'node:fs/promises'
import {
  type Animation,
  type AnimationFrame,
  type AnimationPart,
  BrokenAnimation,
  MAX_PARTS,
  type Part,
  readBytes,
  requireInside,
  StillImage,
  shownDelay,
} from './animation.ts'

export const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex')

/**
 * Lengths of the chunks that are read (PNG, third edition, 11.2.1 and 11.3.6); a file that says otherwise is broken.
 */
const LENGTHS: Record<string, number> = { IHDR: 13, acTL: 8, fcTL: 26 }

const PIXELS = ['IDAT', 'fdAT']

/** Color types with an alpha channel (11.2.1). */
const WITH_ALPHA = [4, 6]

/**
 * Walks the chunks up to IEND; bytes behind it are never read. As in browsers, a frame counts from the first chunk of
 * its pixels on, however short. Throws BrokenAnimation, and StillImage for a PNG.
 */
export async function* readApng(file: FileHandle): AsyncGenerator<AnimationPart, void> {
  const header: Part[] = []
  let size: Canvas | undefined
  let plays: number | undefined
  /** Frames that are left of those that acTL says; later ones are not shown. */
  let left = 0
  let isBegun = false
  let isEnded = false
  let frame: AnimationFrame | undefined
  for await (const part of readChunks(file)) {
    const { type, start } = part
    if (type === 'IEND') isEnded = true
    const fields = type in LENGTHS ? await readBytes(file, start, part.length) : Buffer.alloc(0)
    if (type === 'IHDR' && size) throw new BrokenAnimation('two IHDR')
    if (type === 'IHDR') size = readSize(fields)
    if (!size) throw new BrokenAnimation('no IHDR')
    if (['IHDR', 'PLTE', 'tRNS'].includes(type)) header.push(part)
    if (type === 'acTL') {
      left = fields.readUInt32BE(0)
      plays = fields.readUInt32BE(4)
      // An invalid number (PNG, third edition, 11.3.6.1): the file is a still image.
      if (left === 0) throw new StillImage('no frames')
    }
    if (type === 'IDAT' && plays === undefined) throw new StillImage('no acTL')
    if (type === 'fcTL') {
      if (plays === undefined) throw new BrokenAnimation('no acTL')
      isEnded = left === 0
      if (isEnded) break
      left--
      // Not before the first frame's pixels: the transparent color may stand between both.
      if (frame && !isBegun) {
        yield animationOf(size, plays, header)
        requireWholeCanvas(size, frame)
      }
      if (frame) yield complete(frame)
      isBegun = frame !== undefined
      frame = readFrame(fields)
      if (isBegun) requireInside(size, frame)
    }
    // An IDAT before any fcTL is a picture for programs without animation.
    if (frame && type === 'IDAT') frame.parts.push(part)
    if (frame && type === 'fdAT') frame.parts.push({ type, start: start + 4, length: Math.max(0, part.length - 4) })
  }
  if (!frame || !size || plays === undefined) {
    throw plays === undefined ? new StillImage('no acTL') : new BrokenAnimation('no frame')
  }
  if (!isBegun) {
    yield animationOf(size, plays, header)
    requireWholeCanvas(size, frame)
  }
  if (isEnded || !isBegun || frame.parts.length > 0) yield complete(frame)
  if (!isEnded) yield { endsEarly: true }
}

/** The first frame is the whole canvas (PNG, 11.3.6.2), and ffmpeg relies on it. */
function requireWholeCanvas({ width, height }: Canvas, { left, top, ...frame }: AnimationFrame): void {
  if (frame.width === width && frame.height === height && left === 0 && top === 0) return
  throw new BrokenAnimation('first frame is not the canvas')
}

interface Canvas {
  width: number
  height: number
  hasAlpha: boolean
}

const animationOf = ({ width, height, hasAlpha }: Canvas, plays: number, header: Part[]): Animation => {
  const mayBeTransparent = hasAlpha || header.some(({ type }) => type === 'tRNS')
  return { width, height, plays, mayBeTransparent, header }
}

/** The last is IEND, or the one in which the file ends: that only has pixels, as many as there are. */
async function* readChunks(file: FileHandle): AsyncGenerator<Part, void> {
  const signature = await readBytes(file, 0, PNG_SIGNATURE.length)
  if (!signature.equals(PNG_SIGNATURE)) throw new BrokenAnimation('no PNG signature')
  const { size } = await file.stat()
  let offset = PNG_SIGNATURE.length
  for (let count = 0; count < MAX_PARTS; count++) {
    if (offset + 8 > size) return
    const head = await readBytes(file, offset, 8)
    const [length, type] = [head.readUInt32BE(0), head.toString('latin1', 4, 8)]
    const start = offset + 8
    const isRight = (LENGTHS[type] ?? length) === length && (type !== 'fdAT' || length >= 4)
    if (!isRight) throw new BrokenAnimation(`${type} of ${length} bytes at ${offset}`)
    offset += 12 + length
    const endsEarly = offset > size && type !== 'IEND'
    if (!endsEarly || PIXELS.includes(type)) yield { type, start, length: Math.min(length, size - start) }
    if (endsEarly || type === 'IEND') return
  }
  throw new BrokenAnimation(`more than ${MAX_PARTS} chunks`)
}

function readSize(fields: Buffer) {
  const [width, height] = [fields.readUInt32BE(0), fields.readUInt32BE(4)]
  if (width === 0 || height === 0) throw new BrokenAnimation('empty canvas')
  return { width, height, hasAlpha: WITH_ALPHA.includes(fields.readUInt8(9)) }
}

function readFrame(fields: Buffer): AnimationFrame {
  const at = (offset: number) => fields.readUInt32BE(offset)
  const [numerator, denominator] = [fields.readUInt16BE(20), fields.readUInt16BE(22)]
  return {
    ...{ width: at(4), height: at(8), left: at(12), top: at(16) },
    // No denominator means hundredths.
    delay: shownDelay(numerator, denominator || 100),
    ...{ dispose: fields.readUInt8(24), blend: fields.readUInt8(25), parts: [] },
  }
}

function complete(frame: AnimationFrame): AnimationFrame {
  if (frame.parts.length === 0 || frame.dispose > 2 || frame.blend > 1)
    throw new BrokenAnimation('frame without pixels')
  return frame
}
