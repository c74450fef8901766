import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { clip, clipOf, lyingClip, rotatedClip, tools, trimmedClip, unboxedTools, written } from '../../../test/clips.ts'
import { bomb, gif } from '../../../test/gif-bytes.ts'
import { isAnimation, type VideoInfo } from '../../db/media-info.ts'
import { probe } from './probe.ts'
import { defaultProbeLimits } from './source-limits.ts'
import { readVideoInfo } from './video-info.ts'

describe.each([
  ['the ffprobe of this machine', tools],
  ['the embedded ffprobe', unboxedTools],
])('with %s', (_, anyTools) => {
  test('an mp4 with sound is measured', async () => {
    expect(await probe(anyTools, await clip('sound.mp4'))).toMatchObject({
      ...{ type: 'mp4', codec: 'h264', width: 80, height: 60, durationSeconds: 2, frames: 50, fps: 25, baseFps: 25 },
      ...{ hasAudio: true, videoStream: 0, audioStream: 1, startSeconds: 0, hdr: null, alpha: false },
    })
  })

  test('a webm whose header has no duration is measured by its packets', async () => {
    const info = await probe(anyTools, await clip('piped.webm'))
    expect(info).toMatchObject({ type: 'webm', codec: 'vp8', frames: 50, hasAudio: true })
    expect(info.durationSeconds).toBeCloseTo(2, 1)
  })

  test('size is as displayed: pixel aspect ratio and rotation applied', async () => {
    expect(await probe(anyTools, await clip('sar.mp4'))).toMatchObject({ width: 160, height: 60 })
    expect(await probe(anyTools, await rotatedClip())).toMatchObject({ width: 60, height: 80 })
  })

  test('alpha and high dynamic range are recognised', async () => {
    expect(await probe(anyTools, await clip('alpha.webm'))).toMatchObject({ alpha: true, hdr: null })
    expect(await probe(anyTools, await clip('hdr.mp4'))).toMatchObject({ alpha: false, hdr: 'pq', codec: 'hevc' })
  })
})

test('frames of variable length are counted, and the longest is known', async () => {
  const info = await probe(unboxedTools, await clip('vfr.mp4'))
  expect(info).toMatchObject({ frames: 20, baseFps: 25, durationSeconds: 1.76, keyframes: 2 })
  expect(!isAnimation(info) && info.longestFrameSeconds).toBeCloseTo(0.28, 3)
})

test('a clip of a few milliseconds is a still of a tenth of a second', async () => {
  const still = { durationSeconds: 0.1, isStill: true }
  expect(await probe(unboxedTools, await clip('50-frames-in-50-us.mp4'))).toMatchObject({ ...still, frames: 50 })
  expect(await probe(unboxedTools, await clip('plain.mp4'))).toMatchObject({ durationSeconds: 2, isStill: false })
})

test('frames that an edit list hides do not count', async () => {
  expect(await probe(unboxedTools, await trimmedClip())).toMatchObject({ frames: 35, durationSeconds: 1.4 })
})

test('sound that outlasts the picture does not make the clip longer', async () => {
  expect(await probe(unboxedTools, await clip('long-sound.mp4'))).toMatchObject({ durationSeconds: 1, hasAudio: true })
})

describe('of a gif', () => {
  const probeGif = async (name: string, bytes: Buffer) => probe(unboxedTools, await written(name, bytes))

  test('the exact duration is the sum of the delays, the tick what they have in common', async () => {
    const frames = [{ delay: 5 }, { delay: 30 }, { delay: 0 }, { delay: 100 }]
    expect(await probeGif('variable.gif', gif(20, 10, frames))).toMatchObject({
      ...{ type: 'gif', durationSeconds: 1.45, frames: 4, tickCentiseconds: 5 },
      ...{ hasAudio: false, rewritable: true, loopCount: 0 },
    })
  })

  test.each([
    [[4, 8, 12], 4],
    [[7, 7], 7],
    [[300, 600], 10],
    [[3, 4], 2],
    [[11, 22], 2],
  ])('delays of %j fall on a tick of %i', async (delays, tickCentiseconds) => {
    const bytes = gif(
      2,
      2,
      delays.map((delay) => ({ delay })),
    )
    expect(await probeGif(`ticks-${delays.join('-')}.gif`, bytes)).toMatchObject({ tickCentiseconds })
  })

  test('one frame is a still of one second, however long it claims', async () => {
    const info = await probeGif('still.gif', gif(1, 1, [{ delay: 60_000 }]))
    expect(info).toMatchObject({ frames: 1, durationSeconds: 1 })
  })

  test('frames beyond the canvas are not copied', async () => {
    const bytes = gif(4, 4, [{ delay: 5 }, { delay: 5, left: 2, width: 3 }])
    expect(await probeGif('beyond.gif', bytes)).toMatchObject({ rewritable: false })
  })

  test('30.05 s pass and 30.06 s do not', async () => {
    const frames = (last: number) => [{ delay: 3000 }, { delay: last }]
    expect(await probeGif('g3005.gif', gif(1, 1, frames(5)))).toMatchObject({ durationSeconds: 30.05 })
    await expect(probeGif('g3006.gif', gif(1, 1, frames(6)))).rejects.toMatchObject({
      code: 'duration_exceeded',
      details: { limit: 30, actual: 30.06 },
    })
  })
})

describe('refuses', () => {
  test('31 s, and lets 30.04 s pass', async () => {
    await expect(probe(tools, await clip('long.mp4'))).rejects.toMatchObject({
      ...{ code: 'duration_exceeded', status: 422, details: { limit: 30, actual: 31 } },
    })
    expect(await probe(tools, await clip('just-30.mp4'))).toMatchObject({ durationSeconds: 30.04 })
  })

  test.each([
    ['audio-only.mp4', 'no_video_stream'],
    ['mjpeg.mp4', 'unsupported_media_type'],
    ['plain.mov', 'unsupported_media_type'],
  ] as const)('%s as %s', async (name, code) => {
    await expect(probe(unboxedTools, await clip(name))).rejects.toMatchObject({ code })
  })

  test('a file that stops within a second, or before its index', async () => {
    const indexLast = await readFile(await clip('plain.mp4'))
    const indexFirst = await readFile(await clip('faststart.mp4'))
    const [last, first] = [indexLast.subarray(0, indexLast.length / 2), indexFirst.subarray(0, indexFirst.length / 3)]
    for (const [name, bytes] of Object.entries({ last, first })) {
      const path = await written(`cut-${name}.mp4`, bytes)
      await expect(probe(unboxedTools, path), name).rejects.toMatchObject({ code: 'corrupt_media' })
    }
  })

  test('31 s whose headers say 3 s; and believes no header that says more', async () => {
    await expect(probe(tools, await lyingClip('long.mp4', 0.1))).rejects.toMatchObject({ code: 'duration_exceeded' })
    expect(await probe(tools, await lyingClip('plain.mp4', 60))).toMatchObject({ durationSeconds: 2 })
  })

  test('a file that only begins like an mp4', async () => {
    const path = await written('fake.mp4', Buffer.from('\0\0\0\x1cftypisom\0\0\x02\0isomiso2mp41<html>', 'latin1'))
    await expect(probe(unboxedTools, path)).rejects.toMatchObject({ code: 'corrupt_media' })
  })

  test.each([
    ['dimensions_exceeded', { side: 79 }],
    ['too_many_frames', { frames: 49 }],
    ['too_many_frames', { pixelFrames: 80 * 60 * 50 - 1 }],
    ['unsupported_media_type', { streams: 1 }],
    ['duration_exceeded', { durationSeconds: 1.9 }],
  ])('as %s what is just over %j', async (code, limit) => {
    const limits = { ...defaultProbeLimits, ...limit }
    await expect(probe(unboxedTools, await clip('sound.mp4'), { limits })).rejects.toMatchObject({ code })
  })

  test('a stretched picture by its displayed size', async () => {
    const limits = { ...defaultProbeLimits, side: 150 }
    await expect(probe(unboxedTools, await clip('sar.mp4'), { limits })).rejects.toMatchObject({
      code: 'dimensions_exceeded',
    })
  })

  test('GIF bombs', async () => {
    for (const [code, bytes] of [
      ['dimensions_exceeded', bomb(16_000, 16_000, 3)],
      ['too_many_frames', bomb(2000, 2000, 50_000)],
    ] as const) {
      const path = await written(`bomb-${code}.gif`, bytes)
      await expect(probe(unboxedTools, path)).rejects.toMatchObject({ code })
    }
  })
})

test('a long file that ends early counts by its readable part, and as the source of a part by its header', async () => {
  const x264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-movflags', '+faststart']
  const whole = await readFile(
    await clipOf('index-first-minute.mp4', ['-f', 'lavfi', '-i', 'testsrc2=s=64x48:r=5:d=60', ...x264]),
  )
  const path = await written('cut-index-first-minute.mp4', whole.subarray(0, whole.length / 4))
  const limits = { ...defaultProbeLimits, sourceSeconds: 50 }
  const info = (await probe(unboxedTools, path, { limits })) as VideoInfo
  expect([info.repaired, info.durationSeconds < 30]).toEqual([true, true])
  const part = probe(unboxedTools, path, { limits, edit: { start: 1, duration: 2 } })
  await expect(part).rejects.toMatchObject({ code: 'duration_exceeded', details: { limit: 50, actual: 60 } })
})

test('an aborted probe says so', async () => {
  const path = await clip('plain.mp4')
  await expect(probe(unboxedTools, path, { signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow('gone')
})

/** An ffprobe that is killed at its first starts, as by a machine without memory. */
async function killedProbe(times: number) {
  const folder = await mkdtemp(join(tmpdir(), 'killed-probe-'))
  const path = join(folder, 'ffprobe')
  const count = `n=$(cat ${folder}/n 2>/dev/null || echo 0); echo $((n + 1)) > ${folder}/n`
  const script = `#!/bin/sh\n${count}\n[ $n -lt ${times} ] && exit 137\nexec '${tools.ffprobe.path}' "$@"\n`
  await writeFile(path, script, { mode: 0o755 })
  // A probe may write nothing, which would keep the script from counting.
  const limiters = { ...tools.limiters, prlimit: null, sandbox: null }
  return { ...tools, ffprobe: { ...tools.ffprobe, path }, limiters }
}

test('a killed probe is repeated once; then the service is busy and the file not damaged', async () => {
  const path = await clip('plain.mp4')
  expect(await probe(await killedProbe(1), path)).toMatchObject({ type: 'mp4' })
  await expect(probe(await killedProbe(2), path)).rejects.toMatchObject({ code: 'busy', retryAfterSeconds: 10 })
})

test('however many packets the sound has, or the picture, they are measured or refused', () => {
  const streams = [
    { index: 0, codec_type: 'video', codec_name: 'vp8', pix_fmt: 'yuv420p', width: 16, height: 16 },
    { index: 1, codec_type: 'audio', codec_name: 'pcm_s16le' },
  ]
  const packet = (stream_index: number) => ({ stream_index, pts_time: '0.000', duration_time: '0.100', flags: 'K_' })
  const read = (pictures: number, sounds: number) =>
    readVideoInfo(
      { streams, packets: [...Array(pictures).fill(packet(0)), ...Array(sounds).fill(packet(1))] },
      'webm',
      { limits: defaultProbeLimits },
    )
  expect(read(1, 500_000)).toMatchObject({ frames: 1, hasAudio: true })
  expect(() => read(500_000, 1)).toThrow(expect.objectContaining({ code: 'too_many_frames' }))
})
