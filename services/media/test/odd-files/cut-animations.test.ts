// Animated images that end early: APNGs are taken as far as they go, as in browsers, which show nothing of such a WebP.
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { written } from '../clips.ts'
import { idIn, startTestService, type TestService } from '../service.ts'
import {
  apngToCut,
  CUT_COLORS,
  CUT_KINDS,
  CUT_SIZE,
  INTERLACED_KINDS,
  type Kind,
  shownUpToRow,
  upToPassRow,
  upToRow,
  WHOLE_KINDS,
} from './cut-apngs.ts'
import { distance, oddGif, oddGifs } from './odd-gifs.ts'
import { framesIn } from './shown-frames.ts'

/** Encoders blur colors; another color is further away. */
const NEARLY = 60

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_SOURCE_TYPES: 'image/apng,image/webp' })
})
afterAll(() => service.close())

/** Frames and duration of an accepted source that is repaired, and its pictures in a file. */
async function takenAs(source: Buffer, file: 'mp4' | 'webm' = 'mp4') {
  const answer = await service.upload(source)
  expect([answer.status, answer.body.error]).toEqual([201, undefined])
  const details = await service.get(`/media/${idIn(answer)}`, { token: service.token })
  expect(details.body.success.source.repaired).toBe(true)
  const { frames, duration } = answer.body.success.meta
  const { bytes } = await service.get(`/f/${idIn(answer)}.${file}`)
  const path = await written(`cut-apng-${idIn(answer)}.${file}`, bytes)
  return { frames, duration, shown: await framesIn(path, CUT_SIZE, Number(frames)) }
}

test.each(Object.entries(CUT_KINDS))(
  'an APNG with %s that ends in its last frame shows the rows that are there',
  async (_, kind) => {
    for (const [rows, file] of [
      [0, 'mp4'],
      [8, 'webm'],
      [40, 'mp4'],
    ] as const) {
      const taken = await takenAs(upToRow(rows, kind), file)
      expect(taken).toMatchObject({ frames: '3', duration: '1.5s' })
      expect([rows, distance(taken.shown[2] ?? [], shownUpToRow(rows, kind)) < NEARLY]).toEqual([rows, true])
    }
  },
)

test.each(Object.entries(WHOLE_KINDS))(
  'the last frame of an APNG with %s that ends behind its pixels is whole',
  async (_, kind) => {
    const bytes = apngToCut(kind)
    // Without the last chunk, and without the sums of pixels and chunk.
    for (const missing of [12, 20]) {
      const taken = await takenAs(bytes.subarray(0, bytes.length - missing))
      expect(taken).toMatchObject({ frames: '3', duration: '1.5s' })
      const expected = shownUpToRow(CUT_SIZE[1], kind)
      expect([missing, distance(taken.shown[2] ?? [], expected) < NEARLY]).toEqual([missing, true])
    }
  },
)

test.each([
  ['before the pixels of the third', (bytes: Buffer) => bytes.lastIndexOf('fdAT'), '2', '1s'],
  ['before the number of these pixels', (bytes: Buffer) => bytes.lastIndexOf('fdAT') + 5, '3', '1.5s'],
  ['in the second', (bytes: Buffer) => bytes.indexOf('fdAT') + 3000, '2', '1s'],
  ['in the first', (bytes: Buffer) => bytes.indexOf('IDAT') + 3000, '1', '1s'],
  ['behind the last', (bytes: Buffer) => bytes.length - 12, '3', '1.5s'],
])('an APNG of three frames that ends %s is taken as far as it goes', async (_, lengthOf, frames, duration) => {
  const bytes = apngToCut({ colorType: 6 })
  const taken = await takenAs(bytes.subarray(0, lengthOf(bytes)))
  expect(taken).toMatchObject({ frames, duration })
  const colors = taken.shown.slice(0, 2).map(([corner = []]) => [corner])
  expect(colors.map((color, n) => distance(color, [CUT_COLORS[n] ?? []]) < NEARLY)).toEqual(colors.map(() => true))
})

test('the last frame of an interlaced APNG that ends in it shows the blocks of the pixels that are there', async () => {
  const kind = INTERLACED_KINDS['interlaced pixels'] as Kind
  const taken = await takenAs(upToPassRow(3, kind))
  expect(taken).toMatchObject({ frames: '3', duration: '1.5s' })
  expect(distance(taken.shown[2] ?? [], shownUpToRow(3 * 8, kind))).toBeLessThan(NEARLY)
})

test('an APNG without a pixel, and a WebP that ends early, are corrupt', async () => {
  const apng = apngToCut({ colorType: 2 })
  const gif = oddGif(oddGifs['an opaque frame is cleared'] as (typeof oddGifs)[string])
  const webp = await sharp(gif, { animated: true }).webp().toBuffer()
  const ends = [apng.indexOf('IDAT'), apng.indexOf('IDAT') + 6].map((length) => apng.subarray(0, length))
  for (const bytes of [...ends, webp.subarray(0, webp.length - 30)]) {
    expect(await service.upload(bytes)).toMatchObject({ status: 422, body: { error: { code: 'corrupt_media' } } })
  }
})
