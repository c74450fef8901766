import { thumbHashToRGBA } from 'thumbhash'

/** Edge in pixels. A thumbhash has no more detail, and 24 bytes a row need no padding. */
const EDGE = 8
const HEADER = 54

/** Pictures made before, by hash: making those of a page costs as much as all the rest of it. */
const known = new Map<string, string>()
const MAX_KNOWN = 2_000

/**
 * Picture of a thumbhash as a data: URL of 350 characters, which the browser stretches; undefined for a transparent
 * clip, which would show it. As a PNG of the library it would have 5,000.
 */
export function placeholderPicture(hash: Uint8Array): string | undefined {
  if (isTransparent(hash)) return undefined
  const name = Buffer.from(hash).toString('latin1')
  const found = known.get(name)
  if (found !== undefined) return found
  const [oldest] = known.keys()
  if (known.size >= MAX_KNOWN && oldest !== undefined) known.delete(oldest)
  const picture = makePicture(hash)
  known.set(name, picture)
  return picture
}

function makePicture(hash: Uint8Array): string {
  const { w, h, rgba } = thumbHashToRGBA(hash)
  const bitmap = Buffer.alloc(HEADER + EDGE * EDGE * 3)
  bitmap.write('BM')
  bitmap.writeUInt32LE(bitmap.length, 2)
  bitmap.writeUInt32LE(HEADER, 10)
  bitmap.writeUInt32LE(40, 14)
  bitmap.writeInt32LE(EDGE, 18)
  // Rows from top to bottom.
  bitmap.writeInt32LE(-EDGE, 22)
  bitmap.writeUInt16LE(1, 26)
  bitmap.writeUInt16LE(24, 28)
  for (let at = 0; at < EDGE * EDGE; at++) {
    const row = Math.floor(((Math.floor(at / EDGE) + 0.5) * h) / EDGE)
    const column = Math.floor((((at % EDGE) + 0.5) * w) / EDGE)
    const [red = 0, green = 0, blue = 0] = rgba.subarray(4 * (row * w + column))
    bitmap.set([blue, green, red], HEADER + 3 * at)
  }
  return `data:image/bmp;base64,${bitmap.toString('base64')}`
}

/** Bit 23 of a thumbhash's header. */
const isTransparent = (hash: Uint8Array): boolean => ((hash[2] ?? 0) & 0x80) !== 0
