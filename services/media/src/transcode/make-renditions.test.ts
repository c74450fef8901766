import { spawnSync } from 'node:child_process'
import { createHash, randomInt } from 'node:crypto'
import { copyFile, mkdtemp, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { thumbHashToApproximateAspectRatio, thumbHashToAverageRGBA } from 'thumbhash'
import { describe, expect, test } from 'vitest'
import { clip, embeddedTools, rotatedClip, tools, trimmedClip, written } from '../../test/clips.ts'
import { gif } from '../../test/gif-bytes.ts'
import { brightness, inspect } from '../../test/inspect.ts'
import { runFfprobe } from '../probe/ffprobe.ts'
import { defaultProbeLimits } from '../probe/limits.ts'
import type { MediaInfo, VideoInfo } from '../probe/media-info.ts'
import { probe } from '../probe/probe.ts'
import type { MediaTools } from './binaries.ts'
import { isDiskFull } from './disk-full.ts'
import { LARGEST_SIDE } from './hardening.ts'
import { makeRenditions, type TranscodeOptions } from './make-renditions.ts'
import { runConfined } from './run-confined.ts'

const workDirectory = () => mkdtemp(join(tmpdir(), 'renditions-'))

async function make(anyTools: MediaTools, path: string, options: Partial<TranscodeOptions> = {}) {
  const info = await probe(anyTools, path)
  return makeRenditions(anyTools, { path, info }, { workDirectory: await workDirectory(), threads: 2, ...options })
}

/** Checks what holds for every clip, whatever it was made of, and returns what is in the two videos. */
async function expectSound(made: Awaited<ReturnType<typeof make>>) {
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

const noSystem = tools.ffmpeg.origin === 'embedded'

describe.each([
  [noSystem ? 'no ffmpeg 5 or later on this machine' : `the system's ffmpeg ${tools.ffmpeg.version}`, tools, noSystem],
  ['the embedded ffmpeg of 2018', embeddedTools, false],
])('with %s', (_, anyTools, isMissing) => {
  describe.skipIf(isMissing)('makes gif, jpg, mp4 and webm', () => {
    test('of an mp4 with sound, and leaves its metadata behind', async () => {
      const made = await make(anyTools, await clip('sound.mp4'))
      expect(made).toMatchObject({ hasAudio: true, warnings: [], mp4: { width: 160, height: 120 } })
      const { mp4, webm, frames, seconds } = await expectSound(made)
      expect([frames, seconds]).toEqual(['50', 2])
      expect(mp4.streams[1]).toMatchObject({ codec_name: 'aac' })
      expect(webm.streams[1]).toMatchObject({ codec_name: 'opus' })
      expect(JSON.stringify([mp4, webm])).not.toContain('Secret')
      const { streams } = await inspect(made.gif.path)
      expect(streams).toMatchObject([{ codec_name: 'gif', width: 160, height: 120, nb_read_frames: '33' }])
    })

    test('of a recording without duration', async () => {
      const { frames, seconds } = await expectSound(await make(anyTools, await clip('piped.webm')))
      expect([frames, seconds]).toEqual(['50', 2])
    })

    test('of a clip that was cut after its only keyframe', async () => {
      const made = await make(anyTools, await trimmedClip())
      expect(made.warnings).toEqual([])
      expect(await expectSound(made)).toMatchObject({ seconds: 1.4, frames: '35' })
    })

    test('of a picture that was turned', async () => {
      const made = await make(anyTools, await rotatedClip())
      expect(made).toMatchObject({ mp4: { width: 120, height: 160 }, gif: { width: 120, height: 160 } })
      await expectSound(made)
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

    test('of a gif of one pixel and one frame: a second of it', async () => {
      const made = await make(anyTools, await written('pixel.gif', gif(1, 1, [{ delay: 500 }])))
      expect(made).toMatchObject({ gif: { width: 1, height: 1 }, mp4: { width: 2, height: 2 } })
      expect(await expectSound(made)).toMatchObject({ seconds: 1, frames: '10' })
    })

    test('of a gif as large as an operator may allow, which is kept as it is', async () => {
      const path = await written('wide.gif', gif(LARGEST_SIDE, 8, [{ delay: 10 }, { delay: 10, color: 1 }]))
      const info = await probe(anyTools, path, { limits: { ...defaultProbeLimits, side: LARGEST_SIDE } })
      const made = await makeRenditions(anyTools, { path, info }, { workDirectory: await workDirectory(), threads: 2 })
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

    test.each(['3-frames-in-3-ms.mp4', '50-frames-in-50-us.mp4', '1-frame-in-17-ms.mp4'] as const)(
      'of %s: its first frame, for a tenth of a second',
      async (name) => {
        const made = await make(anyTools, await clip(name))
        expect(made.warnings).toEqual([])
        expect(await expectSound(made)).toMatchObject({ seconds: 0.1, frames: '3' })
        expect((await inspect(made.gif.path)).streams).toMatchObject([{ nb_read_frames: '2' }])
      },
    )

    test('of high dynamic range: standard range that says so', async () => {
      const { mp4, webm } = await expectSound(await make(anyTools, await clip('hdr-bare.mp4')))
      const standard = { color_space: 'bt709', color_transfer: 'bt709' }
      expect([mp4.streams[0], webm.streams[0]]).toMatchObject([standard, standard])
    })
  })
})

describe('picture', () => {
  test.each([
    ['odd.mp4', 322, 120],
    ['large.mp4', 1920, 1080],
  ] as const)('%s becomes %i x %i', async (name, width, height) => {
    const made = await make(tools, await clip(name))
    expect(made).toMatchObject({ mp4: { width, height }, jpg: { width, height } })
    await expectSound(made)
  })

  test('uneven frame times are kept, 120 frames a second are not', async () => {
    expect(await expectSound(await make(tools, await clip('vfr.mp4')))).toMatchObject({ frames: '20', seconds: 1.76 })
    expect(await expectSound(await make(tools, await clip('fast.mp4')))).toMatchObject({ frames: '60', seconds: 1 })
  })

  test('a last frame that stays is held', async () => {
    const path = await clip('plain.mp4')
    const info = (await probe(tools, path)) as VideoInfo
    const longer = { ...info, durationSeconds: info.durationSeconds + 0.4, lastFrameSeconds: 0.44 }
    const made = makeRenditions(tools, { path, info: longer }, { workDirectory: await workDirectory(), threads: 1 })
    expect(await expectSound(await made)).toMatchObject({ frames: '60', seconds: 2.4 })
  })

  test('a gif whose frames leave the canvas is made anew, and is shown as often', async () => {
    const bytes = gif(8, 8, [{ delay: 10 }, { delay: 10, left: 4, color: 1 }], 3)
    const made = await make(tools, await written('over.gif', bytes))
    expect(await inspect(made.gif.path)).toMatchObject({ streams: [{ width: 8, height: 8 }] })
    expect((await readFile(made.gif.path)).equals(bytes)).toBe(false)
    expect(await probe(tools, made.gif.path)).toMatchObject({ loopCount: 3, frames: 2 })
    await expectSound(made)
  })

  test.each(['mostly-dark.mp4', 'late-mostly-dark.mp4'] as const)(
    'a poster of a clip that is black for long shows what comes after (%s)',
    async (name) => {
      const made = await make(tools, await clip(name))
      const means = (await sharp(made.jpg.path).stats()).channels.map(({ mean }) => mean / 255)
      expect(means[1]).toBeGreaterThan(0.25)
      // And so does what stands for it until it is there.
      const { r, g, b } = thumbHashToAverageRGBA(made.placeholder)
      for (const [n, value] of [r, g, b].entries()) expect(value).toBeCloseTo(means[n] as number, 1)
      expect(thumbHashToApproximateAspectRatio(made.placeholder)).toBeCloseTo(160 / 120, 0)
    },
  )
})

describe('sound', () => {
  test('silence is left out', async () => {
    const made = await make(tools, await clip('silence.mp4'))
    expect(made.hasAudio).toBe(false)
    expect((await inspect(made.mp4.path)).streams).toHaveLength(1)
  })

  test('ends with the picture', async () => {
    const made = await make(tools, await clip('long-sound.mp4'))
    expect(Number((await inspect(made.mp4.path)).format.duration)).toBeCloseTo(1, 1)
    expect(Number((await inspect(made.webm.path)).format.duration)).toBeCloseTo(1, 1)
  })
})

/** What follows is about our own steps: the embedded build starts in 2 ms, where a distribution's needs 100 of a core. */
test('progress rises to 1', async () => {
  const seen: number[] = []
  await make(embeddedTools, await clip('plain.mp4'), { onProgress: (fraction) => seen.push(fraction) })
  expect(seen.length).toBeGreaterThan(2)
  expect(seen.at(-1)).toBe(1)
  expect(seen).toEqual(seen.toSorted((a, b) => a - b))
})

test('the same file gives the same bytes', async () => {
  const [first, second] = [
    await make(embeddedTools, await clip('plain.gif')),
    await make(embeddedTools, await clip('plain.gif')),
  ]
  expect(first.mp4.sha256).toBe(second.mp4.sha256)
  expect(first.webm.sha256).toBe(second.webm.sha256)
})

describe('a damaged file', () => {
  test('whose second half cannot be decoded is corrupt, though ffmpeg is content', async () => {
    const bytes = Buffer.from(await readFile(await clip('faststart.mp4')))
    bytes.fill(0, bytes.length / 2)
    const path = await written('half-zero.mp4', bytes)
    await expect(make(embeddedTools, path)).rejects.toMatchObject({ code: 'corrupt_media' })
  })

  test('that decodes to nothing is corrupt', async () => {
    const bytes = Buffer.from(await readFile(await clip('faststart.mp4')))
    bytes.fill(0, bytes.indexOf('mdat') + 4)
    const path = await written('all-zero.mp4', bytes)
    const info = await probe(embeddedTools, await clip('faststart.mp4'))
    const made = makeRenditions(embeddedTools, { path, info }, { workDirectory: await workDirectory(), threads: 1 })
    await expect(made).rejects.toMatchObject({ code: 'corrupt_media' })
  })
})

describe('when ffmpeg fails', () => {
  /** An ffmpeg that misbehaves for some commands and is the real one for the others. */
  async function faulty(when: string, then: string): Promise<MediaTools> {
    const path = join(await workDirectory(), 'ffmpeg')
    const body = `#!/bin/sh\ncase "$*" in *${when}*) ${then};; esac\nexec ${embeddedTools.ffmpeg.path} "$@"\n`
    await writeFile(path, body, { mode: 0o755 })
    return { ...embeddedTools, ffmpeg: { ...embeddedTools.ffmpeg, path } }
  }

  test('a crash of the usual way is followed by the plain way', async () => {
    const made = await make(
      await faulty('paletteuse*out.mp4*progress', 'case "$*" in *hqdn3d*) kill -SEGV $$;; esac'),
      await clip('sound.mp4'),
    )
    expect(made).toMatchObject({ hasAudio: true, warnings: ['ffmpeg ended with SIGSEGV'] })
    await expectSound(made)
  })

  test('a gif over its budget is made again, smaller and not faster', async () => {
    const { path } = embeddedTools.ffmpeg
    const large = await faulty('out.webm*out.gif', `${path} "$@" && head -c 9000000 /dev/zero >>out.gif; exit $?`)
    const made = await make(large, await clip('just-30.mp4'))
    expect(made.gif.bytes).toBeLessThan(8_000_000)
    // Ten a second, as of every clip of more than 20 s.
    expect((await inspect(made.gif.path)).streams).toMatchObject([{ nb_read_frames: '300' }])
  })

  test('a success that wrote nothing is no success', async () => {
    const made = await make(await faulty('hqdn3d', 'exit 0'), await clip('plain.mp4'))
    expect(made.warnings).toEqual(['the overview failed'])
    await expectSound(made)
  })

  test.each([
    ['that wrote nothing', 'exit 0'],
    ['that wrote what cannot be read', `for f in gif mp4 webm; do echo x >out.$f; done`],
  ])('a success %s in the plain way too is the fault of the file', async (_, then) => {
    const made = make(
      await faulty('out.mp4', `${then}; ${embeddedTools.ffmpeg.path} "$@"; ${then}; exit 0`),
      await clip('plain.mp4'),
    )
    await expect(made).rejects.toMatchObject({ code: 'corrupt_media' })
  })

  test('a success that says the disk is full is not the fault of the file', async () => {
    const full = make(await faulty('', 'echo No space left on device >&2; exit 0'), await clip('plain.mp4'))
    await expect(full).rejects.toSatisfy(isDiskFull)
  })

  test('twice for the file: corrupt; twice by a crash too; killed or on a full disk: not the fault of the file', async () => {
    const path = await clip('plain.mp4')
    await expect(make(await faulty('', 'exit 1'), path)).rejects.toMatchObject({ code: 'corrupt_media' })
    const crash = make(await faulty('', 'kill -SEGV $$'), path)
    await expect(crash).rejects.toMatchObject({ code: 'corrupt_media' })
    const killed = make(await faulty('', 'exit 137'), path)
    await expect(killed).rejects.toSatisfy((error) => !('code' in error) && /SIGKILL/.test(error.message))
    const full = make(await faulty('', 'echo No space left on device >&2; exit 1'), path)
    await expect(full).rejects.toSatisfy((error) => !('code' in error) && isDiskFull(error))
  })
})

test('an abort ends ffmpeg and leaves no process behind', async () => {
  const path = join(await workDirectory(), 'ffmpeg')
  // A command line that no other process has, of another run neither.
  const sleep = `sleep 606.${randomInt(1e9)}`
  await writeFile(path, `#!/bin/sh\nexec ${sleep}\n`, { mode: 0o755 })
  const isRunning = () => spawnSync('pgrep', ['-xf', sleep]).status === 0
  const abort = new AbortController()
  const slow = { ...tools, ffmpeg: { ...tools.ffmpeg, path } }
  const made = make(slow, await clip('plain.mp4'), { signal: abort.signal })
  await expect.poll(isRunning).toBe(true)
  abort.abort(new Error('deleted'))
  await expect(made).rejects.toThrow('deleted')
  expect(isRunning()).toBe(false)
})

/**
 * Each of these makes a plain `ffmpeg -i` read the file beside it (contract/media.md 4.7). A read shows in the access
 * time of the canary, unless the disk does not keep it. Without a sandbox: what is mounted read-only in one keeps no
 * access times, and ffmpeg's own options have to hold alone.
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
      const made = () => makeRenditions(anyTools, input, { workDirectory: directory, threads: 1 })
      const probed = () => runFfprobe(anyTools, input.path, { demuxer: 'mov', packets: true })
      expect(await wasRead(made)).toBe(false)
      expect(await wasRead(probed)).toBe(false)
      await expect(made()).rejects.toMatchObject({ code: 'corrupt_media' })
      await expect(probed()).rejects.toMatchObject({ code: 'corrupt_media' })
    }
  })

  test('and the canary would have shown it', async ({ skip }) => {
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
