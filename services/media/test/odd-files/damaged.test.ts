// Files that players show in part: they are taken as far as they go, and their metadata describe what the files show.
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clip, clipOf, written } from '../clips.ts'
import { inspect } from '../inspect.ts'
import { idIn, startTestService, type TestService } from '../service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

const moving = ['-f', 'lavfi', '-i', 'testsrc2=s=160x120:r=30:d=2.6']

/** Begins between two keyframes, of which the next is `seconds` later. */
const begunInside = async (name: string, start: number, sound: string[] = []) => {
  const x264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '30', '-pix_fmt', 'yuv420p', '-c:a', 'aac']
  const whole = await clipOf(`whole-${name}`, [...moving, ...sound, '-shortest', ...x264])
  return clipOf(name, ['-i', whole, '-ss', String(start), '-c', 'copy', '-copyinkf'])
}

/** VP8 keeps references that are never shown in packets of their own. */
const withHiddenFrames = async () => {
  const log = ['-passlogfile', await written('hidden-frames-log', '')]
  const vp8 = ['-c:v', 'libvpx', '-auto-alt-ref', '1', '-lag-in-frames', '16', '-b:v', '100k', '-cpu-used', '2']
  await clipOf('hidden-frames-first.webm', [...moving, ...vp8, ...log, '-pass', '1'])
  return clipOf('hidden-frames.webm', [...moving, ...vp8, ...log, '-pass', '2'])
}

const CLUSTER = Buffer.from('1f43b675', 'hex')

/** A film without cues, whose clusters have no sizes, cut within one of them. */
const cutWebm = async () => {
  const vp8 = ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-g', '15', '-cluster_time_limit', '500']
  const bytes = Buffer.from(await readFile(await clipOf('clusters.webm', [...moving, ...vp8])))
  const clusters = []
  for (let at = bytes.indexOf(CLUSTER); at >= 0; at = bytes.indexOf(CLUSTER, at + 4)) clusters.push(at)
  for (const at of clusters) bytes.set(unknownSize(bytes[at + 4] ?? 0), at + 4)
  return written('cut-clusters.webm', bytes.subarray(0, (clusters.at(-2) ?? 0) - 100))
}

/** Ones in as many bytes as the size in the first byte has (RFC 8794, 6.2). */
const unknownSize = (first: number): Buffer => {
  const length = Math.clz32(first) - 23
  return Buffer.concat([Buffer.of((1 << (9 - length)) - 1), Buffer.alloc(length - 1, 0xff)])
}

/** Its pictures are damaged between the third and the fourth tenth of its bytes. */
const damagedInside = async () => {
  const x264 = ['-c:v', 'libx264', '-preset', 'veryfast', '-g', '30', '-pix_fmt', 'yuv420p', '-movflags', '+faststart']
  const film = ['-f', 'lavfi', '-i', 'testsrc2=s=160x120:r=30:d=6']
  const bytes = Buffer.from(await readFile(await clipOf('undamaged.mp4', [...film, ...x264])))
  const from = bytes.indexOf('mdat')
  const at = (part: number) => from + Math.floor(part * (bytes.length - from))
  for (let n = at(0.3); n < at(0.4); n++) bytes[n] = (n * 7919) & 255
  return written('damaged-inside.mp4', bytes)
}

/** Four fragments of half a second, of which the last ends early, as does a recording that is cut off. */
const cutFragment = async (name: string, bFrames: number) => {
  const codecs = ['-c:v', 'libx264', '-preset', 'veryfast', '-bf', String(bFrames), '-g', '15', '-pix_fmt', 'yuv420p']
  const fragmented = ['-c:a', 'aac', '-movflags', '+frag_keyframe+empty_moov+default_base_moof']
  const whole = await clipOf(`whole-${name}`, [...moving, '-f', 'lavfi', '-i', 'sine=d=2.6', ...codecs, ...fragmented])
  const bytes = await readFile(whole)
  const fragments = []
  for (let at = bytes.indexOf('moof'); at >= 0; at = bytes.indexOf('moof', at + 1)) fragments.push(at)
  const [from = 0, to = 0] = fragments.slice(3)
  return written(name, bytes.subarray(0, Math.floor(from + (to - from) / 3)))
}

const cutMp4 = async () => {
  const bytes = await readFile(await clip('faststart.mp4'))
  return written('cut-faststart.mp4', bytes.subarray(0, Math.floor(0.75 * bytes.length)))
}

interface Expected {
  frames: number | [least: number, most: number]
  repaired: boolean
}

describe.each<[string, () => Promise<string>, Expected]>([
  ['an mp4 that begins between keyframes', () => begunInside('inside.mp4', 0.33), { frames: 48, repaired: true }],
  [
    'an mp4 with sound that begins long before its first keyframe',
    () => begunInside('far-inside.mp4', 0.1, ['-f', 'lavfi', '-i', 'sine']),
    { frames: 48, repaired: true },
  ],
  ['a webm with frames that are never shown', withHiddenFrames, { frames: 78, repaired: false }],
  ['a webm without cues that ends in a cluster of unknown size', cutWebm, { frames: [30, 70], repaired: true }],
  ['an mp4 that ends early', cutMp4, { frames: [25, 45], repaired: true }],
])('%s', (name, source, { frames, repaired }) => {
  test('has metadata that describe its files', async () => {
    const answer = await service.upload(await source())
    expect([answer.status, answer.body.error]).toEqual([201, undefined])
    const { body } = await service.get(`/media/${idIn(answer)}`, { token: service.token })
    const { meta, source: described } = body.success
    expect(described.repaired ?? false).toBe(repaired)
    const [least, most] = typeof frames === 'number' ? [frames, frames] : frames
    expect(Number(meta.frames)).toBeGreaterThanOrEqual(least)
    expect(Number(meta.frames)).toBeLessThanOrEqual(most)
    expect(answer.body.success.meta).toEqual(meta)
    for (const kind of ['mp4', 'webm'] as const) {
      const { bytes } = await service.get(`/f/${idIn(answer)}.${kind}`)
      const { streams, format } = await inspect(await written(`shown-${idIn(answer)}.${kind}`, bytes))
      expect([name, kind, streams[0]?.nb_read_frames]).toEqual([name, kind, meta.frames])
      expect(Number(format.start_time)).toBeLessThan(0.05)
      expect([kind, Number(format.duration)]).toEqual([kind, expect.closeTo(Number.parseFloat(meta.duration), 1)])
    }
  })
})

describe.each<[string, () => Promise<string>]>([
  ['a webm with frames that are never shown', withHiddenFrames],
  ['an mp4 that is damaged inside', damagedInside],
  ['an mp4 that ends in a fragment', () => cutFragment('cut-fragment.mp4', 0)],
  ['an mp4 with B-frames that ends in a fragment', () => cutFragment('cut-b-fragment.mp4', 3)],
  ['an mp4 that ends early', cutMp4],
])('%s', (name, source) => {
  test.each<{ edit: [string, string][] }>([
    { edit: [] },
    { edit: [['duration', '1.5']] },
    { edit: [['start', '0.5']] },
    {
      edit: [
        ['start', '0.4'],
        ['duration', '1.2'],
      ],
    },
    {
      edit: [
        ['duration', '1.5'],
        ['speed', '0.5'],
      ],
    },
  ])('counts the frames of its files with the edit $edit', async ({ edit }) => {
    const answer = await service.upload(await source(), edit)
    expect([answer.status, answer.body.error]).toEqual([201, undefined])
    const { meta } = answer.body.success
    const { bytes } = await service.get(`/f/${idIn(answer)}.mp4`)
    const { streams, format } = await inspect(await written(`part-shown-${idIn(answer)}.mp4`, bytes))
    expect([name, edit, streams[0]?.nb_read_frames]).toEqual([name, edit, meta.frames])
    expect(Number(format.duration)).toBeCloseTo(Number.parseFloat(meta.duration), 1)
  })
})

test('a part of an mp4 that begins between keyframes counts from the first frame that is shown', async () => {
  const answer = await service.upload(await begunInside('inside.mp4', 0.33), [['duration', '1']])
  expect(answer.body.success?.meta).toMatchObject({ frames: '30', duration: '1s' })
})

describe('a part of an mp4 whose first keyframe is seconds behind its beginning', () => {
  /** Ten seconds, of which the last six can be decoded. */
  const farInside = async () => {
    const x264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '41', '-pix_fmt', 'yuv420p']
    const whole = await clipOf('whole-seconds-inside.mp4', [
      '-f',
      'lavfi',
      '-i',
      'testsrc2=s=64x48:r=10:d=10.1',
      ...x264,
    ])
    return clipOf('seconds-inside.mp4', ['-i', whole, '-ss', '0.1', '-c', 'copy', '-copyinkf'])
  }

  test.each([
    ['2.9', '3.1s', 31],
    ['3.2', '2.8s', 28],
    ['5', '1s', 10],
  ])('from %s s lasts %s', async (start, duration, frames) => {
    const answer = await service.upload(await farInside(), [['start', start]])
    expect(answer.body.success?.meta).toMatchObject({ duration, frames: String(frames) })
    const { body } = await service.get(`/media/${idIn(answer)}`, { token: service.token })
    expect(body.success.source).toMatchObject({ repaired: true, duration: 6 })
    const { bytes } = await service.get(`/f/${idIn(answer)}.mp4`)
    const { streams } = await inspect(await written(`part-${idIn(answer)}.mp4`, bytes))
    expect(streams[0]?.nb_read_frames).toBe(String(frames))
  })

  test('is refused behind the end', async () => {
    const answer = await service.upload(await farInside(), [['start', '7']])
    expect(answer).toMatchObject({ status: 422, body: { error: { code: 'edit_out_of_range' } } })
  })
})
