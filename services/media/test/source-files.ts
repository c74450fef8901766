// Animated images that neither sharp nor the ffmpeg of the tests writes.
import { readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { clipOf, written } from './clips.ts'

/** Whole PNGs as the frames of an APNG. */
export function apngOf(pictures: Buffer[], { delay, plays }: { delay: number[]; plays: number }): Buffer {
  const parts: Uint8Array[] = []
  let sequence = 0
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(body))
    parts.push(length, body, sum)
  }
  const words = (...values: number[]) =>
    Buffer.from(values.flatMap((value) => [value >>> 24, (value >> 16) & 255, (value >> 8) & 255, value & 255]))
  for (const [n, picture] of pictures.entries()) {
    for (let at = 8; at < picture.length; at += 12 + picture.readUInt32BE(at)) {
      const type = picture.toString('latin1', at + 4, at + 8)
      const data = picture.subarray(at + 8, at + 8 + picture.readUInt32BE(at))
      if (type === 'IHDR' && n === 0) {
        chunk(type, data)
        chunk('acTL', words(pictures.length, plays))
      }
      if (type === 'IHDR') {
        const [width, height] = [data.readUInt32BE(0), data.readUInt32BE(4)]
        const times = Buffer.from([0, delay[n] ?? 0, 3, 232, 0, 0])
        times.writeUInt16BE(delay[n] ?? 0)
        chunk('fcTL', Buffer.concat([words(sequence++, width, height, 0, 0), times]))
      }
      if (type === 'PLTE' && n === 0) chunk(type, data)
      if (type === 'IDAT') chunk(n === 0 ? 'IDAT' : 'fdAT', n === 0 ? data : Buffer.concat([words(sequence++), data]))
    }
  }
  chunk('IEND', Buffer.alloc(0))
  return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), ...parts])
}

/** An mp4 of AV1 is an AVIF sequence by its brand and the kind of its track (AVIF, 3 and 4). */
export async function sequence(film: string[], name: string): Promise<string> {
  const av1 = ['-c:v', 'libaom-av1', '-strict', '-2', '-cpu-used', '8', '-crf', '40', '-b:v', '0', '-an']
  const file = Buffer.from(await readFile(await clipOf(`${name}.mp4`, [...film, ...av1])))
  file.write('avis', file.indexOf('ftyp') + 4, 'latin1')
  file.write('pict', file.indexOf('vide'), 'latin1')
  return written(`${name}.avif`, file)
}
