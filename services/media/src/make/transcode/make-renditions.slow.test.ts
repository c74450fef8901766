import { copyFile, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { clip, clipOf, embeddedTools, tools } from '../../../test/clips.ts'
import {
  copyTests,
  furtherRenditionTests,
  make,
  renditionTests,
  usualTests,
  workDirectory,
} from '../../../test/rendition-tests.ts'
import type { MediaInfo, VideoInfo } from '../../db/media-info.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { runConfined } from '../../ffmpeg/run-confined.ts'
import { runFfprobe } from '../probe/ffprobe.ts'
import { probe } from '../probe/probe.ts'
import { makeRenditions } from './make-renditions.ts'

describe(`with ffmpeg ${tools.ffmpeg.version} makes gif, jpg, mp4 and webm`, { tags: 'ffmpeg' }, () => {
  usualTests(tools)
  renditionTests(tools)
  copyTests(tools)
  furtherRenditionTests(tools)
})

test('a gif of noise, which no tolerance brings under 8 MB, is made again smaller by our writer', async () => {
  const noise = [
    '-f',
    'lavfi',
    '-i',
    'testsrc2=s=480x480:r=10:d=5,noise=alls=90:allf=t',
    '-c:v',
    'libx264',
    '-crf',
    '18',
  ]
  const { gif, warnings } = await make(tools, await clipOf('noise-480-10.mp4', [...noise, '-preset', 'ultrafast']))
  expect(warnings).toEqual([])
  expect(gif).toMatchObject({ width: 400, height: 400 })
  expect((await sharp(gif.path, { animated: true }).metadata()).delay?.[0]).toBe(100)
})

/**
 * Each of these makes a plain `ffmpeg -i` read the file beside it (contract/media.md 4.7). A read shows in the access
 * time of the canary, unless the disk does not keep it. Runs without a sandbox, whose read-only mounts keep no access
 * times, so that ffmpeg's own options have to hold alone.
 */
describe('a playlist that got past the sniffing never leads to another file', () => {
  const withoutSandbox = (anyTools: MediaTools): MediaTools => ({
    ...anyTools,
    limiters: { ...anyTools.limiters, sandbox: null },
  })
  const mpd = `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT2S"
    profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period><AdaptationSet contentType="video" mimeType="video/mp4">
    <Representation id="1" bandwidth="1"><BaseURL>canary.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>`

  test.each([
    ['HLS', '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\ncanary.mp4\n#EXT-X-ENDLIST\n'],
    ['ffconcat', 'ffconcat version 1.0\nfile canary.mp4\n'],
    ['DASH', mpd],
  ])('%s', async (_, playlist) => {
    const directory = await workDirectory()
    const canary = join(directory, 'canary.mp4')
    await copyFile(await clip('faststart.mp4'), canary)
    await writeFile(join(directory, 'in.bin'), playlist)
    const info = { ...((await probe(tools, canary)) as VideoInfo), frames: 50 } satisfies MediaInfo
    const wasRead = async (work: () => Promise<unknown>) => {
      await utimes(canary, new Date('2020-01-01'), new Date('2021-01-01'))
      await work().catch(() => undefined)
      return (await stat(canary)).atime.getFullYear() !== 2020
    }

    for (const anyTools of [tools, embeddedTools].map(withoutSandbox)) {
      const input = { path: join(directory, 'in.bin'), info }
      const made = () =>
        makeRenditions(anyTools, input, { workDirectory: directory, threads: 1, gifEncoder: 'own', copy: 'auto' })
      const probed = () => runFfprobe(anyTools, input.path, { demuxer: 'mov', packets: true })
      expect(await wasRead(made)).toBe(false)
      expect(await wasRead(probed)).toBe(false)
      await expect(made()).rejects.toMatchObject({ code: 'corrupt_media' })
      await expect(probed()).rejects.toMatchObject({ code: 'corrupt_media' })
    }
  })

  test('and the canary would have revealed a read', async ({ skip }) => {
    const directory = await workDirectory()
    const canary = join(directory, 'canary.mp4')
    await copyFile(await clip('faststart.mp4'), canary)
    await writeFile(
      join(directory, 'in.bin'),
      '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\ncanary.mp4\n#EXT-X-ENDLIST\n',
    )
    await utimes(canary, new Date('2020-01-01'), new Date('2021-01-01'))
    await readFile(canary)
    if ((await stat(canary)).atime.getFullYear() === 2020) skip('this disk keeps no access times')
    await utimes(canary, new Date('2020-01-01'), new Date('2021-01-01'))
    const limits = { wallSeconds: 10, cpuSeconds: 10, memoryBytes: 2 * 1024 ** 3, fileBytes: 0 }
    const unprotected = ['-v', 'error', '-i', 'in.bin', '-f', 'null', '-']
    const { limiters } = withoutSandbox(tools)
    await runConfined(embeddedTools.ffmpeg.path, unprotected, { limits, limiters, cwd: directory })
    expect((await stat(canary)).atime.getFullYear()).not.toBe(2020)
  })
})
