import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { written } from '../../../test/clips.ts'
import { stripSideData } from './strip-side-data.ts'

function box(type: string, ...content: Buffer[]): Buffer {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + content.reduce((sum, { length }) => sum + length, 0))
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, ...content])
}

/** A sample entry is 86 bytes before its boxes, of which 8 are its head; `stsd` has 8 before its entries. */
function withLastBox(last: Buffer): Buffer {
  const entry = box('avc1', Buffer.alloc(78), box('avcC', Buffer.alloc(20)), last)
  const table = box('minf', box('stbl', box('stsd', Buffer.alloc(8), entry)))
  const handler = box('hdlr', Buffer.alloc(8), Buffer.from('vide'), Buffer.alloc(13))
  return box('moov', box('trak', box('mdia', handler, table)))
}

test.each([
  ['st3d', 5],
  ['clli', 4],
  ['none', 0],
])('a last box of a picture is hidden however short: %s of %d bytes', async (type, length) => {
  const path = await written(`last-${type}.mp4`, withLastBox(box(type, Buffer.alloc(length))))
  await stripSideData(path, 'mp4')
  expect(await readFile(path)).toEqual(withLastBox(box('free', Buffer.alloc(length))))
})
