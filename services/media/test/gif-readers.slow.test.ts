// GIFs of our writer, read by three programs that are not ours: all pixels and times are compared.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { type Browser, launchBrowser } from '@services/common/testing/http/browser'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clip, clipOf, tools } from './clips.ts'
import { framesInChromium, openDecodingPage } from './odd-files/chromium-frames.ts'
import { make } from './rendition-tests.ts'

const run = promisify(execFile)

/** Stripes that move over nothing. */
const stripes = [
  ...['-f', 'lavfi', '-i', 'testsrc2=s=160x120:r=25:d=1,format=yuva444p'],
  ...['-vf', "geq=lum='lum(X,Y)':cb='cb(X,Y)':cr='cr(X,Y)':a='255*lt(mod(X+4*N,80),40)',format=yuva420p"],
  ...['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8', '-auto-alt-ref', '0'],
]

/** Pictures as RGBA, and how long each is shown. */
interface Shown {
  centiseconds: number[]
  digests: string[]
}

describe('every reader shows the same frames at the same times', { tags: ['chromium', 'ffmpeg'] }, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  test.each([
    ['an opaque', () => clip('plain.mp4'), 200],
    ['a transparent', () => clipOf('stripes.webm', stripes), 100],
  ] as const)('of %s clip', async (_, path, centiseconds) => {
    const { gif, warnings } = await make(tools, await path())
    expect(warnings).toEqual([])
    const byLibvips = await readByLibvips(gif.path)
    expect(byLibvips.digests.length).toBeGreaterThan(5)
    expect(byLibvips.centiseconds.reduce((sum, each) => sum + each)).toBe(centiseconds)
    expect(await readByChromium(browser, gif.path)).toEqual(byLibvips)
    expect((await readByFfmpeg(gif.path, gif)).digests).toEqual(byLibvips.digests)
  })
})

async function readByLibvips(path: string): Promise<Shown> {
  const image = sharp(path, { animated: true })
  const { pages = 1, delay = [] } = await image.metadata()
  const bytes = await image.ensureAlpha().raw().toBuffer()
  const size = bytes.length / pages
  const digests = delay.map((_, at) => digestOf(bytes.subarray(size * at, size * (at + 1))))
  return { centiseconds: delay.map((each) => each / 10), digests }
}

async function readByFfmpeg(path: string, { width, height }: { width: number; height: number }) {
  const args = [
    '-v',
    'error',
    '-i',
    path,
    tools.ffmpeg.frameRateModeFlag,
    'passthrough',
    '-pix_fmt',
    'rgba',
    '-f',
    'rawvideo',
    '-',
  ]
  const { stdout } = await run(tools.ffmpeg.path, args, { encoding: 'buffer', maxBuffer: 1024 ** 3 })
  const size = 4 * width * height
  return {
    digests: Array.from({ length: stdout.length / size }, (_, at) =>
      digestOf(stdout.subarray(size * at, size * (at + 1))),
    ),
  }
}

async function readByChromium(browser: Browser, path: string): Promise<Shown> {
  const { frames } = await framesInChromium(await openDecodingPage(browser), await readFile(path), 'image/gif')
  return {
    centiseconds: frames.map(({ centiseconds }) => centiseconds),
    digests: frames.map(({ rgba }) => digestOf(rgba)),
  }
}

/** Colors of transparent pixels do not count. */
function digestOf(rgba: Buffer): string {
  const seen = Buffer.from(rgba)
  for (let at = 0; at < seen.length; at += 4) if (seen[at + 3] === 0) seen.fill(0, at, at + 3)
  return createHash('sha256').update(seen).digest('hex')
}
