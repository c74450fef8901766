import type { MediaType } from '../db/media-info.ts'

/** The ffmpeg demuxer a file of this type is forced through, so that a playlist in disguise is never followed. */
export const demuxerOf = { gif: 'gif', mp4: 'mov', webm: 'matroska' } as const

export type Demuxer = (typeof demuxerOf)[MediaType]

/**
 * The decoders a clip may need, and those of what travels along (cover pictures, subtitles), which ffprobe opens too.
 * ffmpeg has hundreds more, and a file chooses which one runs: the rare ones are where the memory bugs are. Names, not
 * formats: AV1 alone has three decoders, depending on the build.
 */
const decoders = [
  ...['h264', 'hevc', 'av1', 'libdav1d', 'libaom-av1', 'vp8', 'vp9', 'libvpx', 'libvpx-vp9', 'mpeg4', 'gif'],
  ...['aac', 'mp3', 'mp3float', 'opus', 'libopus', 'vorbis', 'libvorbis', 'flac', 'alac', 'ac3', 'eac3'],
  ...['pcm_s16le', 'pcm_s16be', 'pcm_s24le', 'pcm_s24be', 'pcm_f32le'],
  ...['amrnb', 'mp2', 'mp2float', 'mjpeg', 'png', 'mov_text', 'webvtt', 'cc_dec'],
]

/** What both programs print about a stream whose decoder is not on the list. */
export const refusedDecoder = /Codec \(([\w-]+)\) not on whitelist/

/** What ffprobe prints next about it. */
export const refusedStream = /Could not open codec for input stream (\d+)/

/** No limit for the pictures of sources may be larger: a square of this side is all a decoder allocates for. */
export const LARGEST_SIDE = 5760

/** As many pixels as 8K has, whatever the file claims. Stops a bomb in 60 ms. */
const MAX_PIXELS = LARGEST_SIDE ** 2
const MAX_BLOCK_BYTES = 512 * 1024 * 1024

/** What both programs print about a picture that is larger. */
export const refusedPicture = /Picture size (\d+)x(\d+) exceeds specified max pixel count/

/** Global options of ffmpeg and ffprobe alike. */
export const hardenedGlobals = ['-hide_banner', '-max_alloc', String(MAX_BLOCK_BYTES)]

/** Of pieces of a stream that were joined beforehand; a file that somebody sent is never opened as one. */
export type StreamDemuxer = Demuxer | 'mpegts' | 'aac'

/**
 * The options before `-i`. Without the forced demuxer and the two white lists both ffmpeg builds follow a playlist
 * named x.mp4 to other files on the disk (measured, contract/media.md 4.7).
 */
export function hardenedInput(demuxer: StreamDemuxer): string[] {
  const formats = new Set(['gif', 'mov', 'matroska', demuxer])
  return [
    ...['-protocol_whitelist', 'file', '-format_whitelist', [...formats].join()],
    ...['-codec_whitelist', decoders.join(','), '-max_pixels', String(MAX_PIXELS), '-f', demuxer],
  ]
}
