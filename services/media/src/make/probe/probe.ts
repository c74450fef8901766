import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, rm, stat } from 'node:fs/promises'
import type { GifInfo, MediaInfo, MediaType } from '../../db/media-info.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { demuxerOf } from '../../ffmpeg/hardening.ts'
import { type FfprobeReport, refusedStreamIn, runFfprobe } from './ffprobe.ts'
import { measureGif } from './gif-info.ts'
import { findCodecToHide, writeChange } from './hide-track.ts'
import { defaultProbeLimits, type ProbeLimits, refuseLongDuration } from './limits.ts'
import { sniffFile } from './sniff.ts'
import { readVideoInfo } from './video-info.ts'

/**
 * This folder measures a file and refuses one over a limit, before anything is decoded.
 * The one rule: the file's own claims are not trusted: the type is by its bytes, the duration by its packets.
 * Tests: beside the files. Next: `video-info.ts` and `gif-info.ts` measure, `limits.ts` refuses, then `../transcode`.
 */
export async function probe(
  tools: MediaTools,
  path: string,
  options: { limits?: ProbeLimits; signal?: AbortSignal | undefined } = {},
): Promise<MediaInfo> {
  const { limits = defaultProbeLimits, signal } = options
  const type = await sniffFile(path)
  if (type === 'gif') return probeGif(path, limits)
  const look = (copy: string) => runFfprobe(tools, copy, { demuxer: demuxerOf[type], packets: true, limits, signal })
  const report = await look(path).catch((error) => lookWithoutSound(path, { type, error, look, most: limits.streams }))
  return readVideoInfo(report, type, limits)
}

/**
 * ffprobe refuses a whole file for one codec off its list. Hides sound in such a codec in a copy, track by track, so that
 * no needless decoder is opened. Throws the refusal for anything but sound.
 */
async function lookWithoutSound(
  path: string,
  work: { type: MediaType; error: unknown; look: (path: string) => Promise<FfprobeReport>; most: number },
): Promise<FfprobeReport> {
  const { type, look, most } = work
  const copy = `${path}.${randomUUID()}`
  let { error } = work
  try {
    for (let hidden = 0; hidden < most; hidden++) {
      const index = refusedStreamIn(error)
      const change = index === undefined ? undefined : await findCodecToHide(path, { type, index })
      if (!change) break
      if (hidden === 0) await copyFile(path, copy, constants.COPYFILE_FICLONE)
      await writeChange(copy, change)
      const report = await look(copy).catch((next) => {
        error = next
      })
      if (report) return report
    }
    throw error
  } finally {
    await rm(copy, { force: true })
  }
}

/** Larger GIFs are encoded again at 480 px: a copy of 100 MB is useless (contract/media.md 5.9). */
const LARGEST_REWRITTEN_GIF_BYTES = 25_000_000

async function probeGif(path: string, limits: ProbeLimits): Promise<GifInfo> {
  const { delaysCentiseconds, framesInsideCanvas, ...gif } = await measureGif(path, limits)
  const { size } = await stat(path)
  const frames = delaysCentiseconds.length
  // One frame is a still, shown for a second whatever its delay.
  const delays = frames === 1 ? [100] : delaysCentiseconds
  const durationSeconds = delays.reduce((total, delay) => total + delay, 0) / 100
  refuseLongDuration(limits, durationSeconds)
  return {
    type: 'gif',
    ...gif,
    durationSeconds,
    frames,
    fps: frames / durationSeconds,
    hasAudio: false,
    tickCentiseconds: commonTick(delays),
    rewritable: size <= LARGEST_REWRITTEN_GIF_BYTES && framesInsideCanvas,
  }
}

/**
 * The largest step of 2 to 10 cs that divides every delay, so that no frame moves. A larger step would give few frames a
 * second, which players seek badly. Else 2 cs: 50 fps, 1 cs off at most.
 */
function commonTick(delays: number[]): number {
  for (let tick = 10; tick > 2; tick--) {
    if (delays.every((delay) => delay % tick === 0)) return tick
  }
  return 2
}
