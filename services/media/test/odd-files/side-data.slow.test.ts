// Data beside the picture of a source, in the files and variants that are made of it. Builds of ffmpeg keep different
// kinds.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { describe, expect, onTestFinished, test } from 'vitest'
import { signVariant } from '../../src/flows/files/variants/signature.ts'
import { clip, clipOf, embeddedTools, tools, written } from '../clips.ts'
import { idIn, startTestService, type TestService } from '../service.ts'
import { colorProfile, mastering, spherical, stereo, withCaptions, withSampleBoxes } from './side-data.ts'

const run = promisify(execFile)

const withBoxes = async (name: string, source: Promise<string>, boxes: readonly Buffer[]) =>
  written(name, withSampleBoxes(await readFile(await source), boxes))

/** Kinds of data of the streams and of their frames in a file, by the newest ffprobe of the machine. */
async function sideDataOf(path: string): Promise<string[]> {
  const entries = ['-show_entries', 'stream_side_data=side_data_type:frame_side_data=side_data_type', '-of', 'json']
  const { stdout } = await run(tools.ffprobe.path, ['-v', 'error', '-select_streams', 'v', ...entries, path])
  const { streams, frames } = JSON.parse(stdout) as Record<'streams' | 'frames', { side_data_list?: Data[] }[]>
  const kinds = [...streams, ...frames].flatMap(({ side_data_list: data = [] }) =>
    data.map((each) => each.side_data_type),
  )
  return [...new Set(kinds)].filter((kind) => !OWN.includes(kind))
}
interface Data {
  side_data_type: string
}
/** The version of our own encoder, and sizes of its buffer. */
const OWN = ['H.26[45] User Data Unregistered SEI message', 'CPB properties']

const graded = () => withBoxes('graded.mp4', clip('hdr.mp4'), mastering)
const vp9 = ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8']

const sources: [string, () => Promise<string>][] = [
  ['HDR10 with its brightness', graded],
  [
    'HDR10 with its brightness in a webm',
    async () => clipOf('graded.webm', ['-i', await graded(), ...vp9, '-pix_fmt', 'yuv420p10le', '-profile:v', '2']),
  ],
  ['a film of two views', () => withBoxes('stereo.mp4', clip('page.mp4'), stereo)],
  [
    'a film of two views in a webm',
    async () =>
      clipOf('stereo-2.webm', ['-i', await clip('page.mp4'), ...vp9, '-metadata:s:v', 'stereo_mode=left_right']),
  ],
  ['a film all around', () => withBoxes('spherical.mp4', clip('page.mp4'), spherical)],
  [
    'a film with a profile of its colors',
    async () => {
      const still = sharp({ create: { width: 1, height: 1, channels: 3, background: 'red' } })
      const { icc = Buffer.alloc(0) } = await sharp(await still.withIccProfile('p3').png().toBuffer()).metadata()
      return withBoxes('profile.mp4', clip('page.mp4'), colorProfile(icc))
    },
  ],
  ['a copied film with closed captions', captioned],
  ['an encoded film with closed captions', captioned],
]

/** A film that is as ours, so that its streams are copied. */
async function captioned(): Promise<string> {
  const film = ['-f', 'lavfi', '-i', 'testsrc2=s=160x120:r=25:d=1', '-pix_fmt', 'yuv420p']
  const stream = await clipOf('uncaptioned-2.h264', [...film, '-c:v', 'libx264', '-bf', '0', '-crf', '40', '-g', '25'])
  const path = await written('captioned.h264', withCaptions(await readFile(stream)))
  return clipOf('captioned-3.mp4', ['-r', '25', '-i', path, '-c', 'copy'])
}

const KEY = 'a-key-of-variants'
const signed = (options: string, file: string) => `/v/${signVariant(KEY, `/${options}/${file}`)}/${options}/${file}`

/** The file once it is made; undefined where the ffmpeg does not make it. */
async function fileAt(service: TestService, path: string): Promise<Uint8Array | undefined> {
  const found = async () => service.get(path)
  await expect.poll(async () => (await found()).status, { interval: 100 }).not.toBe(202)
  const { status, bytes } = await found()
  expect([200, 404, 501]).toContain(status)
  return status === 200 ? bytes : undefined
}

describe.for([
  ['of the machine', tools],
  ['of 2018', embeddedTools],
] as const)('with the ffmpeg %s', ([, anyTools]) => {
  test.for(sources)('the files and variants of %s have none', async ([name, source]) => {
    const path = await source()
    // The build of 2018 that writes the webm keeps no brightness.
    if (name !== 'HDR10 with its brightness in a webm') expect(await sideDataOf(path)).not.toEqual([])
    const copy = { MEDIA_COPY: name.startsWith('an encoded') ? 'never' : 'auto' }
    const settings = { ...copy, MEDIA_VARIANT_KEY: KEY, MEDIA_EXTRAS: 'true' }
    const service = await startTestService(settings, { tools: anyTools })
    onTestFinished(() => service.close())
    const answer = await service.upload(path)
    expect(answer.status).toBe(201)
    const id = idIn(answer)
    const rows = async (sql: string) => (await service.deps.pool.query(sql)).rows
    const extras = async () => (await rows('select extras from sources'))[0].extras
    await expect.poll(extras, { interval: 100 }).toContain('webp')
    const isLarge = !name.startsWith('HDR10')
    const hasAv1 = isLarge && Boolean(anyTools.ffmpeg.av1Encoder)
    if (name.includes('views') && !name.includes('webm')) expect((await extras()).includes('av1')).toBe(hasAv1)
    if (name.includes('captions')) {
      expect(await rows(`select copied from renditions where kind = 'mp4'`)).toEqual([
        { copied: name.startsWith('a copied') },
      ])
    }
    const videos = ['mp4', 'webm', 'av1.mp4'].map((kind) => `/f/${id}.${kind}`)
    for (const address of [...videos, signed('w:32', `${id}.mp4`)]) {
      const bytes = await fileAt(service, address)
      if (!bytes) expect(address).toBe(`/f/${id}.av1.mp4`)
      else expect([address, await sideDataOf(await written(`bare-${id}`, bytes))]).toEqual([address, []])
    }
    const pictures = [
      `/f/${id}.jpg`,
      `/f/${id}.webp`,
      signed('w:32', `${id}.webp`),
      signed('w:32,fmt:anim.webp', `${id}.webp`),
    ]
    for (const address of pictures) {
      const bytes = await fileAt(service, address)
      const { icc, exif, xmp } = bytes ? await sharp(bytes).metadata() : {}
      expect([address, icc, exif, xmp]).toEqual([address, undefined, undefined, undefined])
    }
  })
})
