import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Animation, BrokenAnimation, isFrame, StillImage } from './animation.ts'
import { PNG_SIGNATURE, readApng } from './read-apng.ts'

const chunk = (type: string, data: number[]) => {
  const bytes = Buffer.alloc(12 + data.length)
  bytes.writeUInt32BE(data.length)
  bytes.write(type, 4, 'latin1')
  bytes.set(data, 8)
  return bytes
}
const long = (value: number) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255]

const header = (side: number) => chunk('IHDR', [...long(side), ...long(side), 8, 3, 0, 0, 0])
const palette = chunk('PLTE', [255, 0, 0])
const control = chunk('acTL', [...long(1), ...long(0)])
const frame = chunk('fcTL', [...long(0), ...long(2), ...long(2), ...long(0), ...long(0), 0, 1, 0, 10, 0, 0])
const clear = chunk('tRNS', [0])
const pixels = chunk('IDAT', [1, 2, 3])
const end = chunk('IEND', [])

async function count(...chunks: Buffer[]): Promise<number> {
  await using file = await open(await written(chunks))
  let frames = 0
  for await (const part of readApng(file)) if (isFrame(part)) frames++
  return frames
}

async function written(chunks: Buffer[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'apng-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const path = join(directory, 'a.png')
  await writeFile(path, Buffer.concat([PNG_SIGNATURE, ...chunks, end]))
  return path
}

async function read(...chunks: Buffer[]): Promise<Animation | undefined> {
  const path = await written(chunks)
  await using file = await open(path)
  let animation: Animation | undefined
  for await (const part of readApng(file)) if ('plays' in part) animation = part
  return animation
}

test.each([
  ['before the first frame', [palette, clear, control, frame, pixels], true],
  ['between the first frame and its pixels', [palette, control, frame, clear, pixels], true],
  ['nowhere', [palette, control, frame, pixels], false],
] as const)('a transparent color %s', async (_, chunks, mayBeTransparent) => {
  expect(await read(header(2), ...chunks)).toMatchObject({ width: 2, height: 2, mayBeTransparent })
})

const later = (n: number) => [
  chunk('fcTL', [...long(2 * n - 1), ...long(2), ...long(2), ...long(0), ...long(0), 0, 1, 0, 10, 0, 0]),
  chunk('fdAT', [...long(2 * n), 1, 2, 3]),
]
const says = (frames: number) => chunk('acTL', [...long(frames), ...long(0)])

test.each([
  ['as many frames as it says', [says(2), frame, pixels, ...later(1), ...later(2)], 2],
  ['those that are there', [says(3), frame, pixels, ...later(1)], 2],
  ['no hidden picture', [says(2), pixels, ...later(1), ...later(2)], 2],
] as const)('%s are shown', async (_, chunks, frames) => {
  expect(await count(header(2), palette, ...chunks)).toBe(frames)
})

test('an animation of no frames is a still image', async () => {
  await expect(count(header(2), palette, says(0), frame, pixels, ...later(1))).rejects.toThrow(StillImage)
})

test('a second header is refused, whose size no limit would see', async () => {
  await expect(read(header(2), palette, control, header(60_000), frame, pixels)).rejects.toThrow(BrokenAnimation)
})
