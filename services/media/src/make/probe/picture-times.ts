// Times of a picture by its packets: where it begins and ends, how long its frames are shown, whether the file goes on.
// Tests: probe.test.ts.
import { apiError } from '../../errors.ts'
import { type FfprobePacket, type FfprobeReport, type FfprobeStream, READ_SECONDS, type ReadWindow } from './ffprobe.ts'
import { readClock, readTag, seconds, toMicroseconds } from './ffprobe-values.ts'

/** ffmpeg exits 0 for a file cut in the middle, so the missing part must be measured (contract/media.md 4.7). */
export const SMALLEST_WHOLE_PART = 0.9

/** A chosen stream of a report, and the packets that were read, if not the first ones. */
interface Source {
  video: FfprobeStream
  report: FfprobeReport
  window: ReadWindow | undefined
}

/** Length of the picture: by its header where it may continue after the packets that were read, null if no header has it. */
export function lengthOfSource(
  whole: ReturnType<typeof holdToSound>,
  { video, report, window }: Source,
): number | null {
  const { fromSeconds, toSeconds } = window ?? { fromSeconds: 0, toSeconds: READ_SECONDS }
  if (fromSeconds === 0 && whole.durationSeconds < toSeconds - 1) return whole.durationSeconds
  const declared = whole.isHeld ? seconds(report.format?.duration, 0) : declaredDuration(video, report)
  return declared >= whole.durationSeconds - 0.001 ? declared : null
}

/** End of the picture in the file. A picture that nothing follows in the window is held at least until its end. */
export function endOfPicture({ endSeconds }: Timing, { video, report, window }: Source): number {
  const declared = seconds(video.start_time, 0) + declaredDuration(video, report)
  return Math.max(endSeconds, window ? Math.min(window.toSeconds, declared) : 0)
}

export const declaredDuration = (video: FfprobeStream, report: FfprobeReport): number =>
  durationOfTrack(video) || seconds(report.format?.duration, 0)

/** 0 if no header has it. */
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

/** `start` is later than the first frame where that one is cut. */
export function timesOf(
  shown: FfprobePacket[],
  { start: startSeconds, end: endSeconds }: { start: number; end: number },
) {
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
export function refuseTruncated(packets: FfprobePacket[], timing: Timing, { video, report, window }: Source): void {
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

/** Time of the first picture, which is not among the packets of a window. */
export const pictureStartOf = (video: FfprobeStream, { startSeconds }: Timing, window: ReadWindow | undefined) =>
  window && window.fromSeconds > 0 ? seconds(video.start_time, 0) : startSeconds
