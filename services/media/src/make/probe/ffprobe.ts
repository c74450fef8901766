import { dirname, resolve } from 'node:path'
import { ApiError } from '@services/common/errors'
import { apiError } from '../../errors.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import {
  type Demuxer,
  hardenedGlobals,
  hardenedInput,
  refusedDecoder,
  refusedPicture,
  refusedStream,
} from '../../ffmpeg/hardening.ts'
import { busyAfterKill, wasKilled } from '../../ffmpeg/machine-faults.ts'
import { type RunLimits, runConfined } from '../../ffmpeg/run-confined.ts'
import { defaultProbeLimits, type ProbeLimits, refuseLargePicture } from './source-limits.ts'

/** The used part of ffprobe's JSON. Times are seconds as text; `N/A` becomes absent. */
export interface FfprobeReport {
  packets?: FfprobePacket[]
  streams?: FfprobeStream[]
  format?: { start_time?: string; duration?: string }
}

export interface FfprobePacket {
  stream_index: number
  pts_time?: string
  duration_time?: string
  /** Bytes. */
  size?: string
  /** `K` keyframe, `D` decoded but not shown (outside an edit list). */
  flags: string
}

export interface FfprobeStream {
  index: number
  codec_type?: string
  codec_name?: string
  profile?: string
  level?: number
  channels?: number
  sample_rate?: string
  pix_fmt?: string
  width?: number
  height?: number
  sample_aspect_ratio?: string
  r_frame_rate?: string
  start_time?: string
  duration?: string
  /** Count in the index of an mp4; absent for fragmented and other files. */
  nb_frames?: string
  color_space?: string
  color_transfer?: string
  /** `progressive`, `unknown`, or the order of two fields: `tt`, `bb`, `tb`, `bt`. */
  field_order?: string
  disposition?: { attached_pic?: number }
  tags?: Record<string, string>
  side_data_list?: { side_data_type?: string; rotation?: number }[]
}

const streamEntries = [
  'format=start_time,duration',
  'stream=index,codec_type,codec_name,pix_fmt,width,height,sample_aspect_ratio,r_frame_rate,start_time,duration,nb_frames',
  'stream=color_space,color_transfer,field_order,profile,level,channels,sample_rate',
  'stream_tags=rotate,alpha_mode,DURATION',
  'stream_disposition=attached_pic',
  'stream_side_data=side_data_type,rotation',
]
const packetEntries = ['packet=stream_index,pts_time,duration_time,size,flags']

/** The packet list ends here, so that a film costs no more than a clip. Must exceed the longest clip. */
export const READ_SECONDS = 40

/** The packets that are read: from the keyframe before a time of the file. */
export interface ReadWindow {
  fromSeconds: number
  toSeconds: number
  /** Where the picture begins in the file; absent if the packets show it. */
  picture?: PictureStart
}

export interface PictureStart {
  startSeconds: number
  /** Length of the pictures before it, which cannot be decoded. */
  lateSeconds: number
}

/** Packets that are read where no part is chosen. */
export const FIRST_PACKETS: ReadWindow = { fromSeconds: 0, toSeconds: READ_SECONDS }

/** Says whether earlier packets of the file were not read. */
export const isAfterOthers = (window: ReadWindow | undefined): boolean => (window?.fromSeconds ?? 0) > 0

/** contract/media.md 5.9 step 0: five seconds. Reading 150 MB takes a tenth of one. */
const runLimits: RunLimits = { wallSeconds: 5, cpuSeconds: 5, memoryBytes: 2 * 1024 ** 3, fileBytes: 0 }

/**
 * Reads a file's headers, and with `packets` also those of its first 40 s or of a window, which headers cannot lie
 * about. Throws corrupt_media when the forced demuxer cannot open it, and unsupported_media_type for a codec off the
 * list. Throws dimensions_exceeded for a picture above the decoders' limit, and too_many_frames when the packet list is
 * too long. Throws processing_timeout, and busy when ffprobe was killed twice.
 */
export async function runFfprobe(
  tools: MediaTools,
  path: string,
  options: {
    demuxer: Demuxer
    /** Decoders beside the usual ones. */
    moreDecoders?: readonly string[]
    packets: boolean | ReadWindow
    limits?: ProbeLimits
    signal?: AbortSignal | undefined
  },
): Promise<FfprobeReport> {
  const absolutePath = resolve(path)
  const args = [
    ...['-v', 'warning', ...hardenedGlobals, ...hardenedInput(options.demuxer, options.moreDecoders)],
    ...(options.packets ? ['-read_intervals', intervalOf(options.packets)] : []),
    ...['-show_entries', [...streamEntries, ...(options.packets ? packetEntries : [])].join(':')],
    ...['-of', 'json=compact=1', '-i', absolutePath],
  ]
  const run = () =>
    runConfined(tools.ffprobe.path, args, {
      ...{ limits: runLimits, limiters: tools.limiters, cwd: dirname(absolutePath), signal: options.signal },
    })
  const first = await run()
  const outcome = wasKilled(first) ? await run() : first
  if (wasKilled(outcome)) throw busyAfterKill(outcome)
  if (outcome.state === 'too-much-output') throw apiError('too_many_frames')
  if (outcome.state === 'timed-out') throw apiError('processing_timeout', { cause: outcome.stderr })
  const { limits = defaultProbeLimits } = options
  if (outcome.state === 'failed') {
    refuseHugePicture(limits, outcome.stderr)
    throw refusalOf(outcome.stderr)
  }
  const report = JSON.parse(outcome.stdout) as FfprobeReport
  // Some demuxers continue without it. A cover picture may have any size, because it is never decoded.
  if (report.streams?.some(isUnreadableVideo)) refuseHugePicture(limits, outcome.stderr)
  return report
}

const intervalOf = (packets: true | ReadWindow): string => {
  if (packets === true) return `%+${READ_SECONDS}`
  const { fromSeconds, toSeconds } = packets
  return `${fromSeconds > 0 ? fromSeconds.toFixed(3) : ''}%${toSeconds.toFixed(3)}`
}

const isUnreadableVideo = ({ codec_type, width, disposition }: FfprobeStream) =>
  codec_type === 'video' && !width && !disposition?.attached_pic

function refuseHugePicture(limits: ProbeLimits, stderr: string): void {
  const [, width, height] = refusedPicture.exec(stderr) ?? []
  if (width) refuseLargePicture(limits, Number(width), Number(height))
}

export function refusalOf(stderr: string) {
  const codec = refusedDecoder.exec(stderr)?.[1]
  if (!codec) return apiError('corrupt_media', { cause: stderr })
  return apiError('unsupported_media_type', { message: 'A codec is not supported.', details: { codec }, cause: stderr })
}

export function refusedStreamIn(error: unknown): number | undefined {
  const found = error instanceof ApiError && refusedStream.exec(String(error.cause))
  return found ? Number(found[1]) : undefined
}
