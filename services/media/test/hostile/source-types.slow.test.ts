// Hostile uploads of the types that an operator adds (MEDIA_SOURCE_TYPES). The usual ones: hostile.slow.test.ts.
import { readFile } from 'node:fs/promises'
import { crc32, deflateSync } from 'node:zlib'
import sharp, { type SharpOptions } from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADDABLE_MIMES } from '../../src/db/source-types.ts'
import { clip, clipOf } from '../clips.ts'
import { startTestService, type TestService } from '../service.ts'
import { apngOf, sequence } from '../source-files.ts'
import { mutantsOf } from './mutants.ts'

/** Each mutation on two of the six types: every mutant is a whole upload. */
const MUTANTS = Number(process.env.MEDIA_MUTANTS || 18)
const TIMEOUT_MS = 240_000 + 1_000 * MUTANTS

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_PARALLEL_PER_TOKEN: '100', MEDIA_SOURCE_TYPES: ADDABLE_MIMES.join() })
})
afterAll(() => service.close())

const SECRET = '<script>alert("payload")</script>'

const film = (size: string) => ['-f', 'lavfi', '-i', `testsrc2=s=${size}:r=10:d=0.6`]

async function sources() {
  // Each frame differs: libwebp joins equal ones.
  const frames = Buffer.alloc(64 * 48 * 4 * 4).map((_, at) => (at * 31 + 40 * Math.floor(at / 12_288)) % 251)
  const tall = sharp(frames, { raw: { width: 64, height: 192, channels: 4, pageHeight: 48 } } as SharpOptions)
  const still = await sharp(frames.subarray(0, 64 * 48 * 4), { raw: { width: 64, height: 48, channels: 4 } })
    .png({ palette: false })
    .toBuffer()
  const tiny = await clip('tiny.mp4')
  const made = {
    mov: clipOf('hostile.mov', ['-i', tiny, '-c', 'copy']),
    mkv: clipOf('hostile.mkv', ['-i', tiny, '-c', 'copy']),
    '3gp': clipOf('hostile.3gp', ['-f', 'lavfi', '-i', 'testsrc2=s=176x144:r=10:d=0.6', '-c:v', 'h263']),
    avif: sequence(film('64x48'), 'hostile-sequence'),
  }
  const read = Object.entries(made).map(async ([name, path]) => [name, await readFile(await path)] as const)
  return {
    ...(Object.fromEntries(await Promise.all(read)) as Record<keyof typeof made, Buffer>),
    webp: await tall.webp({ lossless: true, delay: [100, 100, 100, 100] }).toBuffer(),
    apng: apngOf([still, still, still], { delay: [100, 100, 100], plays: 0 }),
  }
}

/** A chunk of a PNG, with its sum. */
function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const words = Buffer.alloc(8)
  words.writeUInt32BE(data.length)
  words.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([words.subarray(0, 4), body, words.subarray(4)])
}

/** Puts bytes before the first chunk of a type. */
function before(file: Buffer, type: string, added: Buffer): Buffer {
  const at = file.indexOf(type) - 4
  return Buffer.concat([file.subarray(0, at), added, file.subarray(at)])
}

/**
 * Writes numbers behind the nth place of a name; sums of PNG chunks are wrong then, which readers of ours do not mind.
 */
function patched(file: Buffer, name: string, distance: number, bytes: readonly number[], nth = 0): Buffer {
  const copy = Buffer.from(file)
  let at = copy.indexOf(name, 0, 'latin1')
  for (let n = 0; n < nth; n++) at = copy.indexOf(name, at + 1, 'latin1')
  if (at < 0) throw new Error(`no ${name} in the file`)
  copy.set(bytes, at + distance)
  return copy
}

const HUGE = [0x7f, 0xff, 0xff, 0xff]
const half = (file: Buffer) => file.subarray(0, file.length / 2)

test(
  'files of a hostile shape are refused by name, or become harmless files',
  async () => {
    const { mov, mkv, '3gp': telephone, avif, webp, apng } = await sources()
    const withFonts = async (count: number) =>
      readFile(
        await clipOf(`hostile-${count}-fonts.mkv`, [
          ...['-i', await clip('tiny.mp4'), '-c', 'copy'],
          ...Array.from({ length: count }).flatMap(() => ['-attach', import.meta.filename]),
          ...['-metadata:s:t', 'mimetype=application/x-truetype-font'],
        ]),
      )
    const frame = webp.subarray(webp.indexOf('ANMF'), webp.indexOf('ANMF', webp.indexOf('ANMF') + 1))
    const many = Buffer.concat([webp, ...Array(4_000).fill(frame)])
    many.writeUInt32LE(many.length - 8, 4)
    const bomb = Buffer.concat([Buffer.from('x\0\0', 'latin1'), deflateSync(Buffer.alloc(64 * 1024 ** 2))])
    const profile = Buffer.concat([Buffer.from(`${SECRET}\0\0`, 'latin1'), deflateSync(Buffer.alloc(1_000_000))])
    const files: [name: string, outcome: string, bytes: Buffer][] = [
      ['half a mov', 'corrupt_media', half(mov)],
      [
        'a mov of two billion samples',
        'corrupt_media',
        patched(patched(mov, 'stsz', 8, [0, 0, 0, 1]), 'stsz', 12, HUGE),
      ],
      [
        'a page as a mov',
        'corrupt_media',
        Buffer.concat([Buffer.from('\0\0\0\x14ftypqt  \0\0\0\0qt  '), Buffer.from(SECRET)]),
      ],
      ['a mov of boxes in boxes', 'corrupt_media', Buffer.concat([Buffer.from('\0\0\0\x08wide'), nested(5_000)])],
      [
        'a mov of a huge picture',
        'dimensions_exceeded',
        await readFile(await clipOf('hostile-huge.mov', ['-i', await clip('huge.mp4'), '-c', 'copy'])),
      ],
      ['half an mkv', 'corrupt_media', half(mkv)],
      ['an mkv that begins with a void of 2^56 bytes', 'corrupt_media', afterHeader(mkv, 'ec01fffffffffffffe')],
      [
        'an mkv of 20,000 nested masters',
        'no_video_stream',
        afterHeader(mkv, `1853806701ffffffffffffff${'1f43b67501ffffffffffffff'.repeat(20_000)}`),
      ],
      [
        'an mkv of a huge picture',
        'dimensions_exceeded',
        await readFile(await clipOf('hostile-huge.mkv', ['-i', await clip('huge.mp4'), '-c', 'copy'])),
      ],
      ['an mkv of nine fonts', 'accepted', await withFonts(9)],
      ['an mkv of forty fonts', 'unsupported_media_type', await withFonts(40)],
      ['half a 3gp', 'corrupt_media', half(telephone)],
      ['a 3gp of noise', 'corrupt_media', Buffer.concat([telephone.subarray(0, 28), Buffer.alloc(5_000, 0x41)])],
      ['half an avif', 'no_video_stream', half(avif)],
      ['an avif of no track', 'no_video_stream', patched(avif, 'trak', 0, [0x66, 0x72, 0x65, 0x65])],
      ['half a webp', 'corrupt_media', half(webp)],
      ['a webp of 16,777,216 a side', 'dimensions_exceeded', patched(webp, 'VP8X', 12, Array(6).fill(0xff))],
      ['a webp of 4,000 frames', 'too_many_frames', many],
      ['a webp whose frame is outside', 'corrupt_media', patched(webp, 'ANMF', 8, [0xff, 0xff, 0], 1)],
      ['a webp whose frame says another size', 'corrupt_media', patched(webp, 'ANMF', 14, [3, 0, 0], 1)],
      ['a webp whose frame is noise', 'corrupt_media', patched(webp, 'VP8L', 8, Array(20).fill(0x5a), 1)],
      ['a webp with a page at its end', 'accepted', Buffer.concat([webp, Buffer.from(SECRET)])],
      ['half an apng', 'accepted', half(apng)],
      ['an apng of two billion a side', 'dimensions_exceeded', patched(apng, 'IHDR', 4, [...HUGE, ...HUGE])],
      ['an apng that says it has two billion frames', 'accepted', withSums(patched(apng, 'acTL', 4, HUGE))],
      ['an apng whose frame is outside', 'corrupt_media', patched(apng, 'fcTL', 16, HUGE, 1)],
      ['an apng whose first frame is small', 'corrupt_media', patched(apng, 'fcTL', 8, [0, 0, 0, 1], 0)],
      [
        'an apng whose first picture is noise, which the next replaces',
        'accepted',
        withSums(patched(apng, 'IDAT', 4, Array(40).fill(0x5a))),
      ],
      [
        'an apng of 200,000 empty chunks',
        'corrupt_media',
        before(apng, 'IDAT', Buffer.concat(Array(200_000).fill(chunk('teXt', Buffer.alloc(0))))),
      ],
      ['an apng with a text of 64 MiB when unpacked', 'accepted', before(apng, 'IDAT', chunk('zTXt', bomb))],
      ['an apng with a profile that holds a page', 'accepted', before(apng, 'IDAT', chunk('iCCP', profile))],
      ['an apng that is a webp', 'unsupported_media_type', Buffer.concat([apng.subarray(0, 8), webp])],
      ['a webp that is an apng', 'corrupt_media', Buffer.concat([webp.subarray(0, 12), apng])],
    ]
    const outcomes: Record<string, string> = {}
    for (const [name, , bytes] of files) {
      const { status, body, text } = await service.upload(bytes)
      outcomes[name] = status === 201 ? 'accepted' : status < 500 ? body.error.code : `${status} ${text}`
      if (status !== 201) continue
      for (const url of Object.values<string>(body.success.files)) {
        const file = await service.get(url)
        expect([name, file.status, file.bytes.includes(SECRET)]).toEqual([name, 200, false])
      }
    }
    expect(outcomes).toEqual(Object.fromEntries(files.map(([name, outcome]) => [name, outcome])))
  },
  TIMEOUT_MS,
)

test(
  'mutants are refused, or become clips',
  async () => {
    const outcomes = new Map<string, string>()
    for (const { name, bytes } of mutantsOf(await sources(), 7, MUTANTS)) {
      const { status, body, text } = await service.upload(bytes)
      const isDecided = status === 201 || (status >= 400 && status < 500)
      outcomes.set(isDecided ? (body.error?.code ?? 'accepted') : `${name}: ${status} ${text}`, name)
    }
    const codes = ['accepted', 'corrupt_media', 'unsupported_media_type', 'no_video_stream', 'dimensions_exceeded']
    const others = ['duration_exceeded', 'too_many_frames', 'missing_file']
    expect([...outcomes.keys()].filter((outcome) => ![...codes, ...others].includes(outcome))).toEqual([])
    expect([...outcomes.keys()]).toEqual(expect.arrayContaining(['accepted', 'corrupt_media']))
  },
  TIMEOUT_MS,
)

/** Right sums for all chunks. */
function withSums(file: Buffer): Buffer {
  const parts: Buffer[] = [file.subarray(0, 8)]
  for (let at = 8; at < file.length; at += 12 + file.readUInt32BE(at)) {
    const length = file.readUInt32BE(at)
    parts.push(chunk(file.toString('latin1', at + 4, at + 8), file.subarray(at + 8, at + 8 + length)))
  }
  return Buffer.concat(parts)
}

/** The header of a Matroska file, and then other elements. */
const afterHeader = (mkv: Buffer, hex: string) =>
  Buffer.concat([mkv.subarray(0, mkv.indexOf(Buffer.from('18538067', 'hex'))), Buffer.from(hex, 'hex')])

function nested(levels: number): Buffer {
  const headers = Array.from({ length: levels }, (_, n) => {
    const size = Buffer.alloc(4)
    size.writeUInt32BE(8 * (levels - n))
    return [size, Buffer.from('moov')]
  })
  return Buffer.concat(headers.flat())
}
