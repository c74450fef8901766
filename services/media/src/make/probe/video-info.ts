import { choosesPart, type Edit, outOfRange } from '../../core/edits/edit.ts'
import type { Cut, MediaType, VideoInfo } from '../../db/media-info.ts'
import { apiError } from '../../errors.ts'
import { between, choosePart, findEntry } from './choose-part.ts'
import { editVideo } from './edited-info.ts'
import {
  type FfprobePacket,
  type FfprobeReport,
  type FfprobeStream,
  isAfterOthers,
  type PictureStart,
  type ReadWindow,
} from './ffprobe.ts'
import { readRatio, readTag, seconds, toMicroseconds } from './ffprobe-values.ts'
import {
  declaredDuration,
  endsEarly,
  fromFirstKeyframe,
  holdToSound,
  lengthOfSource,
  measureTiming,
  pausesAtEnd,
  pictureStartOf,
  refuseShortRest,
  timesOf,
} from './picture-times.ts'
import {
  type ProbeLimits,
  refuseLargePicture,
  refuseLongDuration,
  refuseLongSource,
  refuseManyFrames,
} from './source-limits.ts'
import { readStored } from './stored-streams.ts'

/** Codecs of the eight sites and every phone. Players do not expect others in an mp4. */
const videoCodecs = new Set(['h264', 'hevc', 'av1', 'vp8', 'vp9', 'mpeg4'])
/** The same of one type only (ffmpeg/hardening.ts). */
const moreVideoCodecs: Partial<Record<MediaType, readonly string[]>> = {
  mov: ['prores', 'mjpeg'],
  '3gp': ['h263'],
}
/** Sound in any other codec is dropped, not refused, because the picture matters. */
const audioCodecs = /^(aac|mp3|opus|vorbis|flac|alac|ac3|eac3|pcm_(s16|s24)[lb]e|pcm_f32le)$/
const moreAudioCodecs: Partial<Record<MediaType, readonly string[]>> = {
  mov: ['pcm_u8', 'pcm_mulaw'],
  '3gp': ['amr_nb', 'amr_wb'],
}

const isVideoCodec = (type: MediaType, codec = ''): boolean =>
  videoCodecs.has(codec) || Boolean(moreVideoCodecs[type]?.includes(codec))
const isAudioCodec = (type: MediaType, codec = ''): boolean =>
  audioCodecs.test(codec) || Boolean(moreAudioCodecs[type]?.includes(codec))

/** Below half a frame of the slowest GIF (0.1 s) no frame would remain; such a clip is shown for STILL_SECONDS. */
const SHORTEST_MOVING_SECONDS = 0.05
const STILL_SECONDS = 0.1

export interface Reading {
  limits: ProbeLimits
  edit?: Edit | undefined
  /** Packets that were read, if not the first ones. */
  window?: ReadWindow | undefined
}

/**
 * Turns ffprobe's report into a `VideoInfo`, of the result if there is an edit. Refuses the file: no_video_stream,
 * unsupported_media_type (codec or number of streams), dimensions_exceeded, duration_exceeded, too_many_frames,
 * corrupt_media; and an edit: edit_out_of_range.
 */
export function readVideoInfo(
  report: FfprobeReport,
  type: VideoInfo['type'],
  { limits, edit, window }: Reading,
): VideoInfo {
  const streams = report.streams ?? []
  const video = chooseVideo(streams, type)
  if (!video) throw apiError('no_video_stream')
  refuseStreams(streams, video, { type, limits })

  const coded = { width: video.width ?? 0, height: video.height ?? 0 }
  const displayed = displaySize(video)
  refuseLargePicture(limits, coded.width, coded.height)
  refuseLargePicture(limits, displayed.width, displayed.height)

  const packets = report.packets ?? []
  const all = shownPackets(packets, video, window)
  const pictures = picturesOf(packets, video)
  const isLate = all.length < pictures.length
  const audio = streams.find((stream) => stream.codec_type === 'audio' && isAudioCodec(type, stream.codec_name))
  const heard = packets.filter((packet) => packet.stream_index === audio?.index)
  const whole = holdToSound(measureTiming(all, video, report), heard)
  const source = { video, report, window }
  // Where only a part was fetched, the length of the source is unknown.
  const picture = window?.picture ?? pictureStartOf(all, pictures, video)
  const sourceSeconds = edit?.missingSeconds === undefined ? lengthOfSource(whole, picture, source) : null
  if (choosesPart(edit)) refuseLongSource(limits, Math.max(declaredDuration(video, report), sourceSeconds ?? 0))
  const fileStart = seconds(report.format?.start_time, 0)
  const pictureStart = picture.startSeconds
  const part = edit && partOf(all, whole.endSeconds, { edit, fileStart, pictureStart, window, isLate })
  const shown = part?.shown ?? all
  const timing = part ? { ...whole, ...timesOf(shown, part.fileSeconds) } : whole
  const { speed = 1, duration = Number.POSITIVE_INFINITY } = edit ?? {}
  const wanted = sourceSeconds && Math.min(duration, sourceSeconds - (part?.startSeconds ?? 0)) / speed
  refuseLongDuration(limits, timing.durationSeconds / speed, wanted)
  refuseManyFrames(limits, timing.frames, coded.width, coded.height)
  if (part)
    refuseManyFrames(
      { ...limits, frames: Number.POSITIVE_INFINITY },
      timing.frames + part.cut.skippedFrames,
      coded.width,
      coded.height,
    )
  const isTruncated = endsEarly(packets, whole, source)
  if (isLate) refuseShortRest(whole, pictures[0])

  const { frames, longestFrameSeconds, shortestFrameSeconds, isHeld } = timing
  const isTooShort = timing.durationSeconds < SHORTEST_MOVING_SECONDS
  const durationSeconds = isTooShort ? STILL_SECONDS : timing.durationSeconds
  const info: VideoInfo = {
    ...{ type, ...displayed, durationSeconds, frames, fps: frames / durationSeconds },
    ...((isLate || picture.lateSeconds > 0 || isTruncated) && { repaired: true as const }),
    isStill: isTooShort || isHeld,
    hasAudio: heard.length > 0,
    codec: video.codec_name ?? '',
    videoStream: video.index,
    audioStream: heard[0]?.stream_index ?? null,
    startSeconds: Math.max(0, timing.startSeconds - seconds(report.format?.start_time, 0)),
    baseFps: readRatio(video.r_frame_rate) || frames / durationSeconds,
    ...{ longestFrameSeconds, shortestFrameSeconds },
    keyframes: shown.filter((packet) => packet.flags.includes('K')).length,
    hdr: transferOf[video.color_transfer ?? ''] ?? null,
    alpha: readTag(video, 'alpha_mode') === '1',
    // MPEG-4 part 2 marks it only in its frames.
    isInterlaced: /^[tb]{2}$/.test(video.field_order ?? '') || video.codec_name === 'mpeg4',
    stored: readStored({ streams, video, packets, shown, audio: heard.length > 0 ? audio : undefined }, timing),
    colorSpace: readColorSpace(video),
  }
  if (!edit || !part) return info
  return editVideo(info, edit, { ...part, sourceSeconds })
}

/** Less than a frame: the one before it was not read, or has no keyframe. */
const JUST_BEFORE_SECONDS = 0.0005

/** Returns packets of the part that an edit chooses, where it is in the picture, and where in the file. */
function partOf(
  all: FfprobePacket[],
  endSeconds: number,
  {
    edit,
    fileStart,
    pictureStart,
    window,
    isLate,
  }: { edit: Edit; fileStart: number; pictureStart: number; window: ReadWindow | undefined; isLate: boolean },
): { shown: FfprobePacket[]; startSeconds: number; fileSeconds: { start: number; end: number }; cut: Cut } {
  const frames = all.map(({ pts_time, flags }) => ({
    at: toMicroseconds(seconds(pts_time, 0) - pictureStart),
    isKeyframe: flags.includes('K'),
  }))
  const { from, end, startSeconds, durationSeconds } = choosePart(frames, edit, endSeconds - pictureStart)
  const entry = findEntry(frames, startSeconds)
  const inFile = (at: number | null) =>
    at === null ? null : toMicroseconds(Math.max(0, at + pictureStart - fileStart))
  const start = pictureStart + startSeconds
  return {
    ...{ shown: all.slice(from, end), startSeconds, fileSeconds: { start, end: start + durationSeconds } },
    cut: {
      seekSeconds: entry ? inFile(entry.at) : null,
      startSeconds: inFile(startSeconds) ?? 0,
      afterSeconds: inFile(
        from === 0 && (isAfterOthers(window) || isLate)
          ? (frames[0]?.at ?? 0) - JUST_BEFORE_SECONDS
          : between(frames, from),
      ),
      beforeSeconds: inFile(between(frames, end)),
      skippedFrames: from - (entry ? frames.indexOf(entry) : 0),
    },
  }
}

/** Returns where the picture of a file begins, by a report of its first packets. */
export function findPictureStart({ streams = [], packets = [] }: FfprobeReport, type: VideoInfo['type']): PictureStart {
  const video = chooseVideo(streams, type)
  if (!video) throw apiError('no_video_stream')
  const pictures = picturesOf(packets, video)
  return pictureStartOf(fromFirstKeyframe(packets, pictures, video), pictures, video)
}

/** Says whether a part that was read may end in a pause behind which the file goes on. */
export function endsInPause(report: FfprobeReport, type: VideoInfo['type'], window: ReadWindow | undefined): boolean {
  const video = chooseVideo(report.streams ?? [], type)
  const last = video && picturesOf(report.packets ?? [], video).at(-1)
  return video !== undefined && last !== undefined && pausesAtEnd(last, { video, report, window })
}

/** The first acceptable stream, else the first, which is refused by its name. Covers are skipped. */
function chooseVideo(streams: FfprobeStream[], type: MediaType): FfprobeStream | undefined {
  const videos = streams.filter((stream) => stream.codec_type === 'video' && !stream.disposition?.attached_pic)
  return videos.find((stream) => isVideoCodec(type, stream.codec_name)) ?? videos[0]
}

const transferOf: Record<string, 'pq' | 'hlg'> = { smpte2084: 'pq', 'arib-std-b67': 'hlg' }

function refuseStreams(
  streams: FfprobeStream[],
  video: FfprobeStream,
  { type, limits }: { type: MediaType; limits: ProbeLimits },
): void {
  refuseMany(streams, limits.allStreams, 'streams')
  refuseMany(streams.filter(isPictureOrSound), limits.streams, 'streams of picture and sound')
  // Transparency is a track of its own, which players lay over; without it what it hides would show.
  if (type === 'avif' && streams.length > 1) {
    throw apiError('unsupported_media_type', {
      message: 'An AVIF sequence with transparency or further tracks is not supported.',
      details: { limit: 1, actual: streams.length },
    })
  }
  if (!isVideoCodec(type, video.codec_name)) {
    throw apiError('unsupported_media_type', {
      message: 'The video codec is not supported.',
      details: { codec: video.codec_name ?? 'unknown', accepted: [...videoCodecs, ...(moreVideoCodecs[type] ?? [])] },
    })
  }
  if (!video.width || !video.height || !video.pix_fmt || video.pix_fmt === 'unknown') {
    throw apiError('corrupt_media', { cause: 'no picture format' })
  }
}

const isPictureOrSound = ({ codec_type, disposition }: FfprobeStream) =>
  codec_type === 'audio' || (codec_type === 'video' && !disposition?.attached_pic)

function refuseMany(streams: FfprobeStream[], limit: number, name: string): void {
  if (streams.length <= limit) return
  const message = `The file has more than ${limit} ${name}.`
  throw apiError('unsupported_media_type', { message, details: { limit, actual: streams.length } })
}

/** Stretches the stored pixels by their aspect ratio, then rotates. */
function displaySize(video: FfprobeStream): { width: number; height: number } {
  const [height, stored] = [video.height ?? 0, video.width ?? 0]
  const width = Math.max(1, Math.round(stored * (readRatio(video.sample_aspect_ratio) || 1)))
  const turned = video.side_data_list?.find((data) => data.rotation !== undefined)?.rotation
  const degrees = turned ?? Number(readTag(video, 'rotate') ?? 0)
  // ffmpeg rotates by 90 degrees only within one degree; other angles keep the frame's size.
  const isQuarter = Math.abs((Math.abs(degrees) % 180) - 90) < 1
  return isQuarter ? { width: height, height: width } : { width, height }
}

function shownPackets(packets: FfprobePacket[], video: FfprobeStream, window: ReadWindow | undefined): FfprobePacket[] {
  const shown = fromFirstKeyframe(packets, picturesOf(packets, video), video)
  if (shown.length > 0) return shown
  throw isAfterOthers(window) ? outOfRange('start') : apiError('corrupt_media', { cause: 'no frame' })
}

/** Returns the packets of the shown pictures in the order of their times. */
const picturesOf = (packets: FfprobePacket[], video: FfprobeStream): FfprobePacket[] =>
  packets
    .filter(({ stream_index, flags }) => stream_index === video.index && !flags.includes('D'))
    .sort((a, b) => seconds(a.pts_time, 0) - seconds(b.pts_time, 0))

function readColorSpace(video: FfprobeStream): VideoInfo['colorSpace'] {
  if (/^(gbr|rgb|bgr)/.test(video.pix_fmt ?? '')) return 'rgb'
  if (video.color_space === 'bt709') return 'bt709'
  return !video.color_space || video.color_space === 'unknown' ? 'unknown' : 'other'
}
