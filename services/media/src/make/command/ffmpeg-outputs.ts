// The files that one run of ffmpeg writes, each with its codec and its limits.
import type { Ffmpeg } from '../../ffmpeg/binaries.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import { type GifSource, seconds, soundFilters } from './filter-graph.ts'
import { workFiles } from './work-files.ts'

/** Measures the peak of the sound, for the log of level `info` or more. */
export function volumeOutput(plan: RenditionPlan): string[] {
  if (plan.audioStream === null) return []
  const untilCut = ['-t', seconds(plan.startSeconds + plan.cutSeconds)]
  const heard = [...(plan.cut ? soundFilters(plan) : []), 'volumedetect'].join(',')
  return [...audioMap(plan), ...untilCut, ...withoutTags, '-af', heard, '-f', 'null', '-']
}

export function posterOutput(): string[] {
  return ['-map', '[poster]', '-frames:v', '1', ...withoutTags, '-f', 'rawvideo', workFiles.poster]
}

/** Limit of all sequence parameter sets of a file, which take about 60 bytes for each keyframe. */
export const MAX_SEQUENCE_BYTES = 1_000_000

/**
 * The source's own streams, without SEI that carries data of its encoder or others (ITU-T H.264, 7.4.1: NAL unit type
 * 6). An mp4 has its sequence parameter sets (type 7) in a second file: those of its header before each keyframe, and
 * those between frames.
 */
export function copyOutput(plan: RenditionPlan, file: 'mp4' | 'webm'): string[] {
  const ofMp4 = ['-bsf:v', 'filter_units=remove_types=6', '-movflags', '+faststart']
  const sequences = [
    ...['-map', `0:${plan.videoStream}`, '-c', 'copy', ...withoutTags, '-fs', String(MAX_SEQUENCE_BYTES)],
    ...['-bsf:v', 'h264_mp4toannexb,dump_extra,filter_units=pass_types=7', '-f', 'rawvideo', workFiles.sequences],
  ]
  return [
    ...['-map', `0:${plan.videoStream}`, ...audioMap(plan), '-c', 'copy', ...(file === 'mp4' ? ofMp4 : [])],
    ...[...withoutMetadata, '-t', seconds(plan.cutSeconds), '-f', file, workFiles[file]],
    ...(file === 'mp4' ? sequences : []),
  ]
}

export function mp4Output(ffmpeg: Ffmpeg, plan: RenditionPlan, threads: number): string[] {
  return [
    ...['-map', '[mp4]', ...audioMap(plan), ...variableRate(ffmpeg)],
    ...['-c:v', 'libx264', '-preset', 'veryfast', '-crf', String(plan.h264Crf), '-maxrate', '6M', '-bufsize', '12M'],
    // A keyframe every 60 frames costs bytes but allows seeks within 2 s.
    ...['-profile:v', 'high', '-g', '60', '-threads', String(threads), ...colorTags(plan)],
    ...(plan.looksAheadApart ? [] : ['-x264-params', 'sync-lookahead=0']),
    ...audioCodec(plan, 'aac', '128k'),
    ...['-movflags', '+faststart', ...withoutMetadata, '-t', seconds(plan.cutSeconds), '-f', 'mp4', workFiles.mp4],
  ]
}

export function webmOutput(ffmpeg: Ffmpeg, plan: RenditionPlan, threads: number): string[] {
  const quality =
    ffmpeg.webmVideoEncoder === 'libvpx-vp9'
      ? [
          ...['-cpu-used', '7', '-crf', String(plan.webmCrf), '-b:v', String(plan.webmBitRate)],
          ...['-row-mt', '1', '-tile-columns', '2'],
        ]
      : ['-cpu-used', '8', '-crf', '16', '-b:v', '2500k']
  return [
    ...['-map', '[webm]', ...audioMap(plan), ...variableRate(ffmpeg)],
    // Looking 25 frames ahead, VP9's default, takes 115 MB at 1080p and gains nothing in realtime mode.
    ...['-c:v', ffmpeg.webmVideoEncoder, '-deadline', 'realtime', '-lag-in-frames', '0', ...quality],
    ...['-g', '120', '-threads', String(threads), ...colorTags(plan)],
    ...(plan.keepsAlpha ? alphaPlane : []),
    ...audioCodec(plan, ffmpeg.webmAudioEncoder, '96k'),
    ...[...withoutMetadata, '-t', seconds(plan.cutSeconds), '-f', 'webm', workFiles.webm],
  ]
}

/** Without it players show a transparent webm as opaque. */
export const alphaMark = ['-metadata:s:v:0', 'alpha_mode=1']

/** Alternate reference frames take no alpha. */
const alphaPlane = ['-pix_fmt', 'yuva420p', '-auto-alt-ref', '0', ...alphaMark]

/** The fewest with which 720p takes no longer; a frame is 0.9 MB at most. */
const FRAMES_AHEAD = 8

/**
 * Frames for our writer go to its pipe, which is file 0 (run-confined.ts), by way of a queue. Without one the encoders
 * would wait for each frame of a slow writer, and 720p would take 3 to 10 % longer.
 */
export function gifOutput(ffmpeg: Ffmpeg, plan: RenditionPlan, gif: GifSource): string[] {
  if (gif === 'none') return []
  const until = [...withoutTags, '-t', seconds(plan.cutSeconds)]
  if (gif === 'frames') {
    const queue = ['-f', 'fifo', '-fifo_format', 'rawvideo', '-queue_size', String(FRAMES_AHEAD)]
    return ['-map', '[gif]', ...variableRate(ffmpeg), ...until, '-c:v', 'rawvideo', ...queue, 'pipe:0']
  }
  // -1 writes no loop block.
  const loop = plan.gif.from === 'frames' ? (plan.gif.loopCount ?? -1) : 0
  // Writes whole frames, as `clearAfterEachFrame` needs them.
  const whole = plan.keepsAlpha ? ['-gifflags', '0'] : []
  return ['-map', '[gif]', ...whole, '-loop', String(loop), ...until, '-f', 'gif', workFiles.gif]
}

/** Belongs to every output, because ffmpeg logs the tags of each between its messages (ffmpeg-log.ts). */
export const withoutTags = ['-map_metadata', '-1']

/** Drops titles, locations, chapters and the encoder's name; the same input gives the same bytes. */
export const withoutMetadata = [
  ...['-sn', '-dn', ...withoutTags, '-map_chapters', '-1', '-fflags', '+bitexact'],
  ...['-flags:v', '+bitexact', '-flags:a', '+bitexact', '-max_muxing_queue_size', '4096'],
]

export function audioMap(plan: RenditionPlan): string[] {
  return plan.audioStream === null ? [] : ['-map', `0:${plan.audioStream}`]
}

function audioCodec(plan: RenditionPlan, codec: string, bitrate: string): string[] {
  if (plan.audioStream === null) return ['-an']
  const filters = soundFilters(plan)
  return [
    ...(filters.length > 0 ? ['-af', filters.join(',')] : []),
    '-c:a',
    codec,
    '-b:a',
    bitrate,
    '-ac',
    '2',
    '-ar',
    '48000',
  ]
}

/** Frames keep their times; none is added. */
export function variableRate(ffmpeg: Ffmpeg): string[] {
  return [ffmpeg.frameRateModeFlag, 'vfr']
}

function colorTags(plan: RenditionPlan): string[] {
  if (plan.color === 'as-is') return []
  return ['-colorspace', 'bt709', '-color_primaries', 'bt709', '-color_trc', 'bt709', '-color_range', 'tv']
}
