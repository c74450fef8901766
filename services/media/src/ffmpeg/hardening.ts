import type { MediaType } from '../db/media-info.ts'

/** The ffmpeg demuxer that a file of this type is forced through, so that a disguised playlist is never followed. */
export const demuxerOf = {
  ...{ gif: 'gif', mp4: 'mov', webm: 'matroska' },
  ...{ mov: 'mov', mkv: 'matroska', '3gp': 'mov' },
  // A WebP is an APNG by then (make/animation/unpack-animation.ts).
  ...{ apng: 'apng', webp: 'apng' },
  avif: 'mov',
} as const satisfies Record<MediaType, string>

export type Demuxer = (typeof demuxerOf)[MediaType]

/**
 * Decoders that a clip may need, and those of its cover pictures and subtitles, which ffprobe opens too. ffmpeg has
 * hundreds more, and the file chooses which one runs; memory bugs live in the rare ones. Names, not formats: AV1 alone
 * has three decoders, depending on the build.
 */
const decoders = [
  ...['h264', 'hevc', 'av1', 'libdav1d', 'libaom-av1', 'vp8', 'vp9', 'libvpx', 'libvpx-vp9', 'mpeg4', 'gif'],
  ...['aac', 'mp3', 'mp3float', 'opus', 'libopus', 'vorbis', 'libvorbis', 'flac', 'alac', 'ac3', 'eac3'],
  ...['pcm_s16le', 'pcm_s16be', 'pcm_s24le', 'pcm_s24be', 'pcm_f32le'],
  ...['amrnb', 'mp2', 'mp2float', 'mjpeg', 'png', 'mov_text', 'webvtt', 'cc_dec'],
]

/**
 * Decoders of one type of source only. Cameras wrote QuickTime with motion JPEG, and sound of 8 bits or by telephone's
 * law; phones and editors write ProRes. Each frame of both stands alone, so that a pixel costs what it does in other
 * codecs. Early phones wrote 3GP with H.263 and sound of telephones.
 */
const moreDecoders: Partial<Record<MediaType, readonly string[]>> = {
  mov: ['prores', 'pcm_u8', 'pcm_mulaw'],
  '3gp': ['h263', 'amrwb'],
  apng: ['apng'],
  webp: ['apng'],
}

export const moreDecodersOf = (type: MediaType): readonly string[] => moreDecoders[type] ?? []

/** Line of both programs about a stream whose decoder is not on the list. */
export const refusedDecoder = /Codec \(([\w-]+)\) not on whitelist/

/** Next line of ffprobe about it. */
export const refusedStream = /Could not open codec for input stream (\d+)/

/** Upper bound of MEDIA_MAX_SIDE: decoders allocate for a square of this side at most. */
export const LARGEST_SIDE = 5760

/** The pixels of 8K, whatever the file claims. Stops a decompression bomb in 60 ms. */
const MAX_PIXELS = LARGEST_SIDE ** 2
const MAX_BLOCK_BYTES = 512 * 1024 * 1024

/** Line of both programs about a picture with more pixels. */
export const refusedPicture = /Picture size (\d+)x(\d+) exceeds specified max pixel count/

export const hardenedGlobals = ['-hide_banner', '-max_alloc', String(MAX_BLOCK_BYTES)]

/** Demuxers that also open the joined segments of a manifest; a received file is never opened as one of these. */
export type StreamDemuxer = Demuxer | 'mpegts' | 'aac'

/**
 * The options before `-i`. Without the forced demuxer and the two allow-lists, both ffmpeg builds follow a playlist
 * named x.mp4 to other files on the disk (measured, contract/media.md 4.7).
 */
export function hardenedInput(demuxer: StreamDemuxer, more: readonly string[] = []): string[] {
  const formats = new Set(['gif', 'mov', 'matroska', demuxer])
  return [
    ...['-protocol_whitelist', 'file', '-format_whitelist', [...formats].join()],
    ...['-codec_whitelist', [...decoders, ...more].join(','), '-max_pixels', String(MAX_PIXELS), '-f', demuxer],
  ]
}
