// Frames of animated images in Chromium, the judge of odd-gifs.ts and of the probe: programs read these files
// differently.
import { readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeGifForFfmpeg } from '../../src/make/gif/drawn-gif.ts'
import { measureAnimation } from '../../src/make/probe/animation-info.ts'
import { measureGif } from '../../src/make/probe/gif-info.ts'
import { defaultProbeLimits } from '../../src/make/probe/source-limits.ts'
import { written } from '../clips.ts'
import { apngOf } from '../source-files.ts'
import { framesInChromium, imageInChromium, openDecodingPage } from './chromium-frames.ts'
import {
  apngToCut,
  CUT_KINDS,
  CUT_SIZE,
  INTERLACED_KINDS,
  shownUpToRow,
  upToPassRow,
  upToRow,
  WHOLE_KINDS,
} from './cut-apngs.ts'
import { looped } from './loops.ts'
import { blocksOf, distance, oddGif, oddGifs, shownBlocks } from './odd-gifs.ts'
import { framesIn } from './shown-frames.ts'

describe('Chromium shows', { tags: 'chromium' }, () => {
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    browser = await launchBrowser()
    page = await openDecodingPage(browser)
  })
  afterAll(() => browser?.close())

  test.each(Object.entries(oddGifs))('a gif of which %s as the tests expect', async (_, made) => {
    const { frames } = await framesInChromium(page, oddGif(made), 'image/gif')
    const [width, height] = made.shown
    expect(frames).toMatchObject(made.frames.map(() => ({ width, height, centiseconds: 50 })))
    const expected = shownBlocks(made)
    expect(frames.map(({ rgba }, n) => distance(blocksOf(rgba, width), expected[n] ?? []))).toEqual(frames.map(() => 0))
  })

  test.each(looped)('%s as often as the tests expect', async (_, mime, plays, bytes) => {
    const type = mime === 'image/apng' ? 'image/png' : mime
    expect((await framesInChromium(page, await bytes(), type)).plays).toBe(plays)
  })

  test.each([1, 2, 3, 4])('as many frames of an APNG of three that says %i as are measured', async (number) => {
    const bytes = await numberedApng(number)
    const { frames } = await framesInChromium(page, bytes, 'image/png')
    const measured = await measureAnimation(await written('numbered.png', bytes), 'apng', defaultProbeLimits)
    expect(measured.delaysCentiseconds).toHaveLength(frames.length)
    expect(frames).toHaveLength(Math.min(3, number))
  })

  test('a still picture of an APNG that says 0 frames', async () => {
    const bytes = await numberedApng(0)
    expect((await framesInChromium(page, bytes, 'image/png')).frames).toHaveLength(1)
    const measuring = measureAnimation(await written('no-frames.png', bytes), 'apng', defaultProbeLimits)
    await expect(measuring).rejects.toMatchObject({ code: 'unsupported_media_type' })
  })

  test.each(Object.entries(CUT_KINDS))(
    'the rows that are there of the last frame of an APNG with %s',
    async (_, kind) => {
      for (const rows of [0, 8, 40]) {
        const { frames } = await framesInChromium(page, upToRow(rows, kind), 'image/png')
        expect(frames).toHaveLength(3)
        const last = blocksOf(frames[2]?.rgba ?? Buffer.alloc(0), CUT_SIZE[0])
        expect(distance(last, shownUpToRow(rows, kind))).toBe(0)
      }
    },
  )

  test.each(Object.entries(INTERLACED_KINDS))(
    'the blocks that are there of the last frame of an APNG with %s',
    async (_, kind) => {
      for (const rows of [0, 3, 8]) {
        const { frames } = await framesInChromium(page, upToPassRow(rows, kind), 'image/png')
        const last = blocksOf(frames[2]?.rgba ?? Buffer.alloc(0), CUT_SIZE[0])
        expect([rows, distance(last, shownUpToRow(8 * rows, kind))]).toEqual([rows, 0])
      }
    },
  )

  test.each(Object.entries(WHOLE_KINDS))(
    'the whole last frame of an APNG with %s that ends behind it',
    async (_, kind) => {
      const bytes = apngToCut(kind)
      for (const missing of [12, 20]) {
        const { frames } = await framesInChromium(page, bytes.subarray(0, bytes.length - missing), 'image/png')
        expect(frames).toHaveLength(3)
        const last = blocksOf(frames[2]?.rgba ?? Buffer.alloc(0), CUT_SIZE[0])
        expect([missing, distance(last, shownUpToRow(CUT_SIZE[1], kind))]).toEqual([missing, 0])
      }
    },
  )

  test('as many frames of an APNG that ends early as are measured', async () => {
    const bytes = apngToCut({ colorType: 3 })
    const [control, pixels] = [bytes.lastIndexOf('fcTL'), bytes.lastIndexOf('fdAT')]
    const counts = []
    const within = [0, 4, 5, 8, 9, 20, 4000].map((added) => pixels + added)
    for (const length of [
      control - 20,
      control,
      control + 4,
      control + 30,
      control + 34,
      ...within,
      bytes.length - 12,
    ]) {
      const part = bytes.subarray(0, length)
      const { frames } = await framesInChromium(page, part, 'image/png')
      const measured = await measureAnimation(await written('early-end.png', part), 'apng', defaultProbeLimits)
      counts.push([length, frames.length, measured.delaysCentiseconds.length])
      expect([length, measured.repaired]).toEqual([length, true])
    }
    expect(counts.filter(([, ofChromium, measured]) => ofChromium !== measured)).toEqual([])
    expect(new Set(counts.map(([, frames]) => frames))).toEqual(new Set([2, 3]))
  })

  test('an APNG that ends in its first frame, and no WebP that ends early', async () => {
    const apng = apngToCut({ colorType: 3 })
    const first = apng.indexOf('IDAT')
    const webp = await sharp(oddGif(oddGifs['an opaque frame is cleared'] as (typeof oddGifs)[string]), {
      animated: true,
    })
      .webp()
      .toBuffer()
    const cases = [
      ...[first, first + 4, first + 900].map((length) => [apng.subarray(0, length), 'apng', 'image/png'] as const),
      ...[2, 30].map((missing) => [webp.subarray(0, webp.length - missing), 'webp', 'image/webp'] as const),
    ]
    const shown = []
    for (const [bytes, type, mime] of cases) {
      const measuring = measureAnimation(await written(`early.${type}`, bytes), type, defaultProbeLimits)
      const isTaken = await measuring.then(() => true).catch(() => false)
      shown.push([type, (await imageInChromium(page, bytes, mime)) !== undefined, isTaken])
    }
    expect(shown).toEqual([
      ['apng', false, false],
      ['apng', true, true],
      ['apng', true, true],
      ['webp', false, false],
      ['webp', false, false],
    ])
  })

  test('as many frames of a gif that ends early as are measured', async () => {
    const source = oddGif(oddGifs['a frame is interlaced'] as (typeof oddGifs)[string])
    const endOfFirst = source.indexOf(Buffer.of(0x21, 0xf9), 60)
    const counts = []
    // Within pixels: of a frame whose head ends early Chromium counts one or none, by chance.
    for (const added of [20, 400, source.length - endOfFirst - 20, source.length - endOfFirst - 2]) {
      const bytes = source.subarray(0, endOfFirst + added)
      const { frames } = await framesInChromium(page, bytes, 'image/gif')
      const measured = await measureGif(await written('early-end.gif', bytes), defaultProbeLimits)
      counts.push([added, frames.length, measured.delaysCentiseconds.length])
    }
    expect(counts.filter(([, ofChromium, measured]) => ofChromium !== measured)).toEqual([])
    expect(new Set(counts.map(([, frames]) => frames))).toEqual(new Set([2, 3]))
  })

  test.each([
    [6, true, false],
    [12, true, false],
    [12, true, true],
    [40, true, false],
    [12, false, false],
  ])('%i rows of a first frame as they are drawn; interlaced: %s, with a transparent color: %s', async (...kind) => {
    const [rows, isInterlaced, isClear] = kind
    const made = oddGifs['the last frame ends early'] as (typeof oddGifs)[string]
    const frames = made.frames.slice(1).map((frame) => ({ ...frame, rows, isInterlaced, isClear }))
    const source = await written(`first-${kind.join('-')}.gif`, oddGif({ ...made, frames }))
    const drawn = source.replace('first', 'drawn-first')
    await writeGifForFfmpeg(source, drawn)
    const shown = (await imageInChromium(page, await readFile(source), 'image/gif')) ?? Buffer.alloc(0)
    const [ours = []] = await framesIn(drawn, made.shown, 1)
    expect(distance(ours, blocksOf(shown, made.shown[0]))).toBe(0)
  })

  test('a gif that ends in its first frame from the length on at which one is measured', async () => {
    const source = oddGif(oddGifs['a frame is interlaced'] as (typeof oddGifs)[string])
    const head = source.indexOf(0x2c, 37)
    const shown = []
    // Before the frame, and within its pixels.
    for (const added of [0, 13, 30, 400, 900]) {
      const bytes = source.subarray(0, head + added)
      const measuring = measureGif(await written('first-frame.gif', bytes), defaultProbeLimits)
      const frames = await measuring
        .then(({ delaysCentiseconds }) => delaysCentiseconds.length)
        .catch(({ code }) => code)
      shown.push([added, (await imageInChromium(page, bytes, 'image/gif')) ? 1 : 'corrupt_media', frames])
    }
    expect(shown.filter(([, ofChromium, measured]) => ofChromium !== measured)).toEqual([])
    expect(new Set(shown.map(([, frames]) => frames))).toEqual(new Set([1, 'corrupt_media']))
  })
})

/** Three frames under any number of them. */
async function numberedApng(frames: number): Promise<Buffer> {
  const picture = (background: string) =>
    sharp({ create: { width: 16, height: 16, channels: 4, background } })
      .png({ palette: false })
      .toBuffer()
  const pictures = await Promise.all(['red', 'green', 'blue'].map(picture))
  const bytes = apngOf(pictures, { delay: [200, 200, 200], plays: 0 })
  const control = bytes.indexOf('acTL')
  bytes.writeUInt32BE(frames, control + 4)
  bytes.writeUInt32BE(crc32(bytes.subarray(control, control + 12)), control + 12)
  return bytes
}
