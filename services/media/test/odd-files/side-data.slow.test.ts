// Data beside the picture of a source, in the files that are made of it. Builds of ffmpeg keep different kinds.
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import sharp from 'sharp'
import { describe, expect, onTestFinished, test } from 'vitest'
import { clip, clipOf, embeddedTools, tools, written } from '../clips.ts'
import { idIn, startTestService } from '../service.ts'
import { colorProfile, mastering, spherical, stereo, withSampleBoxes } from './side-data.ts'

const run = promisify(execFile)

const withBoxes = async (name: string, source: Promise<string>, boxes: readonly Buffer[]) =>
  written(name, withSampleBoxes(await readFile(await source), boxes))

/** Kinds of data of the streams in a file, by the newest ffprobe of the machine. */
async function sideDataOf(path: string): Promise<string[]> {
  const entries = ['-show_entries', 'stream_side_data=side_data_type', '-of', 'json']
  const { streams } = JSON.parse((await run(tools.ffprobe.path, ['-v', 'error', ...entries, path])).stdout) as {
    streams: { side_data_list?: { side_data_type: string }[] }[]
  }
  return streams.flatMap(({ side_data_list = [] }) => side_data_list.map(({ side_data_type }) => side_data_type))
}

const graded = () => withBoxes('graded.mp4', clip('hdr.mp4'), mastering)
const vp9 = ['-c:v', 'libvpx-vp9', '-deadline', 'realtime', '-cpu-used', '8']

const sources: [string, () => Promise<string>][] = [
  ['HDR10 with its brightness', graded],
  [
    'HDR10 with its brightness in a webm',
    async () => clipOf('graded.webm', ['-i', await graded(), ...vp9, '-pix_fmt', 'yuv420p10le', '-profile:v', '2']),
  ],
  ['a film of two views', () => withBoxes('stereo.mp4', clip('plain.mp4'), stereo)],
  [
    'a film of two views in a webm',
    async () =>
      clipOf('stereo.webm', ['-i', await clip('small.mp4'), ...vp9, '-metadata:s:v', 'stereo_mode=left_right']),
  ],
  ['a film all around', () => withBoxes('spherical.mp4', clip('plain.mp4'), spherical)],
  [
    'a film with a profile of its colors',
    async () => {
      const still = sharp({ create: { width: 1, height: 1, channels: 3, background: 'red' } })
      const { icc = Buffer.alloc(0) } = await sharp(await still.withIccProfile('p3').png().toBuffer()).metadata()
      return withBoxes('profile.mp4', clip('plain.mp4'), colorProfile(icc))
    },
  ],
]

describe.for([
  ['of the machine', tools],
  ['of 2018', embeddedTools],
] as const)('with the ffmpeg %s', ([, anyTools]) => {
  test.for(sources)('the files of %s have none', async ([name, source]) => {
    const path = await source()
    // The build of 2018 that writes the webm keeps no brightness.
    if (name !== 'HDR10 with its brightness in a webm') expect(await sideDataOf(path)).not.toEqual([])
    const service = await startTestService({}, { tools: anyTools })
    onTestFinished(() => service.close())
    const answer = await service.upload(path)
    expect(answer.status).toBe(201)
    for (const kind of ['mp4', 'webm']) {
      const { bytes } = await service.get(`/f/${idIn(answer)}.${kind}`)
      expect([kind, await sideDataOf(await written(`bare-${idIn(answer)}.${kind}`, bytes))]).toEqual([kind, []])
    }
  })
})
