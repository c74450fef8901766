import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '@services/common/errors'
import type { Size } from '../../core/clips/geometry.ts'
import { isAnimation, type MediaInfo } from '../../db/media-info.ts'
import { apiError } from '../../errors.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { LARGEST_SIDE } from '../../ffmpeg/hardening.ts'
import { MACHINE_FAULT } from '../../ffmpeg/machine-faults.ts'
import { MAX_SEQUENCE_BYTES } from '../command/ffmpeg-outputs.ts'
import { workFiles } from '../command/work-files.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import { runFfprobe } from '../probe/ffprobe.ts'
import { readClock, readTag } from '../probe/ffprobe-values.ts'
import { measureGif } from '../probe/gif-info.ts'
import { SMALLEST_WHOLE_PART } from '../probe/picture-times.ts'
import { defaultProbeLimits } from '../probe/source-limits.ts'
import { ChangingPicture, UnusableOutput } from './failures.ts'
import type { FfmpegLog } from './ffmpeg-log.ts'

export interface Rendition extends Size {
  path: string
  bytes: number
  sha256: string
  /** True for the source's own streams. */
  copied?: boolean
}

/** Rounding may cost a clip the duration of its last frame; 0.1 s is invisible. */
const DURATION_TOLERANCE_SECONDS = 0.1

/** Up to a fifth of a VP8 file's frames are references that are never shown. */
const SMALLEST_DECODED_PART = 0.75

/** Throws corrupt_media when, by the log, much was not decoded; a held last frame still gives the planned duration. */
export function requireDecoded(
  log: FfmpegLog,
  { videoStream, holdsLastFrame, isStill }: RenditionPlan,
  info: MediaInfo,
) {
  if (!holdsLastFrame || isStill || isAnimation(info)) return
  const decoded = log.framesOf(videoStream)
  // Two packets may be the two fields of one frame.
  const frames = info.isInterlaced ? info.frames / 2 : info.frames
  if (decoded === undefined || decoded >= frames * SMALLEST_DECODED_PART) return
  throw apiError('corrupt_media', { cause: `${decoded} of ${info.frames} frames were decoded` })
}

/**
 * Checks a copy by the run that decoded every frame of it. Throws ChangingPicture if its later parts may not fit.
 * Throws UnusableOutput if the decoder complained, or left frames out without a complaint.
 */
export async function requireFitToItsEnd(
  log: FfmpegLog,
  { directory, plan, info }: { directory: string; plan: RenditionPlan; info: MediaInfo },
): Promise<void> {
  const { width, height } = plan.video
  const hasOnePicture = log.pictures.size === 1 && log.pictures.has(`${width}x${height} yuv420p`)
  // H.264 says profile, level and interlacing there, which its frames do not show.
  const hasOneSequence = plan.copies === 'webm' || (await countSequences(join(directory, workFiles.sequences))) === 1
  if (!hasOnePicture || !hasOneSequence) throw new ChangingPicture('not copied: its picture changes')
  if (log.complaint) throw new UnusableOutput(`not copied: ${log.complaint}`)
  const { writtenFrames = 0 } = log
  if (writtenFrames !== info.frames)
    throw new UnusableOutput(`not copied: ${writtenFrames} of ${info.frames} frames were decoded`)
}

/** Counts the different sequence parameter sets, each behind a start code (ITU-T H.264, annex B). */
async function countSequences(path: string): Promise<number> {
  const bytes = await readFile(path)
  if (bytes.length >= MAX_SEQUENCE_BYTES) return Number.POSITIVE_INFINITY
  const units = bytes.toString('latin1').split('\0\0\x01').slice(1)
  // A start code may have a zero more.
  return new Set(units.map((unit) => unit.replace(/\0$/, ''))).size
}

/** Returns the seconds of both files. Throws UnusableOutput when one is not as planned. */
export async function verifyVideos(
  tools: MediaTools,
  {
    directory,
    plan,
    info,
    signal,
  }: { directory: string; plan: RenditionPlan; info: MediaInfo; signal?: AbortSignal | undefined },
): Promise<{ mp4: number; webm: number }> {
  const { video: size } = plan
  const encoded = tools.ffmpeg.webmVideoEncoder === 'libvpx' ? 'vp8' : 'vp9'
  const codec = plan.copies === 'webm' && !isAnimation(info) ? info.codec : encoded
  const [mp4, webm] = await Promise.all([
    verifyMp4(tools, { directory, plan, signal }),
    verifyVideo(tools, join(directory, workFiles.webm), { demuxer: 'matroska', codec, size, signal }),
  ])
  return { mp4, webm }
}

/** Returns the seconds of the mp4. Throws UnusableOutput when it is not as planned. */
export const verifyMp4 = (
  tools: MediaTools,
  { directory, plan, signal }: { directory: string; plan: RenditionPlan; signal?: AbortSignal | undefined },
): Promise<number> =>
  verifyVideo(tools, join(directory, workFiles.mp4), { demuxer: 'mov', codec: 'h264', size: plan.video, signal })

/**
 * Throws corrupt_media when all files end early, because much of the source was not decoded. Throws an Error when one
 * file is shorter than the others: all come from the same frames, so the source is not at fault.
 */
export function requireWholeLength(
  plan: RenditionPlan,
  info: MediaInfo,
  { mp4, webm, gif }: Record<'mp4' | 'webm' | 'gif', number>,
): void {
  // A rewritten GIF is a copy of the source.
  const gifFrameSeconds = plan.gif.from === 'rewrite' ? Number.POSITIVE_INFINITY : plan.gif.delayCentiseconds / 100
  const isGifApart = Math.abs(gif - mp4) > DURATION_TOLERANCE_SECONDS + gifFrameSeconds
  if (isGifApart || Math.abs(mp4 - webm) > DURATION_TOLERANCE_SECONDS) {
    throw new Error(`mp4 lasts ${mp4} s, webm ${webm} s and gif ${gif} s`)
  }
  if (mp4 >= info.durationSeconds * SMALLEST_WHOLE_PART - DURATION_TOLERANCE_SECONDS) return
  throw apiError('corrupt_media', { details: { declared: info.durationSeconds, actual: mp4 } })
}

/** Returns the seconds of the picture. Throws UnusableOutput for another codec or size. */
export async function verifyVideo(
  tools: MediaTools,
  path: string,
  expected: { demuxer: 'mov' | 'matroska'; codec: string; size: Size; signal?: AbortSignal | undefined },
): Promise<number> {
  const { demuxer, codec, size, signal } = expected
  const verifying = { ...tools, ffprobe: tools.verifier }
  const report = await runFfprobe(verifying, path, { demuxer, packets: false, signal }).catch((cause) => {
    signal?.throwIfAborted()
    throw unreadable(path, cause)
  })
  const video = report.streams?.find((stream) => stream.codec_type === 'video')
  const matches = video?.codec_name === codec && video.width === size.width && video.height === size.height
  if (!matches) throw new UnusableOutput(`${path} is not ${codec} of ${size.width}x${size.height}`)
  // The DURATION tag of WebM is the end of the track; the file's duration is the sound's where a damaged picture is
  // shorter.
  const end = readClock(readTag(video, 'DURATION'))
  const seconds = end > 0 ? end - (Number.parseFloat(video.start_time ?? '') || 0) : 0
  return Number.parseFloat(video.duration ?? '') || seconds || Number.parseFloat(report.format?.duration ?? '') || 0
}

/**
 * Size and duration by its blocks; the probe of the source has checked its limits. Throws UnusableOutput for a broken
 * GIF.
 */
export async function verifyGif(path: string): Promise<Size & { seconds: number }> {
  const limits = { ...defaultProbeLimits, side: LARGEST_SIDE, frames: 10_000 }
  const { width, height, delaysCentiseconds, repaired } = await measureGif(path, limits).catch((cause) => {
    throw unreadable(path, cause)
  })
  if (repaired) throw new UnusableOutput(`${path} ends early`)
  return { width, height, seconds: delaysCentiseconds.reduce((sum, delay) => sum + delay, 0) / 100 }
}

/** UnusableOutput, unless the reader itself failed: killed, too slow, or denied access. */
function unreadable(path: string, cause: unknown): Error {
  const { code } = cause as { code?: string }
  const isRefusal = cause instanceof ApiError && cause.status === 422 && !MACHINE_FAULT.test(String(cause.cause))
  const Failure = code === 'ENOENT' || isRefusal ? UnusableOutput : Error
  return new Failure(`${path} cannot be read`, { cause })
}
