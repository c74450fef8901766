// Streams beside picture and sound never refuse a file, whatever their codec: each kind of stream in each kind of file.
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { boxesIn, findBox } from '../../src/make/probe/boxes.ts'
import { probe } from '../../src/make/probe/probe.ts'
import { defaultProbeLimits } from '../../src/make/probe/source-limits.ts'
import { clip, clipOf, embeddedTools, unboxedTools, written } from '../clips.ts'
import { inspect } from '../inspect.ts'
import { make } from '../rendition-tests.ts'

const lavfi = (source: string) => ['-f', 'lavfi', '-i', source]
const film = lavfi('testsrc=s=64x48:r=10:d=1')
const tone = lavfi('sine=duration=1')
const x264 = ['-c:v:0', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p']

/** A picture subtitle of a Blu-ray: a white bar of 64 x 16 pixels, and its end. */
function subtitles(): Buffer {
  const word = (value: number) => [value >> 8, value & 255]
  const segment = (ms: number, kind: number, body: readonly number[]) => {
    const head = Buffer.alloc(13)
    head.write('PG')
    head.writeUInt32BE(90 * ms, 2)
    head.writeUInt8(kind, 10)
    head.writeUInt16BE(body.length, 11)
    return Buffer.concat([head, Buffer.from(body)])
  }
  const composition = (isShown: boolean) => [
    ...[...word(64), ...word(48), 0x10, ...word(isShown ? 0 : 1), isShown ? 0x80 : 0, 0, 0, isShown ? 1 : 0],
    ...(isShown ? [0, 0, 0, 0, ...word(0), ...word(20)] : []),
  ]
  const window = [1, 0, ...word(0), ...word(20), ...word(64), ...word(16)]
  const runs = Array.from({ length: 16 }, () => [0, 0xc0, 0x40, 1, 0, 0]).flat()
  const length = runs.length + 4
  const object = [0, 0, 0, 0xc0, 0, length >> 8, length & 255, ...word(64), ...word(16), ...runs]
  const palette = [0, 0, 1, 235, 128, 128, 255]
  return Buffer.concat([
    ...[segment(200, 0x16, composition(true)), segment(200, 0x17, window), segment(200, 0x14, palette)],
    ...[segment(200, 0x15, object), segment(200, 0x80, [])],
    ...[segment(800, 0x16, composition(false)), segment(800, 0x17, window), segment(800, 0x80, [])],
  ])
}

const ofSubtitles = async () => ['-fix_sub_duration', '-f', 'sup', '-i', await written('subtitles.sup', subtitles())]
const picture = async () => clipOf('cover.tiff', [...film, '-frames:v', '1'])

const kinds: Record<string, () => Promise<string[]>> = {
  'picture subtitles': async () => [
    ...film,
    ...(await ofSubtitles()),
    '-map',
    '0',
    '-map',
    '1',
    ...x264,
    '-c:s',
    'dvdsub',
  ],
  'another picture': async () => [...film, ...film, '-map', '0', '-map', '1', ...x264, '-c:v:1', 'mpeg2video'],
  'another picture, which is first': async () => [
    ...[...film, ...film, '-map', '0', '-map', '1', '-pix_fmt', 'yuv420p'],
    ...['-c:v:0', 'mpeg2video', '-c:v:1', 'libx264'],
  ],
  sound: async () => [...film, ...tone, ...x264, '-c:a', 'ac3_fixed', '-c:a', 'wmav2'],
}

const limits = { ...defaultProbeLimits, types: ['mp4', 'mkv'] as const }

describe.each([
  ['mp4', ['picture subtitles', 'another picture', 'another picture, which is first']],
  ['mkv', ['picture subtitles', 'another picture', 'another picture, which is first', 'sound']],
] as const)('in an %s', (type, names) => {
  test.each(names)('%s in a codec of no clip', async (name) => {
    const path = await clipOf(`unwanted-${name.replace(/\W+/g, '-')}.${type}`, (await kinds[name]?.()) ?? [])
    const info = await probe(unboxedTools, path, { limits })
    expect(info).toMatchObject({ codec: 'h264', frames: 10, hasAudio: false })
  })
})

test('a film with picture subtitles is made without them', async () => {
  const path = await clipOf('unwanted-picture-subtitles.mp4', (await kinds['picture subtitles']?.()) ?? [])
  const made = await make(embeddedTools, path)
  const { streams } = await inspect(made.mp4.path)
  expect(streams.map(({ codec_name, nb_read_frames }) => [codec_name, nb_read_frames])).toEqual([['h264', '10']])
})

test('covers and attachments in a codec of no clip', async () => {
  const attached = ['-attach', await picture(), '-metadata:s:t', 'mimetype=image/tiff']
  const mkv = await clipOf('unwanted-attachment.mkv', [...film, ...x264, ...attached])
  expect(await probe(unboxedTools, mkv, { limits })).toMatchObject({ codec: 'h264', frames: 10 })
  const cover = [
    '-map',
    '0',
    '-map',
    '1',
    ...x264,
    '-c:v:1',
    'bmp',
    '-frames:v:1',
    '1',
    '-disposition:v:1',
    'attached_pic',
  ]
  const mp4 = await clipOf('unwanted-cover.mp4', [...film, ...film, ...cover])
  expect(await probe(unboxedTools, mp4, { limits })).toMatchObject({ codec: 'h264', frames: 10 })
})

/** An mp4 of H.264 and a cover, with a track in a codec of no clip, whose tags precede the tracks. */
const withTagsFirst = async () => {
  const codecs = [
    ...x264,
    '-c:v:1',
    'mpeg2video',
    '-c:v:2',
    'bmp',
    '-frames:v:2',
    '1',
    '-disposition:v:2',
    'attached_pic',
  ]
  const maps = ['-map', '0', '-map', '1', '-map', '2']
  const bytes = await readFile(await clipOf('unwanted-tags-last.mp4', [...film, ...film, ...film, ...maps, ...codecs]))
  const moov = findBox(bytes, { start: 0, end: bytes.length }, 'moov') ?? { start: 0, end: 0 }
  const boxes = [...boxesIn(bytes, moov)].map(({ type, start, end }) => ({
    type,
    bytes: bytes.subarray(start - 8, end),
  }))
  const order = ['mvhd', 'udta', 'trak']
  boxes.sort((a, b) => order.indexOf(a.type) - order.indexOf(b.type))
  const sorted = [bytes.subarray(0, moov.start), ...boxes.map((box) => box.bytes), bytes.subarray(moov.end)]
  return written('unwanted-tags-first.mp4', Buffer.concat(sorted))
}

test('a cover in front of the tracks, and a track in a codec of no clip', async () => {
  expect(await probe(unboxedTools, await withTagsFirst(), { limits })).toMatchObject({ codec: 'h264', frames: 10 })
})

describe('of many streams', () => {
  const times = (count: number, ...args: string[]) => Array.from({ length: count }, () => args).flat()
  const withText = async (count: number) => {
    const text = ['-i', await written('unwanted.srt', '1\n00:00:00,000 --> 00:00:01,000\nHello\n')]
    const maps = ['-map', '0', ...times(count, '-map', '1')]
    return clipOf(`unwanted-text-${count}.mkv`, [...film, ...text, ...maps, ...x264, '-c:s', 'srt'])
  }
  const withDrawn = async (count: number) => {
    const maps = ['-map', '0', ...times(count, '-map', '1')]
    const args = [...film, ...(await ofSubtitles()), ...maps, ...x264, '-c:s', 'dvdsub']
    return clipOf(`unwanted-drawn-${count}.mkv`, args)
  }
  const withSound = (count: number) => {
    const maps = ['-map', '0', ...times(count, '-map', '1')]
    return clipOf(`unwanted-sound-${count}.mkv`, [...film, ...tone, ...maps, ...x264, '-c:a', 'pcm_s16le'])
  }

  test.each([
    ['31 subtitles as text', () => withText(31)],
    ['9 subtitles as pictures', () => withDrawn(9)],
    ['7 sounds', () => withSound(7)],
  ])('%s refuse no file', async (_, source) => {
    expect(await probe(unboxedTools, await source(), { limits })).toMatchObject({ codec: 'h264', frames: 10 })
  })

  test.each([
    ['32 subtitles', () => withText(32), { limit: 32, actual: 33 }],
    ['8 sounds', () => withSound(8), { limit: 8, actual: 9 }],
  ])('%s and a picture do', async (_, source, details) => {
    const refusal = { code: 'unsupported_media_type', details }
    await expect(probe(unboxedTools, await source(), { limits })).rejects.toMatchObject(refusal)
  })
})

test.each(['mp4', 'mkv'])(
  'the picture of an %s that has no other is refused by the name of its codec',
  async (type) => {
    const codecs = ['-pix_fmt', 'yuv420p', '-c:v', 'mpeg2video']
    const one = await clipOf(`unwanted-only.${type}`, [...film, ...codecs])
    const two = await clipOf(`unwanted-both.${type}`, [...film, ...film, '-map', '0', '-map', '1', ...codecs])
    for (const path of [one, two]) {
      const refusal = { code: 'unsupported_media_type', details: { codec: 'mpeg2video' } }
      await expect(probe(unboxedTools, path, { limits })).rejects.toMatchObject(refusal)
    }
    expect(await probe(unboxedTools, await clip('plain.mp4'), { limits })).toMatchObject({ codec: 'h264' })
  },
)
