// Times of a picture by its packets: where it begins and ends, how long its frames are shown, whether the file goes on.
import { apiError } from '../../errors.ts'
import {
  type FfprobePacket,
  type FfprobeReport,
  type FfprobeStream,
  FIRST_PACKETS,
  type PictureStart,
  type ReadWindow,
} from './ffprobe.ts'
import { readClock, readTag, seconds, toMicroseconds } from './ffprobe-values.ts'

/** ffmpeg exits 0 for a file cut in the middle, so the missing part must be measured (contract/media.md 4.7). */
export const SMALLEST_WHOLE_PART = 0.9

/** A file that plays for so long is taken as far as it goes, as browsers do. */
const SHORTEST_PART_SECONDS = 1

/** A chosen stream of a report, and the packets that were read, if not the first ones. */
interface Source {
  video: FfprobeStream
  report: FfprobeReport
  window: ReadWindow | undefined
}

/**
 * Returns the length of the picture in seconds, by its header where it may go on after the packets that were
 * read. Null if neither the packets nor the header give it.
 */
export function lengthOfSource(
  whole: ReturnType<typeof holdToSound>,
  { lateSeconds }: PictureStart,
  { video, report, window }: Source,
): number | null {
  const { fromSeconds, toSeconds } = window ?? FIRST_PACKETS
  if (fromSeconds === 0 && whole.durationSeconds < toSeconds - 1) return whole.durationSeconds
  const ofFile = whole.isHeld ? seconds(report.format?.duration, 0) : declaredDuration(video, report)
  const declared = toMicroseconds(ofFile - lateSeconds)
  // The length of the last frame may be a mean of all.
  const isCredible = declared >= whole.durationSeconds - Math.max(0.001, whole.longestFrameSeconds)
  return declared > 0 && isCredible ? declared : null
}

/** More than the time between two frames of a moving picture. */
const PAUSE_SECONDS = 1

/**
 * Says whether the last picture stays to the end of the packets that were read while the file goes on: the next one is
 * unknown.
 */
export function pausesAtEnd(last: FfprobePacket, { video, report, window = FIRST_PACKETS }: Source): boolean {
  const end = endOf(last) + PAUSE_SECONDS
  const declared = declaredDuration(video, report)
  return end < window.toSeconds && (declared === 0 || end < declared)
}

export const declaredDuration = (video: FfprobeStream, report: FfprobeReport): number =>
  durationOfTrack(video) || seconds(report.format?.duration, 0)

/** Returns 0 if no header has it. */
const durationOfTrack = (video: FfprobeStream): number =>
  seconds(video.duration, 0) || readClock(readTag(video, 'DURATION'))

export type Timing = ReturnType<typeof measureTiming>

const endOf = (packet: FfprobePacket) => seconds(packet.pts_time, 0) + seconds(packet.duration_time, 0)

/** A single picture with a song is held until the sound ends. A moving picture ends the clip. */
export function holdToSound(timing: Timing, heard: FfprobePacket[]) {
  if (timing.frames > 1) return { ...timing, isHeld: false }
  const end = heard.reduce((latest, packet) => Math.max(latest, endOf(packet)), 0)
  const soundSeconds = toMicroseconds(end - timing.startSeconds)
  if (soundSeconds <= timing.durationSeconds) return { ...timing, isHeld: false }
  return { ...timing, endSeconds: end, durationSeconds: soundSeconds, longestFrameSeconds: soundSeconds, isHeld: true }
}

/** Measures the packets, because a header can lie, and a browser's recording has none. */
export function measureTiming(shown: FfprobePacket[], video: FfprobeStream, report: FfprobeReport) {
  const startSeconds = seconds(shown[0]?.pts_time, 0)
  const lastStart = seconds(shown.at(-1)?.pts_time, startSeconds)
  const meanGap = shown.length > 1 ? (lastStart - startSeconds) / (shown.length - 1) : 0
  const declared = seconds(video.duration, seconds(report.format?.duration, 0))
  const lastFrameSeconds = seconds(shown.at(-1)?.duration_time, 0) || meanGap || declared || 1
  return timesOf(shown, { start: startSeconds, end: lastStart + lastFrameSeconds })
}

/** Returns the time from each to the next. */
export const gapsOf = (times: readonly number[]): number[] =>
  times.slice(1).map((time, index) => time - (times[index] ?? time))

/** Measures frames up to an end, from a start that may be later than the first frame, which is then cut. */
export function timesOf(
  shown: FfprobePacket[],
  { start: startSeconds, end: endSeconds }: { start: number; end: number },
) {
  const starts = [startSeconds, ...shown.slice(1).map((packet) => seconds(packet.pts_time, 0)), endSeconds]
  const lengths = gapsOf(starts).map(toMicroseconds)
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
 * Returns the pictures that can be decoded: a film cut without encoding may begin between two keyframes, and browsers
 * play it from the first. All if no keyframe follows. `shown` is in the order of times, `packets` in that of decoding.
 */
export function fromFirstKeyframe(
  packets: readonly FfprobePacket[],
  shown: FfprobePacket[],
  video: FfprobeStream,
): FfprobePacket[] {
  const coded = packets.filter(({ stream_index }) => stream_index === video.index)
  const first = coded.findIndex(({ flags }) => flags.includes('K'))
  if (first <= 0) return shown
  const after = new Set(coded.slice(first))
  const from = seconds(coded[first]?.pts_time, 0)
  return shown.filter((packet) => after.has(packet) && seconds(packet.pts_time, 0) >= from)
}

/** Throws corrupt_media for less than a second behind pictures that cannot be decoded, unless that is nearly all. */
export function refuseShortRest(
  { endSeconds, durationSeconds }: Timing,
  firstPicture: FfprobePacket | undefined,
): void {
  const declared = toMicroseconds(endSeconds - seconds(firstPicture?.pts_time, 0))
  if (durationSeconds >= Math.min(SHORTEST_PART_SECONDS, declared * SMALLEST_WHOLE_PART)) return
  throw apiError('corrupt_media', { details: { declared, actual: Math.round(durationSeconds * 1000) / 1000 } })
}

/**
 * Says whether a file ends early: its header declares clearly more than there is. For an mp4 the index counts the
 * frames; its duration is wrong in many files with dropped frames. Matroska without durations per stream declares the
 * longest one, so the longest is compared. Refuses a file of which less than a second is there.
 */
export function endsEarly(packets: FfprobePacket[], timing: Timing, { video, report, window }: Source): boolean {
  const ofVideo = durationOfTrack(video)
  const declared = Math.min((window ?? FIRST_PACKETS).toSeconds, declaredDuration(video, report))
  const end = ofVideo
    ? timing.endSeconds
    : packets.map(endOf).reduce((latest, next) => Math.max(latest, next), timing.endSeconds)
  const actual = end - Math.min(0, timing.startSeconds)
  const indexed = Number(video.nb_frames) || 0
  const found = packets.filter((packet) => packet.stream_index === video.index).length
  const isAllRead = !window && declared < FIRST_PACKETS.toSeconds
  const isWhole =
    indexed > 0 && isAllRead ? found >= indexed * SMALLEST_WHOLE_PART : actual >= declared * SMALLEST_WHOLE_PART
  if (isWhole) return false
  if (timing.durationSeconds >= SHORTEST_PART_SECONDS) return true
  throw apiError('corrupt_media', { details: { declared, actual: Math.round(actual * 1000) / 1000 } })
}

/** Returns where the picture begins, by its first packets and those of them that can be decoded. */
export function pictureStartOf(shown: FfprobePacket[], pictures: FfprobePacket[], video: FfprobeStream): PictureStart {
  const startSeconds = seconds(shown[0]?.pts_time, seconds(video.start_time, 0))
  return { startSeconds, lateSeconds: Math.max(0, startSeconds - seconds(pictures[0]?.pts_time, startSeconds)) }
}
