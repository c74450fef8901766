/** Builds GIF files byte by byte, so that a test can say exactly what is in one and what is wrong with it. */
export interface GifFrame {
  delay: number
  /** Index of the two-colour palette that is see-through. */
  transparent?: number
  disposal?: number
  left?: number
  top?: number
  width?: number
  height?: number
  /** 0 is white, 1 is black. */
  color?: 0 | 1
}

export const trailer = Buffer.from([0x3b])

/** Header, screen and a palette of white and black. */
export function screen(width: number, height: number): Buffer {
  return Buffer.from([...Buffer.from('GIF89a'), ...word(width), ...word(height), 0x80, 0, 0, 255, 255, 255, 0, 0, 0])
}

/** Header and screen with a palette of eight colors and the index of its background. */
export function screenOf([width, height]: [number, number], palette: number[], background: number): Buffer {
  const colors = Array.from({ length: 24 }, (_, n) => palette[n] ?? 128)
  return Buffer.from([...Buffer.from('GIF89a'), ...word(width), ...word(height), 0x82, background, 0, ...colors])
}

export function loop(count: number): Buffer {
  return Buffer.from([0x21, 0xff, 11, ...Buffer.from('NETSCAPE2.0'), 3, 1, ...word(count), 0])
}

export function comment(text: string): Buffer {
  return Buffer.from([0x21, 0xfe, text.length, ...Buffer.from(text), 0])
}

/** The same pictures in a file with other bytes. */
export const withComment = (file: Buffer, text: string): Buffer =>
  Buffer.concat([file.subarray(0, -trailer.length), comment(text), trailer])

export function control({ delay, transparent, disposal = 0 }: GifFrame): Buffer {
  const flags = (disposal << 2) | (transparent === undefined ? 0 : 1)
  return Buffer.from([0x21, 0xf9, 4, flags, ...word(delay), transparent ?? 0, 0])
}

/** One colour all over; every pixel its own code, so any size is right as long as it is small. */
export function image({ left = 0, top = 0, width = 1, height = 1, color = 0 }: Omit<GifFrame, 'delay'>): Buffer {
  const descriptor = [0x2c, ...word(left), ...word(top), ...word(width), ...word(height), 0]
  return Buffer.from([...descriptor, 2, ...subBlocks(packCodes(width * height, color)), 0])
}

/** A whole GIF of frames that each cover the canvas unless they say otherwise. */
export function gif(width: number, height: number, frames: GifFrame[], loopCount = 0): Buffer {
  const blocks = frames.map((frame) => Buffer.concat([control(frame), image({ width, height, ...frame })]))
  return Buffer.concat([screen(width, height), loop(loopCount), ...blocks, trailer])
}

/** A screen of any size with frames that hold no pixel data: a bomb of 20 bytes a frame. */
export function bomb(width: number, height: number, frames: number): Buffer {
  const empty = Buffer.from([0x2c, ...word(0), ...word(0), ...word(width), ...word(height), 0, 2, 0])
  const one = Buffer.concat([control({ delay: 2 }), empty])
  return Buffer.concat([screen(width, height), ...Array.from({ length: frames }, () => one), trailer])
}

/** LZW of three-bit codes; a clear code every other pixel keeps the code size from growing. */
function packCodes(pixels: number, color: number): number[] {
  const [clear, end] = [4, 5]
  const codes = [...Array.from({ length: pixels }, (_, n) => (n % 2 ? [color] : [clear, color])).flat(), end]
  const bytes: number[] = []
  codes.forEach((code, n) => {
    for (let bit = 0; bit < 3; bit++) {
      const at = n * 3 + bit
      bytes[at >> 3] = (bytes[at >> 3] ?? 0) | (((code >> bit) & 1) << (at & 7))
    }
  })
  return bytes
}

function subBlocks(bytes: number[]): number[] {
  const blocks: number[] = []
  for (let at = 0; at < bytes.length; at += 255) {
    const part = bytes.slice(at, at + 255)
    blocks.push(part.length, ...part)
  }
  return blocks
}

function word(value: number): [number, number] {
  return [value & 0xff, value >> 8]
}

let made = 0

/** Makes a GIF of 16 × 16 as long as each other one, with bytes of its own. A test file can have 256. */
export function newGif(): Buffer {
  const bits = (made++).toString(2).padStart(8, '0')
  return gif(
    16,
    16,
    [...bits].map((bit) => ({ delay: 10, color: Number(bit) as 0 | 1 })),
  )
}
