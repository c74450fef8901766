import { readFile } from 'node:fs/promises'
import sharp from 'sharp'
import { expect, test, vi } from 'vitest'
import { written } from '../../../test/clips.ts'
import { readGifBlocks } from './gif-blocks.ts'
import { clearingFrame, gifHeader } from './gif-file.ts'
import { countWholeRows } from './whole-rows.ts'

/** More codes than fit into 12 bits, so that they grow and begin anew. */
async function noise(): Promise<string> {
  let seed = 1
  const next = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return (seed >> 16) & 255
  }
  const pixels = Buffer.from(Array.from({ length: 64 * 160 * 3 }, next))
  const gif = await sharp(pixels, { raw: { width: 64, height: 160, channels: 3 } })
    .gif()
    .toBuffer()
  return written('noise-rows.gif', gif)
}

/** A code size, and sub-blocks of one repeated pattern. */
function repeated(name: string, colorBits: number, pattern: number[], blocks = 1): Promise<string> {
  const block = Buffer.concat([Buffer.of(255), Buffer.alloc(255, Buffer.from(pattern))])
  return written(name, Buffer.concat([Buffer.of(colorBits), ...Array.from({ length: blocks }, () => block)]))
}

async function rowsOf(path: string, missing: number): Promise<number> {
  const bytes = await readFile(path)
  const cut = await written(`noise-less-${missing}.gif`, bytes.subarray(0, bytes.length - missing))
  for await (const block of readGifBlocks(cut)) {
    if (block.kind === 'image') return countWholeRows(cut, { ...block, start: block.data.start })
  }
  return 0
}

test('rows are counted to the end of an image, and to where it ends early', async () => {
  const path = await noise()
  // A row of noise has about 80 bytes.
  const counts = await Promise.all([0, 20, 8000].map((missing) => rowsOf(path, missing)))
  expect(counts).toEqual([160, 159, expect.toSatisfy((rows: number) => rows > 40 && rows < 120)])
})

test('an end code ends the rows, and codes that cannot be have none', async () => {
  // 4 bits a code: clear, 1, 1, end, 1.
  const ended = Buffer.from([3, 3, 0x18, 0x91, 0x01, 0])
  expect(await countWholeRows(await written('ended.lzw', ended), { width: 2, height: 9, start: 0, end: 6 })).toBe(1)
  for (const first of [Buffer.from([3, 1, 0xcc]), Buffer.from([9, 1, 0xcc])]) {
    const path = await written('broken.lzw', first)
    expect(await countWholeRows(path, { width: 1, height: 9, start: 0, end: 3 })).toBe(0)
  }
})

test.each([0, 1, 9])('codes of colors of %i bits have no rows', async (colorBits) => {
  const path = await repeated(`${colorBits}-bits.lzw`, colorBits, [0])
  expect(await countWholeRows(path, { width: 2, height: 2, start: 0, end: 257 })).toBe(0)
})

// Codes of 3 bits.
test.each([
  ['clear codes without a pixel', [0x24, 0x49, 0x92], 0],
  ['pixels beyond the last row', [0], 9],
])('%s are not read to the end', async (name, pattern, rows) => {
  const path = await repeated(`${name.replaceAll(' ', '-')}.lzw`, 2, pattern, 9000)
  const { signal } = new AbortController()
  const chunks = vi.spyOn(signal, 'throwIfAborted')
  expect(await countWholeRows(path, { width: 2, height: 9, start: 0, end: 256 * 9000 }, signal)).toBe(rows)
  expect(chunks).toHaveBeenCalledOnce()
})

test('an abort ends the count', async () => {
  const counting = countWholeRows(await noise(), { width: 2, height: 9, start: 0, end: 99 }, AbortSignal.abort())
  await expect(counting).rejects.toThrow('aborted')
})

// The last has more runs than a dictionary.
test.each([
  [1, 1],
  [2, 1],
  [3, 5],
  [257, 300],
  [4095, 2100],
])('a frame that clears %i x %i pixels has all of them, and no more', async (width, height) => {
  const screen = gifHeader({ width, height }, null)
  const path = await written('clearing.gif', Buffer.concat([screen, clearingFrame({ width, height }, 2)]))
  const counts = []
  for await (const block of readGifBlocks(path)) {
    if (block.kind !== 'image') continue
    counts.push(await countWholeRows(path, { ...block, height: height + 1, start: block.data.start }))
  }
  expect(counts).toEqual([height])
  expect(await sharp(path).stats()).toMatchObject({ isOpaque: false })
})
