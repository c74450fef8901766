import type { Size } from '../../core/clips/geometry.ts'
import type { Ffmpeg } from '../../ffmpeg/binaries.ts'
import { hardenedGlobals, hardenedInput } from '../../ffmpeg/hardening.ts'
import { withoutMetadata } from '../command/ffmpeg-outputs.ts'
import { workFiles } from '../command/work-files.ts'
import { SMALLEST_WHOLE_PART } from '../probe/picture-times.ts'

// ffmpeg's arguments for variants. The input is one of our own files: the mp4, or the webm where that has the alpha
// plane.

export interface Picture extends Size {
  /** Fills the size and crops the rest, instead of scaling to it. */
  crops: boolean
}

/** Frames of an animated picture. */
export interface Animation extends Picture {
  delayCentiseconds: number
  /** 0 means forever, null plays once. */
  loopCount: number | null
  hasAlpha: boolean
  durationSeconds: number
}

/**
 * One frame as raw RGB: the first that begins at `atSeconds` or later, which decodes least. The output stays empty if
 * none does.
 */
export function frameCommand(picture: Picture, atSeconds: number, threads: number): string[] {
  return frameAt(picture, atSeconds, threads, [])
}

/** The last frame, for a moment at which no further one begins. */
export function lastFrameCommand(picture: Picture, atSeconds: number, threads: number): string[] {
  const seek = Math.max(0, SMALLEST_WHOLE_PART * atSeconds - LONGEST_FRAME_SECONDS)
  const ahead = atSeconds - seek
  const held = [`tpad=stop_mode=clone:stop_duration=${(ahead + 1).toFixed(3)}`, `trim=start=${ahead.toFixed(3)}`]
  return frameAt(picture, seek, threads, held)
}

/** Frames of our mp4 last half as long at most (make/plan/rendition-plan.ts), and its end may be missing. */
const LONGEST_FRAME_SECONDS = 1.2

function frameAt(picture: Picture, seekSeconds: number, threads: number, filters: string[]): string[] {
  return [
    ...[...start, '-threads', String(threads), '-ss', seekSeconds.toFixed(3), ...hardenedInput('mov')],
    ...['-i', workFiles.mp4, '-map', '0:v:0', '-vf', [...filters, fitted(picture), 'format=rgb24'].join(',')],
    ...['-frames:v', '1', '-f', 'rawvideo', workFiles.poster],
  ]
}

/** Raw frames for our GIF writer, to its pipe (ffmpeg/run-confined.ts). */
export function gifFramesCommand(ffmpeg: Ffmpeg, animation: Animation): string[] {
  const format = animation.hasAlpha ? 'rgba' : 'rgb24'
  return [...animationInput(ffmpeg, animation, format), '-f', 'rawvideo', 'pipe:0']
}

/** Quality and effort: half the bytes of a GIF with tolerable time (contract/media.md 6.6). */
export function animatedWebpCommand(ffmpeg: Ffmpeg, animation: Animation): string[] {
  return [
    ...animationInput(ffmpeg, animation, animation.hasAlpha ? 'yuva420p' : 'yuv420p'),
    ...['-c:v', 'libwebp_anim', '-quality', '60', '-compression_level', '2', ...withoutMetadata],
    ...['-loop', String(playsOf(animation)), '-f', 'webp', workFiles.webp],
  ]
}

/** WebP counts plays, a GIF repetitions; one that plays once has no loop block. Both counts have 16 bits. */
const playsOf = ({ loopCount }: Animation): number => (loopCount === 0 ? 0 : Math.min(0xffff, (loopCount ?? 0) + 1))

function animationInput(ffmpeg: Ffmpeg, animation: Animation, format: string): string[] {
  const { hasAlpha, delayCentiseconds, durationSeconds } = animation
  const input = hasAlpha
    ? ['-c:v', ffmpeg.webmVideoEncoder, ...hardenedInput('matroska'), '-i', workFiles.webm]
    : [...hardenedInput('mov'), '-i', workFiles.mp4]
  return [
    ...[...start, '-threads', '1', ...input, '-map', '0:v:0'],
    ...['-vf', `fps=100/${delayCentiseconds},${fitted(animation)},format=${format}`],
    ...[ffmpeg.frameRateModeFlag, 'vfr', '-t', durationSeconds.toFixed(3)],
  ]
}

/** The picture encoded again, the sound copied. With a bit rate the bytes are known beforehand, else the quality. */
export function mp4Command(ffmpeg: Ffmpeg, picture: Picture, bitRate: number | null): string[] {
  const rate =
    bitRate === null
      ? ['-crf', '23', '-maxrate', '6M', '-bufsize', '12M']
      : ['-b:v', String(bitRate), '-maxrate', String(2 * bitRate), '-bufsize', String(2 * bitRate)]
  return [
    ...[...start, '-threads', '1', ...hardenedInput('mov'), '-i', workFiles.mp4, '-map', '0:v:0', '-map', '0:a:0?'],
    ...['-vf', fitted(picture), ffmpeg.frameRateModeFlag, 'vfr', '-c:v', 'libx264', '-preset', 'veryfast', ...rate],
    // One thread: others would make the bytes depend on the machine.
    ...['-profile:v', 'high', '-pix_fmt', 'yuv420p', '-g', '60', '-threads', '1', '-x264-params', 'sync-lookahead=0'],
    ...['-c:a', 'copy', '-movflags', '+faststart', ...withoutMetadata, '-f', 'mp4', variantMp4],
  ]
}

/** Output beside the mp4 that is the input. */
export const variantMp4 = 'variant.mp4'

const start = ['-nostdin', ...hardenedGlobals, '-loglevel', 'error', '-nostats', '-y']

function fitted({ width, height, crops }: Picture): string {
  const scale = `scale=${width}:${height}:flags=lanczos`
  return crops ? `${scale}:force_original_aspect_ratio=increase,crop=${width}:${height},setsar=1` : `${scale},setsar=1`
}
