import { describe, expect, test } from 'vitest'
import type { StoredSound, StoredStreams, VideoInfo } from '../../db/media-info.ts'
import { misfitOf } from './copy-plan.ts'
import { planRenditions } from './rendition-plan.ts'

const aac: StoredSound = { codec: 'aac', profile: 'LC', channels: 2, sampleRate: 48_000, bitRate: 128_000 }
const h264: StoredStreams = {
  ...{ profile: 'High', level: 31, pixelFormat: 'yuv420p', isPlain: true, isWhole: true },
  ...{ longestKeyframeGapSeconds: 2, bitRate: 1_000_000, soundTracks: 1, sound: aac },
}
const mp4: VideoInfo = {
  ...{ type: 'mp4', width: 1280, height: 720, durationSeconds: 5, frames: 150, fps: 30 },
  ...{ hasAudio: true, codec: 'h264', videoStream: 0, audioStream: 1, startSeconds: 0, baseFps: 30 },
  ...{ longestFrameSeconds: 1 / 30, shortestFrameSeconds: 1 / 30, keyframes: 3, hdr: null, alpha: false },
  ...{ isStill: false, isInterlaced: false, colorSpace: 'unknown', stored: h264 },
}
const opus: StoredSound = { codec: 'opus', profile: '', channels: 2, sampleRate: 48_000, bitRate: 96_000 }
const webm: VideoInfo = {
  ...{ ...mp4, type: 'webm', codec: 'vp9' },
  stored: { ...h264, profile: 'Profile 0', level: -99, sound: opus },
}

const abilities = { canToneMap: true, deinterlacer: 'bwdif' } as const
const misfit = (info: VideoInfo, isAudible = true) => {
  const plan = planRenditions(info, abilities)
  return misfitOf(info, isAudible ? plan : { ...plan, audioStream: null })
}

describe('the streams of', () => {
  test.each([
    ['an mp4 as ours', mp4],
    ['a webm as ours', webm],
    [
      'a webm of VP8 and Vorbis',
      { ...webm, codec: 'vp8', stored: { ...webm.stored, sound: { ...opus, codec: 'vorbis' } } },
    ],
    ['an mp4 without sound', { ...mp4, audioStream: null, stored: { ...h264, sound: null, soundTracks: 0 } }],
  ])('%s fit', (_, info) => {
    expect(misfit(info as VideoInfo)).toBeNull()
  })

  test('a clip whose unusual sound is silent fit, without it', () => {
    expect(misfit({ ...mp4, stored: { ...h264, sound: { ...aac, channels: 6 } } }, false)).toBeNull()
  })

  test.each<[string, Partial<VideoInfo>, Partial<StoredStreams>]>([
    ['codec', { codec: 'hevc' }, {}],
    ['codec', {}, { profile: 'High 10' }],
    ['codec', {}, { level: 51 }],
    ['codec', {}, { level: -99 }],
    ['codec', { width: 1920, height: 1080, fps: 70, baseFps: 30 }, { bitRate: 1_000_000 }],
    ['picture', {}, { pixelFormat: 'yuvj420p' }],
    ['picture', {}, { isPlain: false }],
    ['picture', { hdr: 'pq' }, {}],
    ['picture', { isInterlaced: true }, {}],
    ['picture', { isStill: true }, {}],
    ['size', { width: 1279 }, {}],
    ['times', { baseFps: 1000 }, {}],
    ['times', { longestFrameSeconds: 1 }, {}],
    ['start', { startSeconds: 0.2 }, {}],
    ['start', {}, { isWhole: false }],
    ['keyframes', {}, { longestKeyframeGapSeconds: 5.1 }],
    ['bit_rate', {}, { bitRate: 4_200_000 }],
    [
      'bit_rate',
      { fps: 60, baseFps: 60, longestFrameSeconds: 1 / 60, shortestFrameSeconds: 1 / 60 },
      { bitRate: 6_100_000 },
    ],
    ['sound', {}, { soundTracks: 2 }],
    ['sound', {}, { sound: { ...aac, codec: 'mp3' } }],
    ['sound', {}, { sound: { ...aac, profile: 'HE-AAC' } }],
    ['sound', {}, { sound: { ...aac, channels: 6 } }],
    ['sound', {}, { sound: { ...aac, sampleRate: 96_000 } }],
    ['sound', {}, { sound: { ...aac, bitRate: 200_000 } }],
  ])('a clip with another %s do not (%j %j)', (reason, changes, stored) => {
    expect(misfit({ ...mp4, ...changes, stored: { ...h264, ...stored } })).toBe(reason)
  })

  test.each<[string, Partial<VideoInfo>, Partial<StoredStreams>]>([
    ['codec', { codec: 'av1' }, {}],
    ['codec', {}, { profile: 'Profile 2' }],
    ['picture', { alpha: true }, {}],
    ['sound', {}, { sound: aac }],
  ])('a webm with another %s do not (%j %j)', (reason, changes, stored) => {
    expect(misfit({ ...webm, ...changes, stored: { ...webm.stored, ...stored } as StoredStreams })).toBe(reason)
  })

  test('an edit of the pictures do not', () => {
    const { stored: _, ...edited } = mp4
    expect(misfit(edited)).toBe('edited')
  })
})
