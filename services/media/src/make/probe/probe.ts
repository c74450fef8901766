import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, rm, stat } from 'node:fs/promises'
import { choosesPart, type Edit, startInFile } from '../../core/edits/edit.ts'
import { type AnimationInfo, isAnimationType, type MediaInfo, type MediaType } from '../../db/media-info.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { demuxerOf, moreDecodersOf } from '../../ffmpeg/hardening.ts'
import { measureAnimation, stepOf } from './animation-info.ts'
import { repetitionsOf } from './avif-loops.ts'
import { firstSecondOf } from './choose-part.ts'
import { readHeader, writeChange } from './edit-header.ts'
import { editGif } from './edited-info.ts'
import {
  type FfprobeReport,
  FIRST_PACKETS,
  type PictureStart,
  READ_SECONDS,
  type ReadWindow,
  refusedStreamIn,
  runFfprobe,
} from './ffprobe.ts'
import { measureGif } from './gif-info.ts'
import { partOfGif } from './gif-part.ts'
import { findCodecToHide } from './hide-stream.ts'
import { sniffFile } from './sniff.ts'
import {
  defaultProbeLimits,
  type ProbeLimits,
  refuseLongDuration,
  refuseLongSource,
  stillImage,
} from './source-limits.ts'
import { endsInPause, findPictureStart, readVideoInfo } from './video-info.ts'

/**
 * This folder measures a file and refuses one over a limit, before anything is decoded. The file's own claims are not
 * trusted: the type is by its bytes, the duration by its packets. `video-info.ts` and `gif-info.ts` measure,
 * `limits.ts` refuses.
 */
export async function probe(
  tools: MediaTools,
  path: string,
  options: { limits?: ProbeLimits; edit?: Edit | undefined; signal?: AbortSignal | undefined } = {},
): Promise<MediaInfo> {
  const { limits = defaultProbeLimits, edit, signal } = options
  const type = await sniffFile(path, limits.types)
  if (isAnimationType(type)) return probeAnimation(path, { type, limits, edit })
  // The demuxer of some versions shows a still picture as a film of one frame.
  const header = type === 'avif' ? await readHeader(path, type) : undefined
  if (type === 'avif' && !header) throw stillImage('no moov')
  const [demuxer, moreDecoders] = [demuxerOf[type], moreDecodersOf(type)]
  const look = (packets: boolean | ReadWindow) =>
    withoutRefusedTracks(path, { type, most: limits.allStreams }, (copy) =>
      runFfprobe(tools, copy, { demuxer, moreDecoders, packets, limits, signal }),
    )
  const window = edit && (await windowOf(edit, limits, async () => findPictureStart(await look(true), type)))
  const report = await look(window ?? true)
  const loops = header && { loopCount: repetitionsOf(header.bytes) }
  if (!choosesPart(edit) || !endsInPause(report, type, window))
    return { ...readVideoInfo(report, type, { limits, edit, window }), ...loops }
  const read = window ?? FIRST_PACKETS
  const further = { ...read, toSeconds: read.toSeconds + LONGEST_PAUSE_SECONDS }
  return { ...readVideoInfo(await look(further), type, { limits, edit, window: further }), ...loops }
}

/** Packets of five minutes at 60 frames a second have half of the characters that ffprobe may write (ffprobe.ts). */
const LONGEST_PAUSE_SECONDS = 300

/** So much is read after a part, so that its last frame is seen to end. */
const MARGIN_SECONDS = 2

/** The packets to read for an edit; undefined for the first ones, as without an edit. */
async function windowOf(
  edit: Edit,
  limits: ProbeLimits,
  readPictureStart: () => Promise<PictureStart>,
): Promise<ReadWindow | undefined> {
  const { duration = Number.POSITIVE_INFINITY, speed = 1 } = edit
  const start = startInFile(edit)
  const seconds = Math.min(duration, limits.durationSeconds * speed) + MARGIN_SECONDS
  const fromSeconds = firstSecondOf(start)
  if (fromSeconds === 0) return start + seconds > READ_SECONDS ? { fromSeconds, toSeconds: start + seconds } : undefined
  // Times of an edit count from the first picture that can be decoded, those of packets from the file's own zero.
  const picture = await readPictureStart()
  const begins = Math.max(0, picture.startSeconds)
  return { fromSeconds: begins + fromSeconds, toSeconds: begins + start + seconds, picture }
}

/**
 * ffprobe refuses a whole file for one codec off its list. Hides streams in such a codec in a copy, one by one, so that
 * no needless decoder is opened. Throws the refusal if no picture would be left.
 */
async function withoutRefusedTracks(
  path: string,
  { type, most }: { type: MediaType; most: number },
  look: (path: string) => Promise<FfprobeReport>,
): Promise<FfprobeReport> {
  const copy = `${path}.${randomUUID()}`
  let error: unknown
  try {
    const report = await look(path).catch((refusal) => {
      error = refusal
    })
    if (report) return report
    const first = error
    for (let hidden = 0; hidden < most; hidden++) {
      const index = refusedStreamIn(error)
      const change =
        index === undefined ? undefined : await findCodecToHide(hidden === 0 ? path : copy, { type, index })
      if (!change) break
      if (hidden === 0) await copyFile(path, copy, constants.COPYFILE_FICLONE)
      await writeChange(copy, change)
      const report = await look(copy).catch((next) => {
        error = next
      })
      if (report && lacksPicture(report)) throw first
      if (report) return report
    }
    throw error
  } finally {
    await rm(copy, { force: true })
  }
}

function lacksPicture({ streams = [] }: FfprobeReport): boolean {
  const pictures = streams.filter(({ codec_type, disposition }) => codec_type === 'video' && !disposition?.attached_pic)
  return pictures.length > 0 && pictures.every(({ codec_name = 'unknown' }) => codec_name === 'unknown')
}

/** Larger GIFs are encoded again at 480 px: a copy of 100 MB is useless (contract/media.md 5.9). */
const LARGEST_REWRITTEN_GIF_BYTES = 25_000_000

async function probeAnimation(
  path: string,
  { type, limits, edit }: { type: AnimationInfo['type']; limits: ProbeLimits; edit: Edit | undefined },
): Promise<AnimationInfo> {
  const { delaysCentiseconds, canBeServed, repaired, ...facts } =
    type === 'gif'
      ? gifFacts(await measureGif(path, limits))
      : { ...(await measureAnimation(path, type, limits)), canBeServed: false }
  const step = type === 'gif' ? commonTick : stepOf
  const { size } = await stat(path)
  const frames = delaysCentiseconds.length
  // One frame is a still, shown for a second whatever its delay.
  const delays = frames === 1 ? [100] : delaysCentiseconds
  const describe = (shown: number[]): AnimationInfo => ({
    ...{ type, ...facts, ...timesOf(shown), hasAudio: false, tickCentiseconds: step(shown) },
    ...(repaired && { repaired: true as const }),
    rewritable: size <= LARGEST_REWRITTEN_GIF_BYTES && canBeServed,
  })
  const whole = describe(delays)
  const { speed = 1 } = edit ?? {}
  const part = edit && partOfGif(delays, edit)
  if (choosesPart(edit)) refuseLongSource(limits, whole.durationSeconds)
  refuseLongDuration(limits, (part ? total(part.delays) / 100 : whole.durationSeconds) / speed)
  if (!edit || !part) return whole
  const tickCentiseconds = step(
    part.delays.map((delay) => (type === 'gif' ? Math.round(delay / speed) : delay / speed)),
  )
  const chosen = { ...describe(part.delays), tickCentiseconds }
  return editGif(chosen, edit, { ...part, sourceSeconds: whole.durationSeconds })
}

function gifFacts({ framesInsideCanvas, decoded, ...facts }: Awaited<ReturnType<typeof measureGif>>) {
  const canBeServed = framesInsideCanvas && !facts.repaired
  return { ...facts, canBeServed, ...(!framesInsideCanvas && { decoded }) }
}

const total = (delays: readonly number[]) => delays.reduce((sum, delay) => sum + delay, 0)

function timesOf(delays: readonly number[]) {
  const durationSeconds = total(delays) / 100
  return { durationSeconds, frames: delays.length, fps: delays.length / durationSeconds }
}

/**
 * The largest step of 2 to 10 cs that divides every delay, so that no frame moves. A larger step would give few frames
 * a second, which players seek badly. Else 2 cs: 50 fps, 1 cs off at most.
 */
function commonTick(delays: number[]): number {
  for (let tick = 10; tick > 2; tick--) {
    if (delays.every((delay) => delay % tick === 0)) return tick
  }
  return 2
}
