import { choosesPart, type Edit, outOfRange } from '../../core/edits/edit.ts'
import type { Cut, MediaType, StoredStreams, VideoInfo } from '../../db/media-info.ts'
import { apiError } from '../../errors.ts'
import { between, choosePart, findEntry } from './choose-part.ts'
import { editVideo } from './edited-info.ts'
import { type FfprobePacket, type FfprobeReport, type FfprobeStream, READ_SECONDS, type ReadWindow } from './ffprobe.ts'
import { type ProbeLimits, refuseLargePicture, refuseLongDuration, refuseManyFrames } from './limits.ts'

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

/** ffmpeg exits 0 for a file cut in the middle, so the missing part must be measured (contract/media.md 4.7). */
export const SMALLEST_WHOLE_PART = 0.9

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
 * unsupported_media_type (codec or number of streams), dimensions_exceeded, duration_exceeded, too_many_frames, corrupt_media;
 * and an edit: edit_out_of_range.
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
  const audio = streams.find((stream) => stream.codec_type === 'audio' && isAudioCodec(type, stream.codec_name))
  const heard = packets.filter((packet) => packet.stream_index === audio?.index)
  const whole = holdToSound(measureTiming(all, video, report), heard)
  if (choosesPart(edit)) refuseLongDuration({ durationSeconds: limits.sourceSeconds }, declaredDuration(video, report))
  const fileStart = seconds(report.format?.start_time, 0)
  const pictureStart = pictureStartOf(video, whole, window)
  const part = edit && partOf(all, endOfPicture(whole, { video, report, window }), { edit, fileStart, pictureStart })
  const shown = part?.shown ?? all
  const timing = part ? { ...whole, ...timesOf(shown, part.fileSeconds) } : whole
  const { speed = 1, duration = Number.POSITIVE_INFINITY } = edit ?? {}
  const sourceSeconds = lengthOfSource(whole, { video, report, window })
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
  refuseTruncated(packets, whole, { video, report, window })

  const { frames, longestFrameSeconds, shortestFrameSeconds, isHeld } = timing
  const isTooShort = timing.durationSeconds < SHORTEST_MOVING_SECONDS
  const durationSeconds = isTooShort ? STILL_SECONDS : timing.durationSeconds
  const info: VideoInfo = {
    ...{ type, ...displayed, durationSeconds, frames, fps: frames / durationSeconds },
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
  return editVideo(info, edit, { ...part, sourceSeconds: edit.missingSeconds === undefined ? sourceSeconds : null })
}

/** Packets of the part that an edit chooses, where it is in the picture, and where in the file. */
function partOf(
  all: FfprobePacket[],
  endSeconds: number,
  { edit, fileStart, pictureStart }: { edit: Edit; fileStart: number; pictureStart: number },
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
      afterSeconds: inFile(between(frames, from)),
      beforeSeconds: inFile(between(frames, end)),
      skippedFrames: from - (entry ? frames.indexOf(entry) : 0),
    },
  }
}

/** Time of the first picture, which is not among the packets of a window. */
const pictureStartOf = (video: FfprobeStream, { startSeconds }: Timing, window: ReadWindow | undefined) =>
  window && window.fromSeconds > 0 ? seconds(video.start_time, 0) : startSeconds

interface Read {
  streams: FfprobeStream[]
  video: FfprobeStream
  packets: FfprobePacket[]
  /** Packets of the picture in the order of their times. */
  shown: FfprobePacket[]
  audio: FfprobeStream | undefined
}

function readStored(
  { streams, video, packets, shown, audio }: Read,
  { durationSeconds, endSeconds }: Timing,
): StoredStreams {
  const ofVideo = packets.filter(({ stream_index }) => stream_index === video.index)
  const keyframes = shown.filter(({ flags }) => flags.includes('K')).map(({ pts_time }) => seconds(pts_time, 0))
  const gaps = keyframes.map((start, at) => (keyframes[at + 1] ?? endSeconds) - start)
  const bitRateOf = (stream: FfprobeStream) => {
    const bytes = packets.reduce(
      (sum, packet) => sum + (packet.stream_index === stream.index ? Number(packet.size) : 0),
      0,
    )
    return Math.round((8 * bytes) / durationSeconds)
  }
  return {
    profile: video.profile ?? '',
    level: video.level ?? -1,
    pixelFormat: video.pix_fmt ?? '',
    isPlain:
      (readRatio(video.sample_aspect_ratio) || 1) === 1 &&
      !hasSideData(video) &&
      readTag(video, 'rotate') === undefined,
    isWhole: ofVideo.length === shown.length && shown[0] === ofVideo[0] && Boolean(shown[0]?.flags.includes('K')),
    longestKeyframeGapSeconds: toMicroseconds(Math.max(0, ...gaps)),
    bitRate: bitRateOf(video),
    soundTracks: streams.filter(({ codec_type }) => codec_type === 'audio').length,
    sound: audio
      ? {
          codec: audio.codec_name ?? '',
          profile: audio.profile ?? '',
          channels: audio.channels ?? 0,
          sampleRate: Number(audio.sample_rate) || 0,
          bitRate: bitRateOf(audio),
        }
      : null,
  }
}

/** Sizes of the decoder's buffer, which mp4 files often have, say nothing about the picture. */
const hasSideData = ({ side_data_list: data = [] }: FfprobeStream) =>
  data.some(({ side_data_type }) => side_data_type !== 'CPB properties')

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
  if (streams.length > limits.streams) {
    throw apiError('unsupported_media_type', {
      message: `The file has more than ${limits.streams} streams.`,
      details: { limit: limits.streams, actual: streams.length },
    })
  }
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
  const ofVideo = packets.filter((packet) => packet.stream_index === video.index && !packet.flags.includes('D'))
  if (ofVideo.length === 0 && window && window.fromSeconds > 0) throw outOfRange('start')
  if (ofVideo.length === 0) throw apiError('corrupt_media', { cause: 'no frame' })
  return ofVideo.toSorted((a, b) => seconds(a.pts_time, 0) - seconds(b.pts_time, 0))
}

type Source = Pick<Reading, 'window'> & { video: FfprobeStream; report: FfprobeReport }

/** Length of the picture: by its header where it may continue after the packets that were read, null if no header has it. */
function lengthOfSource(whole: ReturnType<typeof holdToSound>, { video, report, window }: Source): number | null {
  const { fromSeconds, toSeconds } = window ?? { fromSeconds: 0, toSeconds: READ_SECONDS }
  if (fromSeconds === 0 && whole.durationSeconds < toSeconds - 1) return whole.durationSeconds
  const declared = whole.isHeld ? seconds(report.format?.duration, 0) : declaredDuration(video, report)
  return declared >= whole.durationSeconds - 0.001 ? declared : null
}

/** End of the picture in the file. A picture that nothing follows in the window is held at least until its end. */
function endOfPicture({ endSeconds }: Timing, { video, report, window }: Source): number {
  const declared = seconds(video.start_time, 0) + declaredDuration(video, report)
  return Math.max(endSeconds, window ? Math.min(window.toSeconds, declared) : 0)
}

const declaredDuration = (video: FfprobeStream, report: FfprobeReport): number =>
  durationOfTrack(video) || seconds(report.format?.duration, 0)

/** 0 if no header has it. */
const durationOfTrack = (video: FfprobeStream): number =>
  seconds(video.duration, 0) || readClock(readTag(video, 'DURATION'))

type Timing = ReturnType<typeof measureTiming>

const endOf = (packet: FfprobePacket) => seconds(packet.pts_time, 0) + seconds(packet.duration_time, 0)

/** A single picture with a song is held until the sound ends. A moving picture ends the clip. */
function holdToSound(timing: Timing, heard: FfprobePacket[]) {
  if (timing.frames > 1) return { ...timing, isHeld: false }
  const end = heard.reduce((latest, packet) => Math.max(latest, endOf(packet)), 0)
  const soundSeconds = toMicroseconds(end - timing.startSeconds)
  if (soundSeconds <= timing.durationSeconds) return { ...timing, isHeld: false }
  return { ...timing, endSeconds: end, durationSeconds: soundSeconds, longestFrameSeconds: soundSeconds, isHeld: true }
}

/** Measures the packets, because a header can lie, and a browser's recording has none. */
function measureTiming(shown: FfprobePacket[], video: FfprobeStream, report: FfprobeReport) {
  const startSeconds = seconds(shown[0]?.pts_time, 0)
  const lastStart = seconds(shown.at(-1)?.pts_time, startSeconds)
  const meanGap = shown.length > 1 ? (lastStart - startSeconds) / (shown.length - 1) : 0
  const declared = seconds(video.duration, seconds(report.format?.duration, 0))
  const lastFrameSeconds = seconds(shown.at(-1)?.duration_time, 0) || meanGap || declared || 1
  return timesOf(shown, { start: startSeconds, end: lastStart + lastFrameSeconds })
}

/** `start` is later than the first frame where that one is cut. */
function timesOf(shown: FfprobePacket[], { start: startSeconds, end: endSeconds }: { start: number; end: number }) {
  const starts = [startSeconds, ...shown.slice(1).map((packet) => seconds(packet.pts_time, 0)), endSeconds]
  const lengths = starts.slice(1).map((start, n) => toMicroseconds(start - (starts[n] ?? start)))
  return {
    frames: shown.length,
    startSeconds,
    endSeconds,
    longestFrameSeconds: lengths.reduce((most, length) => Math.max(most, length), 0),
    shortestFrameSeconds: lengths.reduce((least, length) => Math.min(least, length), Number.POSITIVE_INFINITY),
    durationSeconds: toMicroseconds(endSeconds - startSeconds),
  }
}

/**
 * Refuses a file that ended early: its header declares clearly more than there is. For an mp4 the index counts the frames;
 * its duration is wrong in many files with dropped frames. Matroska without durations per stream declares the longest one,
 * so the longest is compared.
 */
function refuseTruncated(packets: FfprobePacket[], timing: Timing, { video, report, window }: Source): void {
  const ofVideo = durationOfTrack(video)
  const declared = Math.min(window?.toSeconds ?? READ_SECONDS, declaredDuration(video, report))
  const end = ofVideo
    ? timing.endSeconds
    : packets.map(endOf).reduce((latest, next) => Math.max(latest, next), timing.endSeconds)
  const actual = end - Math.min(0, timing.startSeconds)
  const indexed = Number(video.nb_frames) || 0
  const found = packets.filter((packet) => packet.stream_index === video.index).length
  const isAllRead = !window && declared < READ_SECONDS
  const isWhole =
    indexed > 0 && isAllRead ? found >= indexed * SMALLEST_WHOLE_PART : actual >= declared * SMALLEST_WHOLE_PART
  if (isWhole) return
  throw apiError('corrupt_media', { details: { declared, actual: Math.round(actual * 1000) / 1000 } })
}

function readColorSpace(video: FfprobeStream): VideoInfo['colorSpace'] {
  if (/^(gbr|rgb|bgr)/.test(video.pix_fmt ?? '')) return 'rgb'
  if (video.color_space === 'bt709') return 'bt709'
  return !video.color_space || video.color_space === 'unknown' ? 'unknown' : 'other'
}

export const readTag = ({ tags = {} }: FfprobeStream, name: string): string | undefined =>
  tags[name] ?? tags[name.toUpperCase()] ?? tags[name.toLowerCase()]

/** ffprobe's precision, without the error of subtraction. */
const toMicroseconds = (value: number): number => Math.round(value * 1e6) / 1e6

function seconds(text: string | undefined, fallback: number): number {
  const value = Number.parseFloat(text ?? '')
  return Number.isFinite(value) ? value : fallback
}

/** `30000/1001` or `16:11`; 0 when undefined, which ffprobe writes as `0/0` or `0:1`. */
function readRatio(text: string | undefined): number {
  const [numerator, denominator] = (text ?? '').split(/[/:]/).map(Number)
  const ratio = (numerator ?? 0) / (denominator ?? 0)
  return Number.isFinite(ratio) ? ratio : 0
}

/** `00:00:02.000000000`, the form of Matroska's DURATION tag. */
export function readClock(text: string | undefined): number {
  const parts = (text ?? '').split(':').map(Number)
  const value = parts.reduce((total, part) => total * 60 + part, 0)
  return parts.length === 3 && Number.isFinite(value) ? value : 0
}
