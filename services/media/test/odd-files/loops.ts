import { readFile } from 'node:fs/promises'
import sharp, { type SharpOptions } from 'sharp'
import { gif, image, loop, screen, trailer } from '../gif-bytes.ts'
import { apngOf, sequence } from '../source-files.ts'

const frames = [{ delay: 20 }, { delay: 20, color: 1 as const }]
const pictures = [image({ width: 4, height: 4 }), image({ width: 4, height: 4, color: 1 })]

const stills = () =>
  Promise.all(
    ['red', 'blue'].map((background) =>
      sharp({ create: { width: 16, height: 16, channels: 4, background } })
        .png({ palette: false })
        .toBuffer(),
    ),
  )

const apng = async (plays: number) => apngOf(await stills(), { delay: [200, 200], plays })

const webp = (loop: number) =>
  sharp(Buffer.alloc(16 * 32 * 4, 255).fill(80, 0, 16 * 16 * 4), {
    raw: { width: 16, height: 32, channels: 4, pageHeight: 16 },
  } as SharpOptions)
    .webp({ lossless: true, delay: [200, 200], loop })
    .toBuffer()

/** `flags` 1: the edit list repeats, as long as the track's length says. */
async function avif(change: { flags: number; length: number } | 'no edits'): Promise<Buffer> {
  const film = ['-f', 'lavfi', '-i', 'testsrc2=s=64x48:r=10:d=1']
  const bytes = Buffer.from(await readFile(await sequence(film, 'loops-sequence')))
  if (change === 'no edits') {
    bytes.write('free', bytes.indexOf('edts'), 'latin1')
    return bytes
  }
  bytes.writeUInt8(change.flags, bytes.indexOf('elst') + 7)
  bytes.writeUInt32BE(change.length, bytes.indexOf('tkhd') + 24)
  return bytes
}

/** Files by their type and the number of times that browsers play them. */
export const looped: [name: string, mime: string, plays: number, bytes: () => Promise<Buffer> | Buffer][] = [
  ['a gif without a loop', 'image/gif', 1, () => Buffer.concat([screen(4, 4), ...pictures, trailer])],
  ['a gif of three repetitions', 'image/gif', 4, () => gif(4, 4, frames, 3)],
  [
    'a gif of two loops, of which the last counts',
    'image/gif',
    8,
    () => Buffer.concat([screen(4, 4), loop(0), ...pictures, loop(7), trailer]),
  ],
  ['an endless gif', 'image/gif', Number.POSITIVE_INFINITY, () => gif(4, 4, frames, 0)],
  ['an APNG that plays once', 'image/apng', 1, () => apng(1)],
  ['an APNG that plays three times', 'image/apng', 3, () => apng(3)],
  ['an endless APNG', 'image/apng', Number.POSITIVE_INFINITY, () => apng(0)],
  ['a WebP that plays once', 'image/webp', 1, () => webp(1)],
  ['a WebP that plays twice', 'image/webp', 2, () => webp(2)],
  ['an endless WebP', 'image/webp', Number.POSITIVE_INFINITY, () => webp(0)],
  ['an AVIF sequence that plays once', 'image/avif', 1, () => avif({ flags: 0, length: 1000 })],
  ['an AVIF sequence that plays two and a half times', 'image/avif', 3, () => avif({ flags: 1, length: 2500 })],
  ['an AVIF sequence without edits', 'image/avif', Number.POSITIVE_INFINITY, () => avif('no edits')],
]
