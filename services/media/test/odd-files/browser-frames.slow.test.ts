// Frames of animated images in Chromium, the judge of odd-gifs.ts and of the probe: programs read these files differently.
import { type Browser, launchBrowser } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { measureGif } from '../../src/make/probe/gif-info.ts'
import { defaultProbeLimits } from '../../src/make/probe/source-limits.ts'
import { written } from '../clips.ts'
import { framesInChromium } from './chromium-frames.ts'
import { blocksOf, distance, oddGif, oddGifs, shownBlocks } from './odd-gifs.ts'

describe('Chromium shows', { tags: 'chromium' }, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  test.each(Object.entries(oddGifs))('a gif of which %s as the tests expect', async (_, made) => {
    const { frames } = await framesInChromium(browser, oddGif(made), 'image/gif')
    const [width, height] = made.shown
    expect(frames).toMatchObject(made.frames.map(() => ({ width, height, centiseconds: 50 })))
    const expected = shownBlocks(made)
    expect(frames.map(({ rgba }, n) => distance(blocksOf(rgba, width), expected[n] ?? []))).toEqual(frames.map(() => 0))
  })

  test('as many frames of a gif that ends early as are measured', async () => {
    const source = oddGif(oddGifs['a frame is interlaced'] as (typeof oddGifs)[string])
    const endOfFirst = source.indexOf(Buffer.of(0x21, 0xf9), 60)
    const counts = []
    // Parts of the second frame's head, which ends with the size of its codes, and of later pixels.
    for (const added of [2, 8, 17, 19, 20, 400, source.length - endOfFirst - 20, source.length - endOfFirst - 2]) {
      const bytes = source.subarray(0, endOfFirst + added)
      const { frames } = await framesInChromium(browser, bytes, 'image/gif')
      const measured = await measureGif(await written('early-end.gif', bytes), defaultProbeLimits)
      counts.push([added, frames.length, measured.delaysCentiseconds.length])
    }
    expect(counts.filter(([, ofChromium, measured]) => ofChromium !== measured)).toEqual([])
    expect(new Set(counts.map(([, frames]) => frames))).toEqual(new Set([1, 2, 3]))
  })
})
