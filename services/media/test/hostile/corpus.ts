import { readFile } from 'node:fs/promises'
import { deflateSync } from 'node:zlib'
import { clip } from '../clips.ts'
import { bomb, comment, control, gif, image, loop, screen, trailer } from '../gif-bytes.ts'

/** Text inside accepted files, outside the picture: no served file may contain it. */
export const PAYLOAD = '<script>alert("payload")</script>'

export interface HostileFile {
  name: string
  bytes: Buffer
  /** Its code, or `accepted`. */
  outcome: string
}

/** Files with a hostile shape; `playlists` has the files that refer to something outside. */
export async function hostileFiles(): Promise<HostileFile[]> {
  const [mp4, stretched, small] = await Promise.all([
    readFile(await clip('tiny.mp4')),
    readFile(await clip('sar.mp4')),
    readFile(await clip('tiny.gif')),
  ])
  const files: [name: string, outcome: string, bytes: Buffer][] = [
    // Pictures too large, by every way to say so.
    ['gif of 65535 x 65535', 'dimensions_exceeded', bomb(65_535, 65_535, 2)],
    ['gif with a frame far outside', 'dimensions_exceeded', gif(4, 4, [{ delay: 9, left: 60_000 }])],
    ['gif of 4096 x 4096 x 50,000', 'too_many_frames', bomb(4_096, 4_096, 50_000)],
    [
      'gif of 298 frames of 1 x 1 on 4095 x 4095',
      'too_many_frames',
      gif(4_095, 4_095, Array(298).fill({ delay: 10, width: 1, height: 1 })),
    ],
    ['gif of 1 x 1 x 50,000', 'too_many_frames', bomb(1, 1, 50_000)],
    ['gif of no width', 'corrupt_media', bomb(0, 10, 2)],
    ['mp4 of 4100 x 2200', 'dimensions_exceeded', await readFile(await clip('huge.mp4'))],
    ['webm of 4100 x 2200', 'dimensions_exceeded', await readFile(await clip('huge.webm'))],
    ['mp4 whose pixels are 2 billion wide', 'dimensions_exceeded', patched(stretched, 'pasp', 4, 2 ** 31 - 1)],
    ['mp4 whose pixels are 2 billion high', 'accepted', patched(stretched, 'pasp', 8, 2 ** 31 - 1)],
    ['mp4 whose index says 65535 x 65535', 'accepted', patched(mp4, 'avc1', 28, 0xffffffff)],
    ['mp4 turned by a matrix of zeros', 'accepted', zeroed(mp4, 'tkhd', 44, 36)],
    // Time and numbers without end.
    ['gif that lasts for hours', 'duration_exceeded', gif(2, 2, Array(9).fill({ delay: 65_535 }))],
    ['gif of 200,000 comments', 'corrupt_media', Buffer.concat([screen(2, 2), ...Array(200_000).fill(comment('x'))])],
    ['gif whose picture has no end', 'accepted', gifWithoutEnd()],
    ['webm of ten hours in 36 frames', 'duration_exceeded', await readFile(await clip('hours.webm'))],
    [
      'mp4 of two billion samples of a byte',
      'corrupt_media',
      patched(patched(mp4, 'stsz', 8, 1), 'stsz', 12, 2 ** 31 - 1),
    ],
    ['mp4 of four billion times', 'corrupt_media', patched(mp4, 'stts', 8, 0xffffffff)],
    ['mp4 of four billion edits', 'accepted', patched(mp4, 'elst', 8, 0xffffffff)],
    ['mp4 in 5,000 boxes', 'corrupt_media', Buffer.concat([ftyp, nested(5_000)])],
    [
      'mp4 whose box is 2^63 long',
      'no_video_stream',
      Buffer.concat([ftyp, Buffer.from('\0\0\0\x01moov\x7f\xff\xff\xff\xff\xff\xff\xff', 'latin1')]),
    ],
    ['mp4 of 2 GiB when unpacked', 'corrupt_media', Buffer.concat([ftyp, packedIndex()])],
    // Two things at once.
    ['gif with a page in a comment and after its end', 'accepted', gifWithPayload()],
    [
      'gif whose second frame stands for 5 s behind which something may show',
      'accepted',
      gif(64, 48, [
        { delay: 7, transparent: 0, width: 1, height: 1 },
        { delay: 500, width: 1, height: 1 },
      ]),
    ],
    ['gif and zip', 'accepted', Buffer.concat([small, Buffer.from('PK\x05\x06'), Buffer.alloc(18)])],
    ['mp4 with a page in a free box', 'accepted', Buffer.concat([mp4, box('free', Buffer.from(PAYLOAD))])],
    ['gif that is a script', 'corrupt_media', Buffer.from('GIF89a/*\0\0\0\0\0*/=1;alert(1)', 'latin1')],
    [
      'gif that is a jpeg',
      'corrupt_media',
      Buffer.concat([screen(8, 8), Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.alloc(90)]),
    ],
    ['pdf that is an mp4', 'unsupported_media_type', Buffer.concat([Buffer.from('%PDF-1.4\n'), mp4])],
    ['matroska that is no webm', 'unsupported_media_type', await readFile(await clip('plain.mkv'))],
  ]
  return files.map(([name, outcome, bytes]) => ({ name, outcome, bytes }))
}

/** Playlists and lists of files that lead to a file and an address, in every format ffmpeg follows. */
export function playlists(targets: string[]): { name: string; text: string }[] {
  return targets.flatMap((target) => [
    { name: `HLS of ${target}`, text: `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n${target}\n#EXT-X-ENDLIST\n` },
    {
      name: `HLS with a key of ${target}`,
      text: `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-KEY:METHOD=AES-128,URI="${target}"\n#EXT-X-MAP:URI="${target}"\n#EXTINF:2,\n${target}\n#EXT-X-ENDLIST\n`,
    },
    { name: `ffconcat of ${target}`, text: `ffconcat version 1.0\nfile '${target}'\n` },
    {
      name: `DASH of ${target}`,
      text: `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT2S"
        profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period><AdaptationSet contentType="video" mimeType="video/mp4">
        <Representation id="1" bandwidth="1"><BaseURL>${target}</BaseURL></Representation></AdaptationSet></Period></MPD>`,
    },
    {
      name: `SDP of ${target}`,
      text: `v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nu=${target}\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 9 RTP/AVP 96\na=rtpmap:96 H264/90000\n`,
    },
    { name: `SMIL of ${target}`, text: `<smil><body><video src="${target}"/></body></smil>` },
    {
      name: `SVG of ${target}`,
      text: `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9" height="9"><image xlink:href="${target}" width="9" height="9"/></svg>`,
    },
    { name: `the words concat:${target}`, text: `concat:${target}|${target}` },
  ])
}

const EBML_WEBM = Buffer.from(
  '1a45dfa39f4286810142f7810142f2810442f381084282847765626d42878104428581021853806701ffffffffffffff',
  'hex',
)

/** A playlist as it is, and behind the first bytes of each type that is accepted. */
export function disguises(text: string): { as: string; bytes: Buffer }[] {
  const bytes = Buffer.from(text)
  return [
    { as: 'as it is', bytes },
    { as: 'as gif', bytes: Buffer.concat([Buffer.from('GIF89a'), bytes]) },
    { as: 'as mp4', bytes: Buffer.concat([ftyp, bytes]) },
    { as: 'as webm', bytes: Buffer.concat([EBML_WEBM, bytes]) },
  ]
}

function box(name: string, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content)
  return Buffer.concat([word(8 + body.length), Buffer.from(name), body])
}

const ftyp = box('ftyp', Buffer.from('isom\0\0\x02\0isomiso2avc1mp41'))

function nested(levels: number): Buffer {
  const headers = Array.from({ length: levels }, (_, n) => [word(8 * (levels - n)), Buffer.from('moov')])
  return Buffer.concat(headers.flat())
}

/** QuickTime's compressed index: 4 MiB of nothing that say they are 2 GiB. */
const packedIndex = () =>
  box(
    'moov',
    box(
      'cmov',
      box('dcom', Buffer.from('zlib')),
      box('cmvd', word(2 ** 31 - 1), deflateSync(Buffer.alloc(4 * 1024 ** 2))),
    ),
  )

const gifWithoutEnd = () =>
  Buffer.concat([screen(2, 2), Buffer.from([0x2c, ...Array(9).fill(0), 2]), Buffer.alloc(3_000_000, 1)])

const gifWithPayload = () =>
  Buffer.concat([
    ...[screen(20, 20), loop(0), comment(PAYLOAD), control({ delay: 10 }), image({ width: 20, height: 20 })],
    ...[trailer, Buffer.from(PAYLOAD)],
  ])

/** Overwrites a word at a distance from a name. */
function patched(bytes: Buffer, name: string, distance: number, value: number): Buffer {
  const copy = Buffer.from(bytes)
  copy.writeUInt32BE(value, placeOf(bytes, name) + distance)
  return copy
}

function zeroed(bytes: Buffer, name: string, distance: number, length: number): Buffer {
  const from = placeOf(bytes, name) + distance
  return Buffer.from(bytes).fill(0, from, from + length)
}

function placeOf(bytes: Buffer, name: string): number {
  const found = bytes.indexOf(name)
  if (found < 0) throw new Error(`no ${name} in the clip`)
  return found
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
