// The frames of GIFs that programs build differently, in the files that are served: those that browsers show.
import { readFile } from 'node:fs/promises'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeGifForFfmpeg } from '../../src/make/gif/drawn-gif.ts'
import { measureGif } from '../../src/make/probe/gif-info.ts'
import { defaultProbeLimits } from '../../src/make/probe/source-limits.ts'
import { written } from '../clips.ts'
import { inspect } from '../inspect.ts'
import { idIn, startTestService, type TestService } from '../service.ts'
import { blocksOf, distance, FRAME_SECONDS, oddGif, oddGifs, shownBlocks } from './odd-gifs.ts'
import { framesIn } from './shown-frames.ts'

type Frame = (typeof oddGifs)[string]['frames'][number]

/** Encoders blur colors; another color is further away. */
const NEARLY = 60

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

describe.each(Object.entries(oddGifs).filter(([, { isAlike }]) => !isAlike))('of a gif of which %s', (name, made) => {
  test('each frame is that of browsers in every file', async () => {
    const source = oddGif(made)
    const answer = await service.upload(source)
    const [width, height] = made.shown
    expect(answer.body.success?.meta).toEqual({
      ...{ width: String(width), height: String(height) },
      ...{ frames: String(made.frames.length), duration: `${FRAME_SECONDS * made.frames.length}s` },
    })
    const expected = shownBlocks(made)
    const fileOf = async (kind: string) =>
      written(`odd-${name.replaceAll(' ', '-')}.${kind}`, (await service.get(`/f/${idIn(answer)}.${kind}`)).bytes)
    for (const kind of ['mp4', 'webm']) {
      const seen = await framesIn(await fileOf(kind), made.shown, expected.length)
      expect([kind, seen.map((frame, n) => distance(frame, expected[n] ?? []) < NEARLY)]).toEqual([
        kind,
        expected.map(() => true),
      ])
    }
    const poster = blocksOf(
      await sharp(await fileOf('jpg'))
        .ensureAlpha()
        .raw()
        .toBuffer(),
      width,
    )
    expect(Math.min(...expected.map((frame) => distance(poster, frame)))).toBeLessThan(NEARLY)
    // A copy is what browsers show by themselves; libvips paints the background.
    const gif = await readFile(await fileOf('gif'))
    if (gif.length === source.length) return
    const ofGif = await framesOfGif(gif)
    expect(ofGif.map((frame, n) => distance(frame, expected[n] ?? []) < NEARLY)).toEqual(expected.map(() => true))
  })
})

test.each(Object.entries(oddGifs).filter(([, { frames }]) => frames.at(-1)?.rows !== undefined))(
  'an ffmpeg of 2018 draws the frames that are written for it of a gif of which %s',
  async (name, made) => {
    const source = await written(`to-draw-${name.replaceAll(' ', '-')}.gif`, oddGif(made))
    const drawn = source.replace('to-draw', 'drawn')
    await writeGifForFfmpeg(source, drawn)
    const expected = shownBlocks(made)
    const seen = await framesIn(drawn, made.shown, expected.length)
    expect(seen.map((frame, n) => distance(frame, expected[n] ?? []))).toEqual(expected.map(() => 0))
  },
)

test.each([
  [50, [50, 48, 2, 50]],
  [4, [50, 2, 2, 50]],
  // A frame of less than 2 cs lasts 10 in browsers, and would in ffmpeg.
  [3, [50, 3, 50]],
  [0, [50, 8, 2, 50]],
])(
  'a smaller frame of %i cs before a last one that replaces the picture keeps its time',
  async (centiseconds, delays) => {
    const made = oddGifs['the last frame has no row after a smaller one'] as (typeof oddGifs)[string]
    const frames = made.frames.map((frame, n) => (n === 1 ? { ...frame, centiseconds } : frame))
    const source = await written(`cleared-after-${centiseconds}.gif`, oddGif({ ...made, frames }))
    const drawn = source.replace('cleared', 'drawn')
    await writeGifForFfmpeg(source, drawn)
    expect((await measureGif(drawn, defaultProbeLimits)).delaysCentiseconds).toEqual(delays)
  },
)

test('an edit begins with the frames of browsers', async () => {
  const made = oddGifs['an opaque frame is cleared'] as (typeof oddGifs)[string]
  const answer = await service.upload(oddGif(made), [['crop', '0,0,96,32']])
  const seen = await framesOfGif((await service.get(`/f/${idIn(answer)}.gif`)).bytes)
  const upper = shownBlocks(made).map((frame) => frame.slice(0, frame.length / 2))
  expect(seen.map((frame, n) => distance(frame, upper[n] ?? []) < NEARLY)).toEqual([true, true, true])
})

test('a gif that ends in its last frame, an interlaced one, has that frame as well, and its details say so', async () => {
  const interlaced = oddGifs['a frame is interlaced'] as (typeof oddGifs)[string]
  const [first, whole, corner] = interlaced.frames as [Frame, Frame, Frame]
  const made = { ...interlaced, frames: [first, corner, { ...whole, rows: 60 }] }
  const source = oddGif(made)
  const answer = await service.upload(source)
  expect(answer.body.success?.meta).toMatchObject({ frames: '3', duration: '1.5s' })
  const details = await service.get(`/media/${idIn(answer)}`, { token: service.token })
  expect(details.body.success.source.repaired).toBe(true)
  for (const kind of ['mp4', 'webm', 'gif']) {
    const { bytes } = await service.get(`/f/${idIn(answer)}.${kind}`)
    expect(bytes.includes(source.subarray(40))).toBe(false)
    const { format } = await inspect(await written(`cut-gif.${kind}`, bytes))
    expect([kind, Number(format.duration)]).toEqual([kind, expect.closeTo(1.5, 1)])
  }
  // Every other one of the last rows is missing.
  const upper = 12 * 7
  const mp4 = await written('cut-interlaced.mp4', (await service.get(`/f/${idIn(answer)}.mp4`)).bytes)
  const [, , shown = []] = await framesIn(mp4, made.shown, 3)
  expect(distance(shown.slice(0, upper), (shownBlocks(made)[2] ?? []).slice(0, upper))).toBeLessThan(NEARLY)
})

test('a gif that ends in its only frame shows the part that is there; without a pixel it is corrupt', async () => {
  const twoFrames = oddGifs['the last frame ends early'] as (typeof oddGifs)[string]
  const made = { ...twoFrames, frames: twoFrames.frames.slice(1) }
  const source = oddGif(made)
  const pixels = source.indexOf(0x2c, 37) + 11
  const answer = await service.upload(source)
  expect(answer.body.success?.meta).toMatchObject({ frames: '1', duration: '1s' })
  const details = await service.get(`/media/${idIn(answer)}`, { token: service.token })
  expect(details.body.success.source.repaired).toBe(true)
  const { bytes } = await service.get(`/f/${idIn(answer)}.mp4`)
  const [shown = []] = await framesIn(await written('part-of-a-frame.mp4', bytes), [96, 64], 1)
  expect(distance(shown, shownBlocks(made)[0] ?? [])).toBeLessThan(NEARLY)
  for (const length of [pixels, pixels + 1]) {
    expect(await service.upload(source.subarray(0, length))).toMatchObject({
      status: 422,
      body: { error: { code: 'corrupt_media' } },
    })
  }
})

/** A picture for each half second. Equal frames are one in our GIFs. */
async function framesOfGif(bytes: Buffer) {
  const image = sharp(bytes, { animated: true })
  const { delay = [], width, pages = 1 } = await image.metadata()
  const pixels = await image.ensureAlpha().raw().toBuffer()
  const size = pixels.length / pages
  return delay.flatMap((each, n) =>
    Array.from({ length: each / 1000 / FRAME_SECONDS }, () =>
      blocksOf(pixels.subarray(n * size, (n + 1) * size), width),
    ),
  )
}
