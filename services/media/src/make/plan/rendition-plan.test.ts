import { describe, expect, test } from 'vitest'
import type { Variant } from '../../core/variants/variant.ts'
import type { AnimationInfo, MediaInfo, VideoInfo } from '../../db/media-info.ts'
import { variantWeight } from '../variants/variant-weight.ts'
import { clipWeight } from './job-weight.ts'
import { planRenditions } from './rendition-plan.ts'
import { runLimits } from './run-limits.ts'

const video: VideoInfo = {
  ...{ type: 'mp4', width: 640, height: 360, durationSeconds: 5, frames: 150, fps: 30 },
  ...{ hasAudio: true, codec: 'h264', videoStream: 0, audioStream: 1, startSeconds: 0, baseFps: 30 },
  ...{
    longestFrameSeconds: 1 / 30,
    shortestFrameSeconds: 1 / 30,
    keyframes: 3,
    hdr: null,
    alpha: false,
    colorSpace: 'unknown',
  },
  ...{ isStill: false, isInterlaced: false },
}

const gif: AnimationInfo = {
  ...{ type: 'gif', width: 320, height: 240, durationSeconds: 2, frames: 20, fps: 10 },
  ...{ hasAudio: false, tickCentiseconds: 5, loopCount: 0, mayBeTransparent: false, rewritable: true },
}

const every = (seconds: number) => ({ longestFrameSeconds: seconds, shortestFrameSeconds: seconds })

const abilities = { canToneMap: true, deinterlacer: 'bwdif' } as const
const plan = (changes: Partial<VideoInfo> = {}) => planRenditions({ ...video, ...changes }, abilities)

describe('frame rate', () => {
  test.each([
    ['usual times are kept', {}, null],
    ['59.94 up to 720p is kept', { fps: 59.94, baseFps: 59.94, ...every(1 / 59.94) }, null],
    ['60 at 1080p is halved', { width: 1920, height: 1080, fps: 60, baseFps: 60 }, { rate: '30', dropsFrames: true }],
    ['120 becomes 60', { fps: 120, baseFps: 120 }, { rate: '60', dropsFrames: true }],
    ["a browser's irregular recording becomes regular", { fps: 24, baseFps: 1000 }, { rate: '30', dropsFrames: false }],
    ['a fast irregular one too', { fps: 55, baseFps: 1000 }, { rate: '60', dropsFrames: false }],
    ['a long stand-still makes it regular', { fps: 6, longestFrameSeconds: 3 }, { rate: '30', dropsFrames: false }],
    ['two frames left out too', { fps: 29, longestFrameSeconds: 3 / 30 }, { rate: '30', dropsFrames: false }],
    [
      'a slide show gets ten a second',
      { fps: 0.5, baseFps: 0.5, longestFrameSeconds: 2 },
      { rate: '10', dropsFrames: false },
    ],
    ['a last frame cut short too', { shortestFrameSeconds: 0.01 }, { rate: '30', dropsFrames: false }],
    [
      'on a coarse grid one twice as fine',
      { fps: 5, baseFps: 25 / 3, longestFrameSeconds: 0.36 },
      { rate: '16.667', dropsFrames: false },
    ],
  ])('%s', (_, changes, frameRate) => {
    expect(plan(changes).frameRate).toEqual(frameRate)
  })

  test('the last frame is held exactly when frames become regular', () => {
    expect(plan({ longestFrameSeconds: 3 }).holdsLastFrame).toBe(true)
    expect(plan().holdsLastFrame).toBe(false)
  })
})

describe('the gif', () => {
  test.each([
    [5, 30, 6],
    [10, 30, 6],
    [10.04, 30, 8],
    [20.04, 30, 10],
    [5, 15, 7],
    [5, 12, 9],
    [5, 5, 20],
    [5, 16.7, 6],
    [5, 1, 100],
    [5, 0.5, 200],
  ])('of %d s at %d fps shows each frame for %i cs', (durationSeconds, fps, delayCentiseconds) => {
    expect(plan({ durationSeconds, fps, baseFps: fps }).gif).toMatchObject({ delayCentiseconds })
  })

  test('of a gif is a copy of the gif, or made of its frames when it cannot be copied', () => {
    expect(planRenditions(gif, { canToneMap: true, deinterlacer: 'bwdif' })).toMatchObject({
      ...{ gif: { from: 'rewrite' }, frameRate: { rate: '100/5' }, holdsLastFrame: true, cutSeconds: 2 },
      ...{ flattenOnWhite: true, h264Crf: 20, webmCrf: 30 },
    })
    expect(
      planRenditions({ ...gif, rewritable: false }, { canToneMap: true, deinterlacer: 'bwdif' }).gif,
    ).toMatchObject({ from: 'frames' })
  })
})

describe('colour', () => {
  test.each([
    ['small and silent about it: as it is', {}, 'as-is'],
    ['720 lines and silent: BT.709', { width: 1280, height: 720 }, 'bt709'],
    ['standing 720p too', { width: 720, height: 1280 }, 'bt709'],
    ['says BT.709', { colorSpace: 'bt709' }, 'bt709'],
    ['says something else', { width: 1280, height: 720, colorSpace: 'other' }, 'as-is'],
    ['RGB', { colorSpace: 'rgb' }, 'rgb'],
    ['PQ', { hdr: 'pq', colorSpace: 'other' }, 'pq'],
    ['see-through', { alpha: true }, 'rgb'],
  ] as const)('%s', (_, changes, color) => {
    expect(plan(changes).color).toBe(color)
  })

  test('without tone mapping HDR is only scaled', () => {
    const info = { ...video, hdr: 'pq', colorSpace: 'other' } as const
    expect(planRenditions(info, { canToneMap: false, deinterlacer: 'bwdif' }).color).toBe('as-is')
  })
})

test.each([
  ['keyframes are enough', {}, 'keyframes'],
  ['a long clip with one keyframe is sampled', { keyframes: 1, durationSeconds: 5 }, 'sampled'],
  ['a short one is not', { keyframes: 1, durationSeconds: 4 }, 'keyframes'],
  ['one that begins after its only keyframe is', { keyframes: 0 }, 'sampled'],
  ['AV1 decoders do not skip', { codec: 'av1' }, 'sampled'],
])('overview: %s', (_, changes, overview) => {
  expect(plan(changes).overview).toBe(overview)
})

describe('memory', () => {
  const inTurn = { encodesInTurn: true, mostThreads: 2, looksAheadApart: true }

  test('HDR of 1080p takes what tone mapping needs from the encoder', () => {
    expect(plan({ width: 1920, height: 1080, hdr: 'pq' })).toMatchObject({
      encodesInTurn: true,
      looksAheadApart: false,
    })
  })

  test.each([
    [
      '720p: both encoders at once',
      { width: 1280, height: 720 },
      { encodesInTurn: false, mostThreads: 8, looksAheadApart: true },
    ],
    ['1080p: one after the other', { width: 1920, height: 1080 }, inTurn],
    ['standing 1080p too', { width: 1080, height: 1920 }, inTurn],
    [
      '2160p is not decoded twice',
      { width: 3840, height: 2160 },
      { encodesInTurn: false, mostThreads: 2, looksAheadApart: false },
    ],
  ])('%s', (_, size, expected) => {
    expect(plan(size)).toMatchObject(expected)
    expect(planRenditions({ ...gif, ...size }, abilities)).toMatchObject(expected)
  })

  test('the limit of a run grows with its picture and threads', () => {
    const limit = (size: object, threads: number) => runLimits({ ...video, ...size }, threads).memoryBytes
    const hd = { width: 1920, height: 1080 }
    expect(limit(hd, 1)).toBeLessThan(1.8e9)
    expect(limit({ width: 3840, height: 2160 }, 1) - limit(hd, 1)).toBe(350e6)
    expect(limit(hd, 3)).toBeGreaterThan(limit(hd, 1))
  })
})

test('libvpx decodes transparent video', () => {
  expect(plan({ alpha: true, codec: 'vp9' }).decoder).toBe('libvpx-vp9')
  expect(plan({ alpha: true, codec: 'vp8' }).decoder).toBe('libvpx')
  expect(plan({ codec: 'vp9' }).decoder).toBeNull()
})

test('the longest clip gets four minutes at most, and the shortest gets enough time to start', () => {
  expect(runLimits({ ...video, width: 1920, height: 1080, frames: 900 }, 2).wallSeconds).toBe(240)
  const short = runLimits({ ...video, frames: 1, durationSeconds: 0.1 }, 1)
  expect(short.wallSeconds).toBeGreaterThanOrEqual(15)
  expect(short.cpuSeconds).toBe(2 * short.wallSeconds)
})

test.each([
  ['5 s of 720p', { width: 1280, height: 720, frames: 150, durationSeconds: 5 }, 1],
  ['a frame more', { width: 1280, height: 720, frames: 151, durationSeconds: 5 }, 2],
  ['a small picture', { width: 2, height: 2, frames: 1, durationSeconds: 0.1 }, 1],
  ['30 s of 1080p', { width: 1920, height: 1080, frames: 900, durationSeconds: 30 }, 14],
  ['a picture of 1080p that lasts 30 s', { width: 1920, height: 1080, frames: 1, durationSeconds: 30 }, 5],
  ['the largest', { width: 4096, height: 4096, frames: 1_800, durationSeconds: 30 }, 60],
])('%s costs a token as many usual clips as its predicted time has', (_, size, weight) => {
  expect(clipWeight({ ...video, ...size })).toBe(weight)
})

test('a part pays for the frames that are decoded before it, and its variants do not', () => {
  const size = { width: 1280, height: 720 }
  const whole: MediaInfo = { ...video, ...size, frames: 150, durationSeconds: 5 }
  const cut = { seekSeconds: null, startSeconds: 5, afterSeconds: 5, beforeSeconds: null, skippedFrames: 150 }
  const part: MediaInfo = { ...whole, edited: { edit: {}, source: { ...size, durationSeconds: 10 }, cut } }
  expect(clipWeight(part)).toBe(2)
  expect(variantWeight(part, { ending: 'mp4', fit: 'inside' })).toBe(1)
})

test('variants cost the pictures of the mp4 of a clip, and three builds where they have to fit into bytes', () => {
  const large: MediaInfo = { ...video, width: 3840, height: 2160, frames: 150, durationSeconds: 5 }
  const variant: Variant = { ending: 'mp4', fit: 'inside' }
  expect([clipWeight(large), variantWeight(large, variant)]).toEqual([9, 3])
  expect(variantWeight(large, { ...variant, maxBytes: 1e6 })).toBe(7)
})

test('a run that feeds the GIF writer may wait ten times as long as the writer needs for noise, without more CPU', () => {
  const slow = { ...video, width: 480, height: 270, frames: 300, durationSeconds: 30 }
  const [alone, feeding] = [runLimits(slow, 2), runLimits(slow, 2, 20)]
  expect(feeding.wallSeconds - alone.wallSeconds).toBeCloseTo(200)
  expect(feeding.cpuSeconds).toBe(alone.cpuSeconds)
  expect(runLimits(slow, 2, 60).wallSeconds).toBe(240)
})
