// Captions in real files, by the embedded ffmpeg of 2018 and the machine's own. The sources are of one color, so that
// every pixel that differs is of the caption.
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { clipOf, embeddedTools, tools, written } from '../../../test/clips.ts'
import { gif } from '../../../test/gif-bytes.ts'
import { brightness } from '../../../test/inspect.ts'
import { workDirectory } from '../../../test/rendition-tests.ts'
import { captionFont } from '../../core/captions/caption-font.ts'
import { cleanEdit, type RawEdit } from '../../core/edits/edit.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { probe } from '../probe/probe.ts'
import { makeRenditions } from './make-renditions.ts'

const run = promisify(execFile)

const blue = (size: string, seconds = 1) =>
  clipOf(`blue-${size}-${seconds}.mp4`, [
    ...['-f', 'lavfi', '-i', `color=s=${size}:r=10:d=${seconds}:c=0x336699`, '-c:v', 'libx264', '-pix_fmt', 'yuv420p'],
    ...['-g', '5'],
  ])

async function made(by: MediaTools, path: string, raw: RawEdit) {
  const info = await probe(by, path, { edit: cleanEdit(raw) })
  const directory = await workDirectory()
  const options = { workDirectory: directory, threads: 2, gifEncoder: 'own', copy: 'auto' } as const
  return { ...(await makeRenditions(by, { path, info }, options)), info, directory }
}

/** Gray values of the first picture. */
async function pixels(path: string) {
  const { stdout } = await run(
    embeddedTools.ffmpeg.path,
    ['-v', 'error', '-i', path, '-frames:v', '1', '-c:v', 'png', '-f', 'image2pipe', '-'],
    { encoding: 'buffer', maxBuffer: 64 * 1024 ** 2 },
  )
  const { data, info } = await sharp(stdout).flatten().grayscale().raw().toBuffer({ resolveWithObject: true })
  return { data, width: info.width, height: info.height }
}

/** The box around all pixels that differ from the first one, as parts of the picture, and the darkest and brightest. */
async function inked(path: string) {
  const { data, width, height } = await pixels(path)
  const ground = data[0] ?? 0
  const [xs, ys, values]: [number[], number[], number[]] = [[], [], []]
  for (const [at, value] of data.entries()) {
    // JPEG and video codecs leave traces around letters.
    if (Math.abs(value - ground) < 24) continue
    xs.push(at % width)
    ys.push(Math.floor(at / width))
    values.push(value)
  }
  const least = (list: number[]) => list.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
  const most = (list: number[]) => list.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY)
  return {
    ...{
      left: least(xs) / width,
      right: (most(xs) + 1) / width,
      top: least(ys) / height,
      bottom: (most(ys) + 1) / height,
    },
    ...{ darkest: least(values), brightest: most(values) },
  }
}

const ems = (text: string) =>
  [...text].reduce((sum, next) => sum + (captionFont().widths.get(next.codePointAt(0) ?? 0) ?? 0), 0)

describe.each([
  ['the embedded ffmpeg', embeddedTools],
  ['the ffmpeg of the machine', tools],
] as const)('by %s', (_, by) => {
  test.each([
    ['640x360', {}, 'bottom'],
    ['640x360', { caption_position: 'top' }, 'top'],
    ['640x360', { crop: '1:1' }, 'bottom'],
    ['360x640', { caption_position: 'top' }, 'top'],
    ['64x64', {}, 'bottom'],
  ] as const)(
    'of %s with %o: the text is in the %s of all four files, and nowhere else',
    async (size, edit, position) => {
      const files = await made(by, await blue(size), { caption: 'Hi, you', ...edit })
      const { fontSize = 0 } = files.info.edited?.caption ?? {}
      const band = (1.85 * fontSize) / files.mp4.height
      for (const { path } of [files.mp4, files.webm, files.jpg, files.gif]) {
        const ink = await inked(path)
        expect(ink.brightest).toBeGreaterThan(size === '64x64' ? 200 : 235)
        expect(ink.darkest).toBeLessThan(40)
        expect(Math.abs(ink.left - (1 - ink.right))).toBeLessThan(0.05)
        if (position === 'top') expect([ink.top > 0, ink.bottom < band]).toEqual([true, true])
        else expect([ink.bottom < 1, ink.top > 1 - band]).toEqual([true, true])
      }
      expect(files.warnings).toEqual([])
    },
  )

  test.each([
    '%{pts} %{n} %{localtime}',
    '%{expr:1} 100 % %%',
    `a':fontfile=/etc/passwd:x='`,
    'a\\nb \\: \\\\ \\',
    '[in];[out], a,b;c=d',
    'textfile=/etc/passwd',
  ])('%s is drawn character by character, in every frame alike', async (caption) => {
    const files = await made(by, await blue('640x360'), { caption })
    const { fontSize = 0, lines } = files.info.edited?.caption ?? {}
    expect(lines).toEqual([caption])
    const { left, right } = await inked(files.mp4.path)
    // Outline and rounding add a little, kerning takes a little.
    expect((right - left) * 640).toBeGreaterThan(ems(caption) * fontSize * 0.93)
    expect((right - left) * 640).toBeLessThan(ems(caption) * fontSize * 1.05 + fontSize)
    const light = await brightness(files.mp4.path)
    expect(Math.max(...light) - Math.min(...light)).toBeLessThan(2)
  })

  test('the longest caption stays within the picture, in three lines that do not touch each other', async () => {
    const caption =
      'It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife :)'
    const files = await made(by, await blue('640x360'), { caption })
    const { data, width, height } = await pixels(files.jpg.path)
    const ink = await inked(files.jpg.path)
    expect([ink.left > 0, ink.right < 1, ink.bottom < 1]).toEqual([true, true, true])
    const isWhite = (y: number) => data.subarray(y * width, (y + 1) * width).some((value) => value > 200)
    const rows = Array.from({ length: height }, (_, y) => isWhite(y))
    expect(rows.filter((row, y) => row && !rows[y - 1])).toHaveLength(3)
  })

  test('a gif with a caption is made from its frames, and a transparent one stays so around the letters', async () => {
    const frames = [0, 1].map((color) => ({ delay: 10, color: color as 0 | 1, transparent: 0 }))
    const path = await written('caption.gif', gif(160, 90, frames))
    const files = await made(by, path, { caption: 'Clear' })
    const { data, info } = await sharp(files.gif.path).ensureAlpha().raw().toBuffer({ resolveWithObject: true })
    const alphaAt = (x: number, y: number) => data[(y * info.width + x) * info.channels + 3]
    expect(alphaAt(2, 2)).toBe(0)
    const opaque = Array.from(
      { length: 90 },
      (_, y) => Array.from({ length: 160 }, (_, x) => alphaAt(x, y)).filter((alpha) => alpha === 255).length,
    )
    expect(opaque.findIndex((count) => count > 0)).toBeGreaterThan(60)
    expect(Math.max(...opaque)).toBeGreaterThan(10)
  })

  test('the caption is in the chosen poster and in a part from the middle', async () => {
    const files = await made(by, await blue('320x180', 8), { caption: 'Later', start: 5, duration: 1, poster_at: 0.5 })
    for (const { path } of [files.jpg, files.mp4]) expect((await inked(path)).top).toBeGreaterThan(0.8)
  })

  test('no file beside the text and the font is left in the directory of the clip', async () => {
    const { directory } = await made(by, await blue('64x64'), { caption: 'A b' })
    const known = /^(in\.bin|poster\.rgb|out\.(gif|jpg|mp4|webm)|caption\.ttf|caption-0\.txt)$/
    expect((await readdir(directory)).filter((name) => !known.test(name))).toEqual([])
  })
})
