// Which picture and which sound of a file become the clip, and how they look: measured in the files that are served.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clipOf, embeddedTools, tools, written } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { inspect } from './inspect.ts'
import { type Answer, idIn, startTestService, type TestService } from './service.ts'

const run = promisify(execFile)
const directory = await mkdtemp(join(tmpdir(), 'pictures-'))
afterAll(() => rm(directory, { recursive: true, force: true }))

const x264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p']
const lavfi = (source: string) => ['-f', 'lavfi', '-i', source]
const picture = lavfi('testsrc2=s=160x120:r=25:d=1')
const frame = lavfi('testsrc2=s=160x120:r=25:d=0.04')
const tone = (seconds: number) => lavfi(`sine=frequency=440:duration=${seconds}`)

/** Raw pixels of a file, all frames of it. */
async function decode(path: string, pixels: 'rgb24' | 'gray' | 'rgba', decoder: string[] = []): Promise<Buffer> {
  const args = [
    '-v',
    'error',
    ...decoder,
    '-i',
    path,
    '-vsync',
    'passthrough',
    '-pix_fmt',
    pixels,
    '-f',
    'rawvideo',
    '-',
  ]
  const options = { encoding: 'buffer', maxBuffer: 2 ** 28 } as const
  return (await run(embeddedTools.ffmpeg.path, args, options)).stdout
}

async function fileOf(service: TestService, answer: Answer, kind: string): Promise<string> {
  const id = idIn(answer)
  const path = join(directory, `${id}.${kind}`)
  await writeFile(path, (await service.get(`/f/${id}.${kind}`)).bytes)
  return path
}

const streamsOf = async (service: TestService, answer: Answer, kind: string) =>
  (await inspect(await fileOf(service, answer, kind))).streams.map(({ codec_name }) => codec_name)

/** Start of the first packet that is shown or heard, and end of the last one, in seconds. */
async function spanOf(path: string, stream: 'v' | 'a'): Promise<{ start: number; end: number }> {
  const entries = ['-show_entries', 'packet=pts_time,duration_time,flags', '-of', 'json']
  const args = ['-v', 'error', '-select_streams', `${stream}:0`, ...entries, path]
  const packets: Record<'pts_time' | 'duration_time' | 'flags', string>[] = JSON.parse(
    (await run(embeddedTools.ffprobe.path, args)).stdout,
  ).packets
  const shown = packets.filter(({ flags }) => !flags.includes('D'))
  const ends = shown.map(({ pts_time, duration_time }) => Number(pts_time) + Number(duration_time))
  return { start: Math.min(...shown.map(({ pts_time }) => Number(pts_time))), end: Math.max(...ends) }
}

const nits = 203
const patches = {
  white: { rgb: [1, 1, 1], nits },
  grey: { rgb: [0.2159, 0.2159, 0.2159], nits },
  red: { rgb: [1, 0, 0], nits },
  green: { rgb: [0, 1, 0], nits },
  blue: { rgb: [0, 0, 1], nits },
  bright: { rgb: [1, 1, 1], nits: 400 },
  brighter: { rgb: [1, 1, 1], nits: 800 },
}
const PATCH_SIDE = 32

/** BT.709 to BT.2020 in linear light (ITU-R BT.2087). */
const TO_BT2020 = [
  [0.6274, 0.3293, 0.0433],
  [0.0691, 0.9195, 0.0114],
  [0.0164, 0.088, 0.8956],
]

/** The inverse EOTF of SMPTE ST 2084, and the way of HLG for a display of 1000 cd/m2 (ITU-R BT.2100). */
const signalOf = {
  pq: (light: number[]) =>
    light.map((value) => {
      const power = (value / 10_000) ** (2610 / 16_384)
      return ((0.8359375 + 18.8515625 * power) / (1 + 18.6875 * power)) ** 78.84375
    }),
  hlg: (light: number[]) => {
    const [r = 0, g = 0, b = 0] = light.map((value) => value / 1000)
    const gain = (0.2627 * r + 0.678 * g + 0.0593 * b) ** (1 / 1.2 - 1)
    return [r, g, b].map((value) => {
      const scene = value * gain
      return scene <= 1 / 12 ? Math.sqrt(3 * scene) : 0.17883277 * Math.log(12 * scene - 0.28466892) + 0.55991073
    })
  },
}

/** Patches of known light side by side, in 10 bits. */
async function hdrClip(kind: 'pq' | 'hlg'): Promise<string> {
  const codes = Object.values(patches).map((patch) => {
    const light = TO_BT2020.map((row) => row.reduce((sum, part, n) => sum + part * (patch.rgb[n] ?? 0), 0) * patch.nits)
    const [r = 0, g = 0, b = 0] = signalOf[kind](light)
    const y = 0.2627 * r + 0.678 * g + 0.0593 * b
    return [64 + 876 * y, 512 + (896 * (b - y)) / 1.8814, 512 + (896 * (r - y)) / 1.4746].map(Math.round)
  })
  const plane = (n: number, side: number) =>
    Array.from({ length: side }, () => codes.flatMap((code) => Array(side).fill(code[n] ?? 0))).flat()
  const frame = Uint16Array.from([...plane(0, PATCH_SIDE), ...plane(1, PATCH_SIDE / 2), ...plane(2, PATCH_SIDE / 2)])
  const raw = await written(`hdr-patches-${kind}.yuv`, Buffer.concat(Array(10).fill(Buffer.from(frame.buffer))))
  const transfer = kind === 'pq' ? 'smpte2084' : 'arib-std-b67'
  return clipOf(`hdr-patches-${kind}.mp4`, [
    ...['-f', 'rawvideo', '-pix_fmt', 'yuv420p10le', '-s', `${codes.length * PATCH_SIDE}x${PATCH_SIDE}`, '-r', '10'],
    ...['-i', raw, '-c:v', 'libx265', '-preset', 'ultrafast', '-tag:v', 'hvc1', '-color_primaries', 'bt2020'],
    ...['-color_trc', transfer, '-colorspace', 'bt2020nc', '-x265-params', `log-level=none:crf=4:transfer=${transfer}`],
  ])
}

/** The colours in the middle of the patches of the first frame. */
async function patchesIn(path: string): Promise<Record<keyof typeof patches, number[]>> {
  const pixels = await decode(path, 'rgb24')
  const names = Object.keys(patches)
  const width = names.length * PATCH_SIDE
  const at = (n: number) => 3 * ((PATCH_SIDE / 2) * width + n * PATCH_SIDE + PATCH_SIDE / 2)
  return Object.fromEntries(names.map((name, n) => [name, [...pixels.subarray(at(n), at(n) + 3)]])) as never
}

/** Bars that move by four pixels with each field. */
const bars = "nullsrc=s=160x120:r=50:d=1,geq=lum='if(lt(mod(X-4*N\\,40)\\,20)\\,200\\,40)':cb=128:cr=128"
const progressive = () => clipOf('bars.mp4', [...lavfi(`${bars},fps=25`), ...x264])
const coders = {
  h264: ['-c:v', 'libx264', '-preset', 'fast', '-x264-params', 'tff=1'],
  mpeg4: ['-c:v', 'mpeg4', '-q:v', '2', '-top', '1'],
}
const interlaced = (codec: keyof typeof coders) =>
  clipOf(`bars-interlaced-${codec}.mp4`, [
    ...lavfi(`${bars},tinterlace=interleave_top,setfield=tff`),
    ...[...coders[codec], '-pix_fmt', 'yuv420p', '-flags', '+ildct+ilme'],
  ])

/** Share of the pixels that differ much from the lines above and below in the same direction. */
async function combsIn(path: string): Promise<number> {
  const { streams } = await inspect(path)
  const { width = 0, height = 0 } = streams[0] ?? {}
  const pixels = await decode(path, 'gray')
  let combs = 0
  for (let at = width; at < pixels.length - width; at++) {
    const line = Math.floor(at / width) % height
    if (line === 0 || line === height - 1) continue
    const [above = 0, here = 0, below = 0] = [pixels[at - width], pixels[at], pixels[at + width]]
    if ((here - above) * (here - below) > 900) combs++
  }
  return combs / pixels.length
}

/** A red square that moves over nothing; the second colour of the GIF's palette is black. */
const sticker = (codec: 'libvpx' | 'libvpx-vp9') =>
  clipOf(`sticker-${codec}.webm`, [
    ...[
      ...lavfi('color=c=black@0.0:s=80x60:r=10:d=2,format=rgba'),
      ...lavfi('color=c=red:s=20x20:r=10:d=2,format=rgba'),
    ],
    ...['-filter_complex', '[0:v][1:v]overlay=x=t*25:y=20:format=auto,format=yuva420p', '-c:v', codec],
    ...['-auto-alt-ref', '0', '-metadata:s:v:0', 'alpha_mode=1', '-deadline', 'realtime', '-cpu-used', '8'],
  ])
const clearGif = gif(
  40,
  20,
  Array.from({ length: 12 }, (_, n) => ({
    delay: 10,
    disposal: 2,
    transparent: 0,
    color: 1,
    left: n,
    top: 4,
    width: 12,
    height: 12,
  })),
)

/** Share of the pixels of every frame that show what is behind. */
async function clearShares(path: string, decoder: string[] = []): Promise<number[]> {
  const { streams } = await inspect(path)
  const { width = 0, height = 0 } = streams[0] ?? {}
  const pixels = await decode(path, 'rgba', decoder)
  const bytes = width * height * 4
  return Array.from({ length: pixels.length / bytes }, (_, n) => {
    const frame = pixels.subarray(n * bytes, (n + 1) * bytes)
    return frame.filter((value, at) => at % 4 === 3 && value < 128).length / (width * height)
  })
}

const vp9 = ['-c:v', 'libvpx-vp9']

/** A second of one size and a second of another, as in a call whose line gets better. */
async function resized(sizes: [string, string]): Promise<string> {
  const parts = await Promise.all(
    sizes.map((size, n) =>
      clipOf(`part-${n}-${size}.webm`, [
        ...[...lavfi(`testsrc2=s=${size}:r=25:d=1`), '-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8'],
      ]),
    ),
  )
  const list = await written(`parts-${sizes.join('-')}.txt`, parts.map((path) => `file '${path}'\n`).join(''))
  return clipOf(`resized-${sizes.join('-')}.webm`, ['-f', 'concat', '-safe', '0', '-i', list, '-c', 'copy'])
}

/** Its first frame of 200 ms has pixels that no decoder reads. */
const unreadableFirst = () => {
  const bytes = Buffer.from(
    gif(
      40,
      20,
      Array.from({ length: 5 }, (_, n) => ({ delay: 20, color: n % 2 ? 1 : 0 })),
    ),
  )
  const pixels = bytes.indexOf(0x2c, 13 + 6 + 19) + 10
  bytes[pixels] = 13
  return bytes
}

describe.for([
  ['of the machine', tools],
  ['of 2018', embeddedTools],
] as const)('with the ffmpeg %s', ([, anyTools]) => {
  let service: TestService
  beforeAll(async () => {
    service = await startTestService({ MEDIA_EXTRAS: 'true' }, { tools: anyTools })
  })
  afterAll(() => service.close())

  const upload = async (path: string | Uint8Array) => {
    const answer = await service.upload(path)
    expect(answer.body).toMatchObject({ success: {} })
    return answer
  }

  test.for(['pq', 'hlg'] as const)(
    'reference white of %s is nearly white, grey stays, colours stay saturated, highlights keep their steps',
    async (kind) => {
      const answer = await upload(await hdrClip(kind))
      for (const file of ['mp4', 'webm', 'jpg', 'gif']) {
        const seen = await patchesIn(await fileOf(service, answer, file))
        for (const value of seen.white) expect(Math.abs(value - 235), `${file} ${seen.white}`).toBeLessThanOrEqual(8)
        for (const value of seen.grey) expect(Math.abs(value - 128), `${file} ${seen.grey}`).toBeLessThanOrEqual(8)
        for (const [n, name] of (['red', 'green', 'blue'] as const).entries()) {
          const others = seen[name].filter((_, at) => at !== n)
          expect(seen[name][n], `${file} ${name} ${seen[name]}`).toBeGreaterThan(185)
          expect(Math.max(...others), `${file} ${name} ${seen[name]}`).toBeLessThan(40)
        }
        const [white = 0, bright = 0, brighter = 0] = [seen.white[1], seen.bright[1], seen.brighter[1]]
        expect(bright, file).toBeGreaterThan(white + 5)
        expect(brighter, file).toBeGreaterThan(bright)
      }
    },
  )

  const lengths = (answer: Answer) =>
    Promise.all(
      ['mp4', 'webm', 'gif'].map(async (file) =>
        Number((await inspect(await fileOf(service, answer, file))).format.duration),
      ),
    )

  test.for<[string, string]>([
    ['320x180', '640x360'],
    ['320x180', '180x320'],
  ])('a picture that changes its size from %s to %s is whole in every file', async (sizes) => {
    for (const seconds of await lengths(await upload(await resized(sizes)))) expect(seconds).toBeCloseTo(2, 0.7)
  })

  test('a gif whose first frame cannot be read is as long as it says', async () => {
    for (const seconds of await lengths(await upload(unreadableFirst()))) expect(seconds).toBeCloseTo(1, 1)
  })

  test('a clip that begins with an empty frame gets another frame as its poster', async () => {
    const answer = await upload(
      gif(40, 20, [{ delay: 20 }, ...Array.from({ length: 8 }, () => ({ delay: 10, color: 1 as const, width: 20 }))]),
    )
    expect((await sharp(await fileOf(service, answer, 'jpg')).stats()).channels[0]?.min).toBeLessThan(20)
  })

  // MPEG-4 part 2 says of frames alone what H.264 says of the stream.
  test.for(['h264', 'mpeg4'] as const)(
    'interlaced frames of %s become whole ones in every file, at their own times',
    async (codec) => {
      const source = await interlaced(codec)
      expect(await combsIn(source)).toBeGreaterThan(0.05)
      const answer = await upload(source)
      const reference = await upload(await progressive())
      for (const file of ['mp4', 'webm', 'jpg', 'gif']) {
        const [combs, usual] = await Promise.all(
          [answer, reference].map(async (made) => combsIn(await fileOf(service, made, file))),
        )
        expect(combs, file).toBeLessThan((usual ?? 0) + 0.01)
      }
      const { streams } = await inspect(await fileOf(service, answer, 'mp4'))
      expect(streams[0]).toMatchObject({ nb_read_frames: '25' })
      expect(Number(streams[0]?.duration)).toBeCloseTo(1, 2)
    },
  )

  test.for([
    ['webm of VP9', () => sticker('libvpx-vp9'), 2, 1 - (20 * 20) / (80 * 60)],
    ['webm of VP8', () => sticker('libvpx'), 2, 1 - (20 * 20) / (80 * 60)],
    ['gif', async () => clearGif, 1.2, 1 - (12 * 12) / (40 * 20)],
  ] as const)(
    'what shows through in a %s shows through in webm, gif and WebP; mp4 and jpg are on white',
    async ([, make, whole, share]) => {
      const answer = await upload(await make())
      const webm = await clearShares(await fileOf(service, answer, 'webm'), vp9)
      const ofGif = await clearShares(await fileOf(service, answer, 'gif'))
      for (const clear of [...webm, ...ofGif]) expect(clear).toBeCloseTo(share, 1)
      const lengths = ['mp4', 'webm', 'gif'].map(
        async (file) => (await inspect(await fileOf(service, answer, file))).format,
      )
      const seconds = (await Promise.all(lengths)).map(({ duration }) => Number(duration))
      for (const length of seconds) expect(Math.abs(length - whole), `${seconds}`).toBeLessThan(0.11)
      for (const file of ['mp4', 'jpg']) {
        const corner = (await decode(await fileOf(service, answer, file), 'rgb24')).subarray(0, 3)
        expect(Math.min(...corner)).toBeGreaterThan(245)
      }
      await expect.poll(async () => (await service.get(`/f/${idIn(answer)}.webp`)).status).toBe(200)
      const stats = await sharp(await fileOf(service, answer, 'webp')).stats()
      expect(stats.isOpaque).toBe(false)
      expect(stats.channels[3]?.mean).toBeCloseTo(255 * (1 - share), -1)
      // Pages would show an AV1 copy first, which is on white.
      expect((await service.get(`/f/${idIn(answer)}.av1.mp4`)).status).toBe(404)
    },
  )

  test('an opaque gif that only leaves out what stays costs no alpha plane', async () => {
    const opaque = gif(40, 20, [
      { delay: 10, transparent: 0, color: 1 },
      { delay: 10, transparent: 1, color: 1 },
    ])
    const { streams } = await inspect(await fileOf(service, await upload(opaque), 'webm'))
    expect(streams[0]?.tags?.alpha_mode ?? streams[0]?.tags?.ALPHA_MODE).toBeUndefined()
  })

  const dts = ['-c:a', 'dca', '-strict', '-2', '-ac', '2']
  test.for([
    ['DTS', [...picture, ...tone(1), ...x264, ...dts], []],
    ['MP2', [...picture, ...tone(1), ...x264, '-c:a', 'mp2'], ['aac']],
    ['AMR-WB', [...picture, ...tone(1), ...x264, '-c:a', 'libvo_amrwbenc', '-ar', '16000', '-ac', '1'], []],
    ['AMR', [...picture, ...tone(1), ...x264, '-c:a', 'libopencore_amrnb', '-ar', '8000', '-ac', '1'], []],
    [
      'DTS twice before AAC',
      [
        ...[...picture, ...tone(1), '-map', '0', '-map', '1', '-map', '1', '-map', '1', ...x264],
        ...['-c:a:0', 'dca', '-c:a:1', 'dca', '-strict', '-2', '-ac', '2', '-c:a:2', 'aac'],
      ],
      ['aac'],
    ],
  ] as const)('a clip with sound as %s is accepted and has the sound that can be read', async ([name, args, sound]) => {
    const brand = name.startsWith('AMR') ? ['-f', '3gp', '-brand', 'mp42'] : []
    const answer = await upload(await clipOf(`sound-${name.replaceAll(' ', '-')}.mp4`, [...args, ...brand]))
    expect(answer.body.success.meta).toMatchObject({ frames: '25' })
    expect(await streamsOf(service, answer, 'mp4')).toEqual(['h264', ...sound])
    // The copy without the codec is gone.
    await service.traces()
  })

  test.for([
    ['a gif of one frame a second', async () => gif(40, 20, Array(6).fill({ delay: 100 })), 6],
    ['a gif of one frame in two seconds', async () => gif(40, 20, Array(3).fill({ delay: 200 })), 6],
  ] as const)('%s keeps its length in mp4, webm, gif and meta, within a frame', async ([, make, seconds]) => {
    const answer = await upload(await make())
    const lengths = await Promise.all(
      ['mp4', 'webm', 'gif'].map(async (kind) => {
        const { format } = await inspect(await fileOf(service, answer, kind))
        return Number(format.duration)
      }),
    )
    lengths.push(Number.parseFloat(answer.body.success.meta.duration))
    for (const length of lengths) expect(Math.abs(length - seconds), `${lengths}`).toBeLessThan(0.041)
  })

  // Fragments without edit lists make the first frame as much longer as AAC needs to begin (23 ms), so the picture fits
  // no grid.
  test.for<[string, string]>([
    ['25', 'frag_keyframe+empty_moov'],
    ['60', 'frag_keyframe+empty_moov'],
    ['25', 'frag_keyframe+delay_moov'],
  ])(
    'mp4, webm, gif and meta of a fragmented mp4 with sound (%s fps, %s) last as long as its picture, within a frame',
    async ([fps, movflags]) => {
      const path = await clipOf(`fragmented-${fps}-${movflags}.mp4`, [
        ...[...lavfi(`testsrc2=s=160x120:r=${fps}:d=1`), ...tone(1), ...x264, '-bf', '0', '-c:a', 'aac', '-ac', '1'],
        ...['-movflags', movflags],
      ])
      const answer = await upload(path)
      const ofSource = await spanOf(path, 'v')
      const seconds = ofSource.end - ofSource.start
      expect(Number.parseFloat(answer.body.success.meta.duration)).toBeCloseTo(seconds, 2)
      for (const kind of ['mp4', 'webm', 'gif']) {
        const file = await fileOf(service, answer, kind)
        const picture = await spanOf(file, 'v')
        const frame = kind === 'gif' ? 0.06 : 1 / Number(fps)
        const length = picture.end - picture.start
        expect(Math.abs(length - seconds), `${kind}: ${length}, source: ${seconds}`).toBeLessThan(frame)
        if (kind === 'gif') continue
        // The last packet of sound, of 20 ms, may end after the picture.
        const sound = await spanOf(file, 'a')
        expect(sound.end - picture.end, kind).toBeLessThan(0.02)
      }
    },
  )

  test('sound of an unknown codec in a webm is left out, too', async () => {
    const mkv = await clipOf('sound-dts.mkv', [...picture, ...tone(1), '-c:v', 'libvpx', ...dts])
    const bytes = await readFile(mkv)
    // The name of the format, which ffmpeg would not write for such sound.
    const webm = Buffer.from(bytes.toString('latin1').replace('\x88matroska', '\x84webm\xec\x82\0\0'), 'latin1')
    const answer = await upload(await written('sound-of-dts.webm', webm))
    expect(await streamsOf(service, answer, 'webm')).toEqual(['vp9'])
  })

  test('video in a codec that is off the list is still refused', async () => {
    const path = await clipOf('prores.mp4', [...picture, '-c:v', 'prores', '-f', 'mov', '-brand', 'mp42'])
    const answer = await service.upload(path)
    expect([answer.status, answer.body.error?.code ?? answer.body.code]).toEqual([415, 'unsupported_media_type'])
  })

  test('a picture track of one frame before the clip is skipped', async () => {
    const path = await clipOf('mjpeg-first.mp4', [
      ...[...lavfi('color=red:s=64x64:r=25:d=0.04'), ...picture, '-map', '0', '-map', '1', '-c:v:0', 'mjpeg'],
      ...['-pix_fmt:0', 'yuvj420p', '-c:v:1', 'libx264', '-pix_fmt:1', 'yuv420p'],
    ])
    expect((await upload(path)).body.success.meta).toMatchObject({ width: '160', height: '120', frames: '25' })
  })

  test('one picture stays until its sound ends', async () => {
    const path = await clipOf('cover-with-song.mp4', [...frame, ...tone(4), ...x264, '-c:a', 'aac'])
    const answer = await upload(path)
    expect(Number.parseFloat(answer.body.success.meta.duration)).toBeCloseTo(4, 1)
    for (const file of ['mp4', 'webm', 'gif']) {
      const { format, streams } = await inspect(await fileOf(service, answer, file))
      expect(Number(format.duration), file).toBeCloseTo(4, 0)
      expect(streams.length).toBe(file === 'gif' ? 1 : 2)
    }
  })

  test('one picture with more sound than a clip may last is refused by its true length', async () => {
    const path = await clipOf('cover-with-album.mp4', [
      ...[...frame, ...tone(45), ...x264, '-c:a', 'aac', '-b:a', '32k'],
    ])
    const answer = await service.upload(path)
    expect(answer.status).toBe(422)
    expect(JSON.stringify(answer.body)).toMatch(/duration_exceeded.*"actual":45/)
  })
})
