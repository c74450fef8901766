// Types of sources that an operator adds to the usual three. Exact frames of each:
// make/transcode/source-types.slow.test.ts.
import { execFile } from 'node:child_process'
import { chmod, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import sharp, { type SharpOptions } from 'sharp'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../src/config.ts'
import { requireDecoders } from '../src/ffmpeg/require-decoders.ts'
import { clipOf, embeddedTools, written } from './clips.ts'
import { brightness, inspect } from './inspect.ts'
import { type Answer, idIn, settingsOf, startTestService, type TestService } from './service.ts'
import { apngOf, sequence } from './source-files.ts'
import { tusOf } from './tus.ts'
import { bytes, startFarSide } from './upstreams/far-side.ts'

const ADDED = ['video/quicktime', 'video/x-matroska', 'video/3gpp', 'image/apng', 'image/webp', 'image/avif']

/** Accepts every type. */
let service: TestService
/** Has the default. */
let usual: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_SOURCE_TYPES: ADDED.join(', ') })
  usual = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
})
afterAll(() => Promise.all([service.close(), usual.close()]))

const detailsOf = async (answer: Answer) => {
  const { body } = await service.get(`/media/${idIn(answer)}`, { token: service.token })
  return body.success
}

/** Codec, size and decoded frames of the picture in a served file. */
async function servedOf(answer: Answer, file: 'mp4' | 'webm' | 'gif') {
  const { status, bytes: body } = await service.get(`/f/${idIn(answer)}.${file}`)
  expect(status).toBe(200)
  const { path } = { path: await written(`served-${idIn(answer)}.${file}`, body) }
  const { streams, format } = await inspect(path)
  const video = streams.find(({ width }) => width !== undefined)
  const sound = streams.find(({ width }) => width === undefined)
  return { path, seconds: Number(format.duration), video, sound, frames: Number(video?.nb_read_frames) }
}

const lavfi = (source: string) => ['-f', 'lavfi', '-i', source]
const picture = lavfi('testsrc2=s=64x48:r=10:d=1')
const tone = lavfi('sine=frequency=440:duration=1')
const telephone = [...lavfi('testsrc2=s=128x96:r=10:d=1'), ...tone]
const NARROW = ['-ar', '8000', '-ac', '1', '-b:a', '12.2k']
const WIDE = ['-ar', '16000', '-ac', '1']
const x264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '10']

/** Subtitles of a Blu-ray, without any picture: the composition of a screen, and its end. */
const emptyPictures = Buffer.from(
  '504700000000000000001600' + '0b014000f010000080000000' + '5047000000000000000080' + '0000',
  'hex',
)

/** Like our own files, so that they are copied. */
const fitting = (name: string, codecs: string[]) =>
  clipOf(name, [...lavfi('color=teal:s=160x120:r=25:d=1'), ...codecs, '-metadata', 'title=Secret title'])
const recorded = () => fitting('types-fits.mkv', ['-c:v', 'libx264', '-pix_fmt', 'yuv420p'])
const ofPhone = (name: string) => fitting(name, [...tone, '-c:v', 'libx264', '-pix_fmt', 'yuv420p', '-c:a', 'aac'])

interface Source {
  path: () => Promise<string>
  type: string
  /** Members of `meta`. */
  meta: { duration: string; frames: string; width: string; height: string }
  hasSound: boolean
  copied?: 'mp4' | 'webm'
}

const FITS = { duration: '1s', frames: '25', width: '160', height: '120' }
const TENTHS = { duration: '1s', frames: '10', width: '64', height: '48' }

const sources: [string, Source][] = [
  [
    'H.264 and AAC in QuickTime, as phones record it',
    {
      path: () => ofPhone('types-fits.mov'),
      ...{ type: 'mov', meta: FITS, hasSound: true, copied: 'mp4' },
    },
  ],
  [
    'HEVC in QuickTime, on its side',
    {
      path: async () => {
        const hevc = ['-c:v', 'libx265', '-tag:v', 'hvc1', '-x265-params', 'log-level=none', '-an']
        const upright = await clipOf('types-hevc.mov', [...picture, ...hevc])
        return clipOf('types-turned.mov', ['-i', upright, '-c', 'copy', '-metadata:s:v:0', 'rotate=90'])
      },
      ...{ type: 'mov', meta: { ...TENTHS, width: '48', height: '64' }, hasSound: false },
    },
  ],
  [
    'ProRes and PCM',
    {
      path: () => clipOf('types-prores.mov', [...picture, ...tone, '-c:v', 'prores_ks', '-c:a', 'pcm_s16le']),
      ...{ type: 'mov', meta: TENTHS, hasSound: true },
    },
  ],
  [
    'motion JPEG and 8-bit PCM without ftyp, as of old cameras',
    {
      path: async () => {
        const mjpeg = ['-c:v', 'mjpeg', '-pix_fmt', 'yuvj420p', '-c:a', 'pcm_u8']
        const path = await clipOf('types-mjpeg.mov', [...picture, ...tone, ...mjpeg])
        return written('types-no-ftyp.mov', withoutFtyp(await readFile(path)))
      },
      ...{ type: 'mov', meta: TENTHS, hasSound: true },
    },
  ],
  [
    'a QuickTime file cut without encoding, whose edit list hides frames',
    {
      path: async () => {
        const long = await clipOf('types-long.mov', [...lavfi('testsrc2=s=64x48:r=10:d=2'), ...x264, '-bf', '0'])
        return clipOf('types-cut.mov', ['-ss', '0.6', '-i', long, '-c', 'copy'])
      },
      ...{ type: 'mov', meta: { ...TENTHS, duration: '1.4s', frames: '14' }, hasSound: false },
    },
  ],
  [
    'H.264 in Matroska, as screen recorders write it',
    {
      path: recorded,
      ...{ type: 'mkv', meta: FITS, hasSound: false, copied: 'mp4' },
    },
  ],
  [
    'VP9 in Matroska',
    {
      path: () => fitting('types-vp9.mkv', ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8']),
      ...{ type: 'mkv', meta: FITS, hasSound: false, copied: 'webm' },
    },
  ],
  [
    'HEVC and FLAC in Matroska, with a font attached',
    {
      path: async () => {
        const font = await written('types-font.ttf', Buffer.alloc(4000, 7))
        const hevc = ['-c:v', 'libx265', '-x265-params', 'log-level=none', '-c:a', 'flac']
        const attached = ['-attach', font, '-metadata:s:t', 'mimetype=application/x-truetype-font']
        return clipOf('types-attached.mkv', [...picture, ...tone, ...hevc, ...attached])
      },
      ...{ type: 'mkv', meta: TENTHS, hasSound: true },
    },
  ],
  [
    'H.264 in Matroska with subtitles as text, with styles and as pictures, and with their font',
    {
      path: async () => {
        const text = await written('types-text.srt', '1\n00:00:00,000 --> 00:00:01,500\nNot opened\n')
        const pictures = ['-f', 'sup', '-i', await written('types-pictures.sup', emptyPictures)]
        const font = await written('types-font.ttf', Buffer.alloc(4000, 7))
        const maps = ['0', '1', '1', '2', '2'].flatMap((input) => ['-map', input])
        const codecs = ['-c', 'copy', '-c:s:0', 'srt', '-c:s:1', 'ass', '-c:s:2', 'copy', '-c:s:3', 'dvdsub']
        return clipOf('types-subtitles.mkv', [
          ...['-i', await recorded(), '-i', text, ...pictures, ...maps, ...codecs],
          ...['-attach', font, '-metadata:s:t', 'mimetype=application/x-truetype-font'],
        ])
      },
      ...{ type: 'mkv', meta: FITS, hasSound: false, copied: 'mp4' },
    },
  ],
  [
    'MPEG-4 and AC-3 in Matroska',
    {
      path: () => clipOf('types-mpeg4.mkv', [...picture, ...tone, '-c:v', 'mpeg4', '-c:a', 'ac3']),
      ...{ type: 'mkv', meta: TENTHS, hasSound: true },
    },
  ],
  [
    'H.263 and AMR in 3GP, as of early phones',
    {
      path: () => clipOf('types-h263.3gp', [...telephone, '-c:v', 'h263', '-c:a', 'libopencore_amrnb', ...NARROW]),
      ...{ type: '3gp', meta: { ...TENTHS, width: '128', height: '96' }, hasSound: true },
    },
  ],
  [
    'MPEG-4 and wide AMR in 3GP',
    {
      path: () => clipOf('types-mpeg4.3gp', [...telephone, '-c:v', 'mpeg4', '-c:a', 'libvo_amrwbenc', ...WIDE]),
      ...{ type: '3gp', meta: { ...TENTHS, width: '128', height: '96' }, hasSound: true },
    },
  ],
  [
    'H.264 and AAC in 3GP, as chats send it',
    {
      path: () => ofPhone('types-fits.3gp'),
      ...{ type: '3gp', meta: FITS, hasSound: true, copied: 'mp4' },
    },
  ],
  [
    'an AVIF sequence',
    {
      path: () => sequence(picture, 'types-sequence'),
      ...{ type: 'avif', meta: TENTHS, hasSound: false },
    },
  ],
]

/** Turns the first box into one that QuickTime files of that time begin with. */
function withoutFtyp(file: Buffer): Buffer {
  const bytes = Buffer.from(file)
  bytes.write('wide', bytes.indexOf('ftyp'), 'latin1')
  return bytes
}

describe.each(sources)('%s', (_, { path, type, meta, hasSound, copied }) => {
  test('becomes up to the four files, with its length, frames, size and sound', async () => {
    const answer = await service.upload(await path())
    expect([answer.status, answer.body.success?.meta]).toEqual([201, meta])
    const details = await detailsOf(answer)
    expect(details.source.type).toBe(type)
    expect(details.sizes.mp4.copied ?? false).toBe(copied === 'mp4')
    expect(details.sizes.webm.copied ?? false).toBe(copied === 'webm')
    const size = { width: Number(meta.width), height: Number(meta.height) }
    for (const file of ['mp4', 'webm', 'gif'] as const) {
      const served = await servedOf(answer, file)
      expect([file, served.video]).toMatchObject([file, size])
      expect(served.seconds, file).toBeCloseTo(Number.parseFloat(meta.duration), 1)
      if (file !== 'gif')
        expect([file, served.frames, Boolean(served.sound)]).toEqual([file, Number(meta.frames), hasSound])
    }
    expect((await service.get(`/f/${idIn(answer)}.jpg`)).status).toBe(200)
  })

  test('is refused by default, and nothing is left of it', async () => {
    const before = await usual.traces()
    const answer = await usual.upload(await path())
    expect([answer.status, answer.body.error]).toMatchObject([
      415,
      {
        code: 'unsupported_media_type',
        message: 'Only image/gif, video/mp4 and video/webm are accepted.',
        details: { accepted: ['image/gif', 'video/mp4', 'video/webm'] },
      },
    ])
    expect(await usual.traces()).toEqual(before)
  })
})

test('a part of a source of an added type is exact to the frame', async () => {
  const halves = await clipOf('types-halves.mov', [
    ...[...lavfi("nullsrc=s=64x48:r=10:d=4,geq=lum='if(lt(N,20),20,230)':cb=128:cr=128"), ...x264, '-g', '40'],
  ])
  const answer = await service.upload(halves, [
    ['start', '1.8'],
    ['duration', '0.6'],
    ['crop', '0,0,32,24'],
  ])
  expect(answer.body.success.meta).toEqual({ duration: '0.6s', frames: '6', width: '32', height: '24' })
  const { path } = await servedOf(answer, 'mp4')
  expect((await brightness(path)).map((light) => light > 128)).toEqual([false, false, true, true, true, true])
})

test('imports and resumable uploads take it, and a copy leaves the tags of the source out', async () => {
  const file = await readFile(await ofPhone('types-fits.mov'))
  expect(file.includes('Secret title')).toBe(true)
  const far = await startFarSide(['far.example'])
  onTestFinished(far.close)
  far.answers({ 'https://far.example/clip': bytes(file, { 'content-type': 'video/quicktime' }) })
  const imported = await service.importFrom({ source: `${far.base}/far.example/clip` })
  expect(imported.body.success?.meta).toEqual(FITS)
  const mp4 = await service.get(`/f/${idIn(imported)}.mp4`)
  expect(mp4.bytes.includes('Secret title')).toBe(false)

  const tus = tusOf(service)
  const location = await tus.begin(file.length)
  const end = await tus.send(location, 0, file)
  expect(end.status).toBe(204)
  const made = await tus.call('HEAD', location)
  expect(made.headers.get('upload-offset')).toBe(String(file.length))
  expect((await usual.importFrom({ source: `${far.base}/far.example/clip` })).body.error).toMatchObject({
    code: 'unsupported_media_type',
    details: { accepted: ['image/gif', 'video/mp4', 'video/webm'] },
  })
})

test('a type that is no longer accepted is refused although its bytes are known; its clips stay', async () => {
  const was = await startTestService({ MEDIA_SOURCE_TYPES: 'video/quicktime' })
  const path = await ofPhone('types-fits.mov')
  const answer = await was.upload(path)
  was.deps.config.source.types = usual.deps.config.source.types
  expect((await was.upload(path)).status).toBe(415)
  expect((await was.get(`/f/${idIn(answer)}.mp4`)).status).toBe(200)
  await was.close()
})

describe('MEDIA_SOURCE_TYPES', () => {
  const read = (value: string) =>
    readConfig({ ...settingsOf('postgres://media@db.example/media', '/var/lib/media'), MEDIA_SOURCE_TYPES: value })

  test.each(['video/avi', 'video/quicktime, mov', '*', 'video/*'])('%j ends the start', (value) => {
    expect(() => read(value)).toThrow(/MEDIA_SOURCE_TYPES.*must be a comma-separated list of video\/quicktime/)
  })

  test.each(['', 'video/mp4', ' image/gif, video/webm '])('%j adds nothing', (value) => {
    expect(read(value).config.source.types).toEqual(['gif', 'mp4', 'webm'])
  })
})

test('refusal, home page and document name what is accepted here', async () => {
  const { body } = await service.upload(Buffer.from('no clip at all'))
  expect(body.error.message).toBe(
    `Only image/gif, video/mp4, video/webm, ${ADDED.slice(0, -1).join(', ')} and ${ADDED.at(-1)} are accepted.`,
  )
  expect(body.error.details.accepted).toEqual(['image/gif', 'video/mp4', 'video/webm', ...ADDED])

  const [home, usualHome] = await Promise.all([service.get('/'), usual.get('/')])
  expect(usualHome.text).toContain('accept="image/gif,video/mp4,video/webm,.gif,.mp4,.webm"')
  expect(usualHome.text).toContain('GIF, MP4 or WebM, up to')
  for (const mime of ADDED) expect(home.text).toMatch(new RegExp(`accept="[^"]*${mime}`))

  const [document, usualDocument] = await Promise.all([service.get('/openapi.json'), usual.get('/openapi.json')])
  expect(usualDocument.text).not.toContain('MOV')
  expect(document.text.match(/GIF, MP4, [^.]*MOV/g)?.length).toBeGreaterThanOrEqual(2)
})

test('an ffmpeg that cannot decode an accepted type ends the start', async () => {
  const without = await written('types-ffmpeg.sh', '#!/bin/sh\necho " VFS..D h264   H.264"\n')
  await chmod(without, 0o755)
  await expect(requireDecoders({ path: without }, ['gif', 'mov'])).resolves.toBeUndefined()
  await expect(requireDecoders({ path: without }, ['gif', '3gp'])).rejects.toThrow(
    'MEDIA_SOURCE_TYPES: video/3gpp needs an ffmpeg with h263',
  )
})

describe('an animated image', () => {
  /** Frames of 40 x 30: a red square that moves over nothing; every second one is half as clear. */
  const drawn = (alphas: readonly number[]) =>
    alphas.map((alpha, n) => {
      const pixels = Buffer.alloc(40 * 30 * 4)
      for (let y = 8; y < 24; y++)
        for (let x = 4 * n; x < 4 * n + 16; x++) pixels.set([230, 20, 30, alpha], 4 * (40 * y + x))
      return pixels
    })
  const tall = (frames: Buffer[]) =>
    sharp(Buffer.concat(frames), {
      raw: { width: 40, height: 30 * frames.length, channels: 4, pageHeight: 30 },
    } as SharpOptions)
  const webp = async (alphas: number[], delay: number[], loop = 0) =>
    tall(drawn(alphas)).webp({ lossless: true, delay, loop }).toBuffer()
  const apng = async (alphas: number[], delay: number[], plays = 0) => {
    const still = await Promise.all(
      drawn(alphas).map((pixels) =>
        sharp(pixels, { raw: { width: 40, height: 30, channels: 4 } })
          .png({ palette: false })
          .toBuffer(),
      ),
    )
    return apngOf(still, { delay, plays })
  }
  const makers: [string, (alphas: number[], delay: number[], plays?: number) => Promise<Buffer>][] = [
    ['image/webp', webp],
    ['image/apng', apng],
  ]

  test.each(makers)('%s keeps times, loops, frames and transparency', async (mime, make) => {
    const answer = await service.upload(await make([255, 255, 255, 255], [120, 240, 360, 120], 3))
    expect([answer.status, answer.body.success?.meta]).toEqual([
      201,
      { duration: '0.84s', frames: '4', width: '40', height: '30' },
    ])
    expect((await detailsOf(answer)).source.type).toBe(mime.slice('image/'.length))
    const gif = await sharp((await service.get(`/f/${idIn(answer)}.gif`)).bytes, { animated: true }).metadata()
    expect([gif.delay, gif.loop, gif.hasAlpha]).toEqual([[120, 240, 360, 120], 3, true])
    const { path, seconds } = await servedOf(answer, 'mp4')
    expect(seconds).toBeCloseTo(0.84, 2)
    // White where nothing is, and each frame in its place and time: a step is 60 ms.
    const places = (await rowsOf(path)).map((row) => row.findIndex(([, green = 255]) => green < 128))
    expect(places).toEqual([0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 12, 12])
    const webm = await servedOf(answer, 'webm')
    expect(webm.video?.tags).toMatchObject({ ALPHA_MODE: '1' })
  })

  test.each(makers)('%s of regular frames that no hundredth fits keeps its rate', async (_, make) => {
    const answer = await service.upload(await make(Array(10).fill(255), Array(10).fill(33)))
    expect(answer.body.success.meta).toMatchObject({ duration: '0.33s', frames: '10' })
    expect(await servedOf(answer, 'mp4')).toMatchObject({ frames: 10, seconds: expect.closeTo(0.33, 3) })
  })

  test.each(makers)('%s: a part, and delays that browsers do not believe', async (_, make) => {
    const answer = await service.upload(await make([255, 255, 255, 255], [0, 200, 200, 10]), [['start', '0.1']])
    expect(answer.body.success?.meta).toMatchObject({ duration: '0.5s', frames: '3' })
    expect((await detailsOf(answer)).edit).toEqual({ start: 0.1 })
  })

  test.each(makers)('%s is 415 by default, and as a still picture', async (mime, make) => {
    const refused = await usual.upload(await make([255, 255], [100, 100]))
    expect([refused.status, refused.body.error.details]).toEqual([
      415,
      { accepted: ['image/gif', 'video/mp4', 'video/webm'] },
    ])
    const one = sharp({ create: { width: 9, height: 9, channels: 3, background: 'red' } })
    const still = await service.upload(await (mime === 'image/webp' ? one.webp() : one.png()).toBuffer())
    expect([still.status, still.body.error.code]).toEqual([415, 'unsupported_media_type'])
    if (mime === 'image/webp') expect(still.body.error.message).toBe('The image is not animated.')
  })

  test('frames smaller than the canvas, laid over and cleared as libvips shows them', async () => {
    // Lossy with alpha, which libwebp stores as parts of the canvas.
    const file = await tall(drawn([255, 140, 255, 90, 200, 255]))
      .webp({ quality: 90, delay: Array(6).fill(100), minSize: true })
      .toBuffer()
    const answer = await service.upload(file)
    expect(answer.body.success.meta).toMatchObject({ duration: '0.6s', frames: '6' })
    const expected = await framesOf(file)
    const got = await framesOf((await service.get(`/f/${idIn(answer)}.gif`)).bytes)
    expect(got).toHaveLength(6)
    // A GIF has no half clear pixels: those that show are all there is to compare.
    for (const [n, frame] of got.entries()) {
      const differing = [...frame.keys()].filter(
        (at) => at % 4 === 3 && (frame[at] ?? 0) > 128 !== (expected[n]?.[at] ?? 0) > 128,
      )
      expect([n, differing.length]).toEqual([n, expect.toBeOneOf([0, 1, 2, 3, 4])])
    }
  })

  const framesOf = async (file: Buffer) => {
    const { data, info } = await sharp(file, { animated: true })
      .ensureAlpha()
      .raw()
      .toBuffer({ resolveWithObject: true })
    const bytes = info.width * (info.pageHeight ?? info.height) * 4
    return Array.from({ length: data.length / bytes }, (_, n) => data.subarray(n * bytes, (n + 1) * bytes))
  }

  /** The middle row of each frame, as RGB. */
  const rowsOf = async (path: string) => {
    const row = [
      '-vf',
      'crop=iw:2:0:ih/2,scale=iw:1',
      '-vsync',
      'passthrough',
      '-pix_fmt',
      'rgb24',
      '-f',
      'rawvideo',
      '-',
    ]
    const { stdout } = await promisify(execFile)(embeddedTools.ffmpeg.path, ['-v', 'error', '-i', path, ...row], {
      encoding: 'buffer',
    })
    return Array.from({ length: stdout.length / 120 }, (_, n) =>
      Array.from({ length: 40 }, (_, x) => [...stdout.subarray(120 * n + 3 * x, 120 * n + 3 * x + 3)]),
    )
  }
})

test('a still AVIF, and a sequence with a second track, are 415', async () => {
  const one = sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
  const still = await service.upload(await one.avif({ effort: 0 }).toBuffer())
  expect([still.status, still.body.error.message]).toEqual([415, 'The image is not animated.'])

  const path = await sequence([...picture, ...picture, '-map', '0:v', '-map', '1:v'], 'types-two-tracks')
  const transparent = await service.upload(path)
  expect([transparent.status, transparent.body.error.details]).toEqual([415, { limit: 1, actual: 2 }])
})
