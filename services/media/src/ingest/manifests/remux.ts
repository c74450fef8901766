import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Semaphore } from '@services/common/concurrency/semaphore'
import { apiError } from '../../errors.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { hardenedGlobals, hardenedInput, type StreamDemuxer } from '../../ffmpeg/hardening.ts'
import { busyAfterKill, isDiskFull, wasKilled } from '../../ffmpeg/machine-faults.ts'
import { type RunLimits, type RunOutcome, runConfined } from '../../ffmpeg/run-confined.ts'
import { refusalOf } from '../../make/probe/ffprobe.ts'
import { refuseManifest } from './manifest.ts'

/** ffmpeg copies 150 MB in half a second. */
const timeLimits = { wallSeconds: 20, cpuSeconds: 20, memoryBytes: 2 * 1024 ** 3 } satisfies Partial<RunLimits>

/** Allowance for the headers of another container around the same streams. */
const CONTAINER_BYTES = 1024 ** 2

/**
 * Joins a picture and perhaps its sound without encoding: mp4, or webm if all tracks are. Returns the path. Throws
 * unsupported_site_content, corrupt_media, unsupported_media_type, processing_timeout.
 */
export async function remux(
  { tools, probes }: { tools: MediaTools; probes: Semaphore },
  tracks: readonly string[],
  { directory, maxBytes, key, signal, missing }: RemuxOptions,
): Promise<string> {
  const inputs = await Promise.all(tracks.map(async (track) => ({ path: track, demuxer: await demuxerFor(track) })))
  const output = inputs.every(({ demuxer }) => demuxer === 'matroska') ? 'webm' : 'mp4'
  const path = join(directory, `out.${output}`)
  const limits = { ...timeLimits, fileBytes: maxBytes + CONTAINER_BYTES }
  const ffmpeg = (args: string[]) =>
    runConfined(tools.ffmpeg.path, args, { limits, limiters: tools.limiters, cwd: directory, signal })
  const run = async () => {
    const delays = inputs.length > 1 ? delaysIn(await ffmpeg(describeCommand(inputs)), inputs, missing) : [0]
    return ffmpeg(remuxCommand(inputs, delays, output, path))
  }
  const outcome = await probes.run(run, { key, signal })
  if (outcome.state !== 'done') throw failureOf(outcome)
  return path
}

interface RemuxOptions {
  directory: string
  maxBytes: number
  key: string
  signal: AbortSignal
  /** Seconds that each track lacks at its beginning. */
  missing: readonly number[]
}

interface RemuxInput {
  path: string
  demuxer: StreamDemuxer
}

function remuxCommand(
  inputs: readonly RemuxInput[],
  delays: readonly number[],
  output: 'mp4' | 'webm',
  path: string,
): string[] {
  const opened = inputs.flatMap((input, index) => ['-itsoffset', (delays[index] ?? 0).toFixed(6), ...openedBy(input)])
  return [
    ...['-nostdin', '-y', '-v', 'error', ...hardenedGlobals, ...opened],
    ...['-map', '0:v:0', '-map', inputs.length > 1 ? '1:a:0' : '0:a:0?', '-c', 'copy', '-sn', '-dn'],
    // Equal pieces give an equal file, which shares its renditions. Opus in mp4 was experimental in 2018.
    ...['-map_metadata', '-1', '-map_chapters', '-1', '-fflags', '+bitexact', '-strict', '-2', '-f', output, path],
  ]
}

const openedBy = ({ path, demuxer }: RemuxInput) => [...hardenedInput(demuxer), '-i', path]

/** Without an output, ffmpeg describes its inputs and ends. The old ffprobe crashes over MPEG-TS. */
const describeCommand = (inputs: readonly RemuxInput[]) => [
  '-nostdin',
  '-v',
  'info',
  ...hardenedGlobals,
  ...inputs.flatMap(openedBy),
]

/** Clocks further apart than this are unrelated. */
const LARGEST_DELAY_SECONDS = 10

/**
 * Delay of each input behind the first, in seconds. ffmpeg starts each file at 0; without the delay the sound is ahead.
 * Times below 0 are an encoder's initial silence of some 20 ms, not worth an edit list that programs disagree about.
 * Bare AAC has no clock, so that of the playlist counts.
 */
function delaysIn(outcome: RunOutcome, inputs: readonly RemuxInput[], missing: readonly number[]): number[] {
  const described = 'stderr' in outcome ? outcome.stderr : ''
  const starts = [...described.matchAll(/^ {2}Duration: .*, start: (-?[\d.]+)/gm)].map(([, start]) =>
    Math.max(0, Number(start)),
  )
  const zero = Math.min(...starts)
  const isKnown = starts.length === inputs.length && inputs.every(({ demuxer }) => demuxer !== 'aac')
  const isTogether = isKnown && starts.every((start) => start - zero < LARGEST_DELAY_SECONDS)
  const [clocks, first] = isTogether ? [starts, zero] : [missing, Math.min(...missing)]
  return inputs.map((_, index) => (clocks[index] ?? first) - first)
}

/** The demuxer by the first bytes, never by the manifest; any other file is not opened at all. */
async function demuxerFor(path: string): Promise<StreamDemuxer> {
  await using file = await open(path)
  const { buffer: head } = await file.read({ buffer: Buffer.alloc(189), position: 0 })
  if (['ftyp', 'styp', 'moov', 'moof', 'sidx'].includes(head.toString('latin1', 4, 8))) return 'mov'
  if (head.readUInt32BE(0) === 0x1a45dfa3) return 'matroska'
  if (head[0] === 0x47 && head[188] === 0x47) return 'mpegts'
  if (head.toString('latin1', 0, 3) === 'ID3' || (head[0] === 0xff && ((head[1] ?? 0) & 0xf6) === 0xf0)) return 'aac'
  throw refuseManifest('unreadable', 'segments of an unknown kind')
}

function failureOf(outcome: Exclude<RunOutcome, { state: 'done' }>): Error {
  if (outcome.state === 'timed-out') return apiError('processing_timeout', { cause: outcome })
  if (isDiskFull(outcome)) return new Error('the disk is full', { cause: outcome })
  if (outcome.state === 'too-much-output') return apiError('corrupt_media', { cause: outcome })
  if (wasKilled(outcome)) return busyAfterKill(outcome)
  return refusalOf(outcome.stderr)
}
