// Renditions that every ffmpeg has to make, for three files. src/make/transcode/make-renditions.test.ts makes the usual
// ones with the npm build, make-renditions-again.slow.test.ts those in which builds differ, and
// make-renditions.slow.test.ts all with the ffmpeg of the machine.
import { createHash } from 'node:crypto'
import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { thumbHashToApproximateAspectRatio, thumbHashToAverageRGBA } from 'thumbhash'
import { expect, test } from 'vitest'
import type { VideoInfo } from '../src/db/media-info.ts'
import type { MediaTools } from '../src/ffmpeg/binaries.ts'
import { LARGEST_SIDE } from '../src/ffmpeg/hardening.ts'
import { probe } from '../src/make/probe/probe.ts'
import { defaultProbeLimits } from '../src/make/probe/source-limits.ts'
import type { TranscodeOptions } from '../src/make/run/encode.ts'
import { makeRenditions } from '../src/make/transcode/make-renditions.ts'
import { type ClipName, clip, clipOf, rotatedClip, trimmedClip, written } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { brightness, inspect } from './inspect.ts'

export const workDirectory = () => mkdtemp(join(tmpdir(), 'renditions-'))

export async function make(anyTools: MediaTools, path: string, options: Partial<TranscodeOptions> = {}) {
  const info = await probe(anyTools, path)
  return makeRenditions(
    anyTools,
    { path, info },
    { workDirectory: await workDirectory(), threads: 2, gifEncoder: 'own', copy: 'auto', ...options },
  )
}

/** Checks what holds for every clip, whatever it was made of, and returns what is in the two videos. */
export async function expectSound(made: Awaited<ReturnType<typeof make>>) {
  for (const rendition of [made.gif, made.jpg, made.mp4, made.webm]) {
    const bytes = await readFile(rendition.path)
    expect(rendition.bytes).toBe(bytes.length)
    expect(rendition.sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
  }
  const [mp4, webm] = await Promise.all([inspect(made.mp4.path), inspect(made.webm.path)])
  const size = { width: made.mp4.width, height: made.mp4.height }
  expect(mp4.streams[0]).toMatchObject({ codec_name: 'h264', pix_fmt: 'yuv420p', sample_aspect_ratio: '1:1', ...size })
  expect(webm.streams[0]).toMatchObject({ codec_name: 'vp9', pix_fmt: 'yuv420p', ...size })
  expect(mp4.streams[0]?.side_data_list).toBeUndefined()
  expect(await sharp(made.jpg.path).metadata()).toMatchObject({ format: 'jpeg', ...size })

  const start = (await readFile(made.mp4.path)).toString('latin1')
  expect(start.indexOf('moov')).toBeLessThan(start.indexOf('mdat'))
  return { mp4, webm, frames: mp4.streams[0]?.nb_read_frames, seconds: Number(mp4.streams[0]?.duration) }
}

/** Clips shorter than one frame of the renditions. */
const stillTests = (anyTools: MediaTools, names: ClipName[]) =>
  test.each(names)('of %s: its first frame, for a tenth of a second', async (name) => {
    const made = await make(anyTools, await clip(name))
    expect(made.warnings).toEqual([])
    expect(await expectSound(made)).toMatchObject({ seconds: 0.1, frames: '3' })
    expect((await sharp(made.gif.path, { animated: true }).metadata()).delay).toEqual([100])
  })

const lavfi = (source: string) => ['-f', 'lavfi', '-i', source]
const plainPart = lavfi('testsrc2=s=320x180:r=25:d=1')
const x264 = ['-c:v', 'libx264', '-crf', '36', '-g', '25', '-bf', '0']
/** The same bytes on every machine: a positive `-cpu-used` lets VP8 encode faster, and worse, on a busy one. */
const libvpx = ['-deadline', 'realtime', '-cpu-used', '-8', '-b:v', '60k']

/** Two seconds, each by arguments of its own, and each with its own header. */
async function joined(name: string, type: 'h264' | 'webm', parts: [string[], string[]]): Promise<string> {
  const paths = await Promise.all(parts.map((args, n) => clipOf(`${name}-${n}.${type}`, args)))
  if (type === 'webm') {
    const list = await written(`${name}.txt`, paths.map((path) => `file '${path}'\n`).join(''))
    return clipOf(`${name}.webm`, ['-f', 'concat', '-safe', '0', '-i', list, '-c', 'copy'])
  }
  const both = await written(`${name}.h264`, Buffer.concat(await Promise.all(paths.map((path) => readFile(path)))))
  return clipOf(`${name}.mp4`, ['-r', '25', '-f', 'h264', '-i', both, '-c', 'copy'])
}

/**
 * Slow: a copy of streams whose later parts differ from their beginning would have pictures that our own files never
 * have.
 */
export const copyTests = (anyTools: MediaTools) => {
  const [yuv420p, vp8, vp9] = [
    ['-pix_fmt', 'yuv420p'],
    ['-c:v', 'libvpx', ...libvpx],
    ['-c:v', 'libvpx-vp9', ...libvpx],
  ]
  const fits = [...plainPart, ...x264, ...yuv420p]
  const red = lavfi('color=red:s=320x180:r=25:d=1')
  const larger = lavfi('testsrc2=s=640x360:r=25:d=1')
  const lossless = [...red, '-c:v', 'libx264', '-qp', '0', '-bf', '0', ...yuv420p]
  test.each<[string, 'h264' | 'webm', string[], string[]]>([
    ['larger', 'h264', fits, [...larger, ...x264, ...yuv420p]],
    ['of 4:4:4', 'h264', fits, [...plainPart, ...x264, '-pix_fmt', 'yuv444p']],
    ['of 10 bits', 'h264', fits, [...plainPart, ...x264, '-pix_fmt', 'yuv420p10le']],
    ['of another profile with the same pixels', 'h264', fits, lossless],
    ['larger (VP8)', 'webm', [...plainPart, ...vp8], [...larger, ...vp8]],
    ['of 4:4:4 (VP9)', 'webm', [...plainPart, ...vp9], [...plainPart, ...vp9, '-pix_fmt', 'yuv444p']],
  ])('of a file whose second half is %s by encoding all of it', async (change, type, ...parts) => {
    const path = await joined(`changes-${change.replaceAll(/\W/g, '-')}`, type, parts)
    const made = await make(anyTools, path, { onFirstFiles: async () => expect.unreachable() })
    expect(made).toMatchObject({ misfit: 'changes', mp4: { copied: false }, webm: { copied: false } })
    expect(await expectSound(made)).toMatchObject({ frames: '50', seconds: 2 })
  })

  test('of a file whose second half has a higher level by encoding it, also where all files are made at once', async () => {
    const made = await make(anyTools, await joined('changes-level', 'h264', [fits, [...fits, '-level', '5.2']]))
    expect(made).toMatchObject({ misfit: 'changes', mp4: { copied: false } })
    expect(await expectSound(made)).toMatchObject({ frames: '50', seconds: 2 })
  })

  test('of a webm whose header claims a smaller picture by encoding it', async () => {
    const bytes = Buffer.from(await readFile(await clipOf('claims-less.webm', [...larger, ...vp8])))
    // PixelWidth and PixelHeight (RFC 9559, 5.1.4.1.28).
    for (const [id, size] of [
      [0xb0, 320],
      [0xba, 180],
    ] as const)
      bytes.writeUInt16BE(size, bytes.indexOf(Buffer.from([id, 0x82])) + 2)
    const made = await make(anyTools, await written('claims-less-than-it-is.webm', bytes))
    expect(made).toMatchObject({ misfit: 'changes', mp4: { copied: false }, webm: { copied: false } })
  })

  test('of a file that repeats its header by copying it', async () => {
    const made = await make(anyTools, await joined('repeats-its-header', 'h264', [fits, fits]))
    expect(made).toMatchObject({ misfit: null, warnings: [], mp4: { copied: true } })
  })
}

/** Makes gif, jpg, mp4 and webm of the most usual sources. */
export function usualTests(anyTools: MediaTools): void {
  test('of an mp4 with sound, and leaves its metadata behind', async () => {
    const made = await make(anyTools, await clip('sound.mp4'))
    expect(made).toMatchObject({ hasAudio: true, warnings: [], mp4: { width: 80, height: 60 } })
    const { mp4, webm, frames, seconds } = await expectSound(made)
    expect([frames, seconds]).toEqual(['50', 2])
    expect(mp4.streams[1]).toMatchObject({ codec_name: 'aac' })
    expect(webm.streams[1]).toMatchObject({ codec_name: 'opus' })
    expect(JSON.stringify([mp4, webm])).not.toContain('Secret')
    const { format, width, pageHeight, delay = [] } = await sharp(made.gif.path, { animated: true }).metadata()
    expect({ format, width, pageHeight }).toEqual({ format: 'gif', width: 80, pageHeight: 60 })
    // A frame every 60 ms, unless it is equal to the one before it; the last one ends with the picture.
    expect(delay.slice(0, -1).filter((each) => each % 60)).toEqual([])
    expect([delay.length > 30, delay.reduce((sum, next) => sum + next)]).toEqual([true, 2000])
  })

  test('of a gif with uneven delays: every frame at its time, the last one for its time', async () => {
    const frames = [{ delay: 5 }, { delay: 30, color: 1 }, { delay: 0 }, { delay: 100, color: 1 }] as const
    const bytes = gif(20, 10, [...frames])
    const made = await make(anyTools, await written('uneven.gif', bytes))
    expect((await expectSound(made)).seconds).toBe(1.45)
    const dark = (await brightness(made.mp4.path)).map((luma) => luma < 128)
    const runs = [...Array(1).fill(false), ...Array(6).fill(true), ...Array(2).fill(false), ...Array(20).fill(true)]
    expect(dark).toEqual(runs)
    expect((await readFile(made.gif.path)).equals(bytes)).toBe(true)
  })
}

/** Makes times, colours and containers, which ffmpeg has changed its mind about since 2018. */
export function renditionTests(anyTools: MediaTools): void {
  test('of a recording without duration', async () => {
    const { frames, seconds } = await expectSound(await make(anyTools, await clip('piped.webm')))
    expect([frames, seconds]).toEqual(['50', 2])
  })

  test('of a clip that was cut after its only keyframe', async () => {
    const made = await make(anyTools, await trimmedClip())
    expect(made.warnings).toEqual([])
    expect(await expectSound(made)).toMatchObject({ seconds: 1.4, frames: '35' })
  })

  test('of high dynamic range: standard range that says so', async () => {
    const { mp4, webm } = await expectSound(await make(anyTools, await clip('hdr-bare.mp4')))
    const standard = { color_space: 'bt709', color_transfer: 'bt709' }
    expect([mp4.streams[0], webm.streams[0]]).toMatchObject([standard, standard])
  })

  test.each([
    ['late-picture.mp4', false],
    ['late-picture-sound.mp4', true],
  ] as const)('a picture that begins after its sound (%s) begins every file', async (name, hasAudio) => {
    const made = await make(anyTools, await clip(name))
    expect(made).toMatchObject({ hasAudio, warnings: [] })
    const { mp4, webm, frames } = await expectSound(made)
    expect(frames).toBe('25')
    const lengths = [mp4, webm, await inspect(made.gif.path)].map(({ format }) => Number(format.duration))
    for (const length of lengths) expect(length).toBeCloseTo(1, 1)
    for (const { format } of [mp4, webm]) expect(Number(format.start_time)).toBeCloseTo(0, 1)
  })

  test('frames that were left out are filled in, and of 120 frames a second half go', async () => {
    expect(await expectSound(await make(anyTools, await clip('vfr.mp4')))).toMatchObject({
      frames: '44',
      seconds: 1.76,
    })
    expect(await expectSound(await make(anyTools, await clip('fast.mp4')))).toMatchObject({ frames: '60', seconds: 1 })
  })

  test.each(['mostly-dark.mp4', 'late-mostly-dark.mp4'] as const)(
    'a poster of a clip that is black for long shows what comes after (%s)',
    async (name) => {
      const made = await make(anyTools, await clip(name))
      const means = (await sharp(made.jpg.path).stats()).channels.map(({ mean }) => mean / 255)
      expect(means[1]).toBeGreaterThan(0.25)
      // And so does what stands for it until it is there.
      const { r, g, b } = thumbHashToAverageRGBA(made.placeholder)
      for (const [n, value] of [r, g, b].entries()) expect(value).toBeCloseTo(means[n] as number, 1)
      expect(thumbHashToApproximateAspectRatio(made.placeholder)).toBeCloseTo(80 / 60, 0)
    },
  )

  stillTests(anyTools, ['1-frame-in-17-ms.mp4'])
}

/** Further tests for the parts that only our own arguments decide. */
export function furtherRenditionTests(anyTools: MediaTools): void {
  test('of a picture that was turned', async () => {
    const made = await make(anyTools, await rotatedClip())
    expect(made).toMatchObject({ mp4: { width: 60, height: 80 }, gif: { width: 60, height: 80 } })
    await expectSound(made)
  })

  test('of a gif of one pixel and one frame: a second of it', async () => {
    const made = await make(anyTools, await written('pixel.gif', gif(1, 1, [{ delay: 500 }])))
    expect(made).toMatchObject({ gif: { width: 1, height: 1 }, mp4: { width: 2, height: 2 } })
    expect(await expectSound(made)).toMatchObject({ seconds: 1, frames: '10' })
  })

  test('of a gif as large as an operator may allow, which is kept as it is', async () => {
    const path = await written('wide.gif', gif(LARGEST_SIDE, 8, [{ delay: 10 }, { delay: 10, color: 1 }]))
    const info = await probe(anyTools, path, { limits: { ...defaultProbeLimits, side: LARGEST_SIDE } })
    const made = await makeRenditions(
      anyTools,
      { path, info },
      { workDirectory: await workDirectory(), threads: 2, gifEncoder: 'own', copy: 'auto' },
    )
    expect(made.gif).toMatchObject({ width: LARGEST_SIDE, height: 8 })
  })

  test('of a see-through gif and webm: white behind', async () => {
    const seeThrough = gif(20, 20, [
      { delay: 10, color: 1, transparent: 1 },
      { delay: 10, color: 1, transparent: 1 },
    ])
    for (const path of [await written('see-through.gif', seeThrough), await clip('alpha.webm')]) {
      const made = await make(anyTools, path)
      expect(Math.min(...(await brightness(made.mp4.path)))).toBeGreaterThan(245)
      expect((await sharp(made.jpg.path).stats()).channels[0]?.mean).toBeGreaterThan(245)
    }
  })

  test.each([
    ['odd.mp4', 322, 120],
    ['large.mp4', 1920, 1080],
  ] as const)('%s becomes %i x %i', async (name, width, height) => {
    const made = await make(anyTools, await clip(name))
    expect(made).toMatchObject({ mp4: { width, height }, jpg: { width, height } })
    await expectSound(made)
  })

  test('a last frame that stays is held', async () => {
    const path = await clip('plain.mp4')
    const info = (await probe(anyTools, path)) as VideoInfo
    const longer = { ...info, durationSeconds: info.durationSeconds + 0.4, longestFrameSeconds: 0.44 }
    const made = makeRenditions(
      anyTools,
      { path, info: longer },
      { workDirectory: await workDirectory(), threads: 1, gifEncoder: 'own', copy: 'auto' },
    )
    expect(await expectSound(await made)).toMatchObject({ frames: '60', seconds: 2.4 })
  })

  test('a gif whose frames leave the canvas is encoded again, and loops as often', async () => {
    const bytes = gif(8, 8, [{ delay: 10 }, { delay: 10, left: 4, color: 1 }], 3)
    const made = await make(anyTools, await written('over.gif', bytes))
    expect(await inspect(made.gif.path)).toMatchObject({ streams: [{ width: 8, height: 8 }] })
    expect((await readFile(made.gif.path)).equals(bytes)).toBe(false)
    expect(await probe(anyTools, made.gif.path)).toMatchObject({ loopCount: 3, frames: 2 })
    await expectSound(made)
  })

  test('silence is left out', async () => {
    const made = await make(anyTools, await clip('silence.mp4'))
    expect(made.hasAudio).toBe(false)
    expect((await inspect(made.mp4.path)).streams).toHaveLength(1)
  })

  test('ends with the picture', async () => {
    const made = await make(anyTools, await clip('long-sound.mp4'))
    expect(Number((await inspect(made.mp4.path)).format.duration)).toBeCloseTo(1, 1)
    expect(Number((await inspect(made.webm.path)).format.duration)).toBeCloseTo(1, 1)
  })

  stillTests(anyTools, ['3-frames-in-3-ms.mp4', '50-frames-in-50-us.mp4'])
}
