import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Size } from '../../core/clips/geometry.ts'
import type { ExtraKind } from '../../db/tables.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { hashFile } from '../../store/blobs/measure.ts'
import { av1Command, clearPosterCommand } from '../command/ffmpeg-command.ts'
import { workFiles } from '../command/work-files.ts'
import { type ClearPoster, makeWebp, posterTime } from '../poster/encode-poster.ts'
import { runFfprobe } from '../probe/ffprobe.ts'
import { readTag } from '../probe/ffprobe-values.ts'
import { runFfmpeg } from '../run/run-ffmpeg.ts'
import { type Rendition, verifyVideo } from '../run/verify-renditions.ts'

interface ExtrasWork {
  /** Holds the finished mp4 as `in.bin` and the poster; also the webm if it may have alpha. */
  directory: string
  durationSeconds: number
  size: Size
  mostBytes: number
  signal: AbortSignal
}

/** SVT-AV1 accepts no smaller picture; such a clip is a few kilobytes in any format. */
const SMALLEST_SIDE = 64

/** 30 s of 1080p take two minutes of one core; at the lowest priority that may take a while. */
const LIMITS = { wallSeconds: 900, cpuSeconds: 600, memoryBytes: 4 * 1024 ** 3, fileBytes: 64 * 1024 ** 2 }

/** Makes a WebP poster and, of an opaque clip if this ffmpeg can, an AV1 copy. Rejects with the signal's reason. */
export async function makeExtras(tools: MediaTools, work: ExtrasWork): Promise<Partial<Record<ExtraKind, Rendition>>> {
  const { directory, size } = work
  const webp = resolve(directory, workFiles.webp)
  const clear = await takeClearPoster(tools, work)
  await makeWebp(clear ?? resolve(directory, workFiles.jpg), webp)
  // Pages prefer AV1 to the webm, and its transparent parts would be white.
  const av1 = clear ? undefined : await makeAv1(tools, work)
  return { webp: { ...(await hashFile(webp)), ...size }, ...(av1 && { av1 }) }
}

async function takeClearPoster(tools: MediaTools, work: ExtrasWork): Promise<ClearPoster | undefined> {
  const { directory, size, durationSeconds, signal } = work
  const path = resolve(directory, workFiles.webm)
  if (!(await hasAlpha(tools, path, signal))) return undefined
  await run(tools, work, clearPosterCommand(tools.ffmpeg, workFiles.webm, posterTime(durationSeconds)))
  return { path: resolve(directory, workFiles.clearPoster), ...size }
}

/** Whether a webm of ours has an alpha plane. False for a missing file. */
export async function hasAlpha(tools: MediaTools, path: string, signal: AbortSignal): Promise<boolean> {
  if (!(await stat(path).catch(() => undefined))) return false
  const verifying = { ...tools, ffprobe: tools.verifier }
  const { streams } = await runFfprobe(verifying, path, { demuxer: 'matroska', packets: false, signal })
  return streams?.some((stream) => readTag(stream, 'alpha_mode') === '1') ?? false
}

async function makeAv1(tools: MediaTools, work: ExtrasWork): Promise<Rendition | undefined> {
  const { directory, size, mostBytes, signal } = work
  if (!tools.ffmpeg.av1Encoder || Math.min(size.width, size.height) < SMALLEST_SIDE) return undefined
  const path = resolve(directory, workFiles.av1)
  await run(tools, work, av1Command(tools.ffmpeg))
  const input = { demuxer: 'mov', size, signal } as const
  const [before, after] = await Promise.all([
    verifyVideo(tools, resolve(directory, workFiles.input), { ...input, codec: 'h264' }),
    verifyVideo(tools, path, { ...input, codec: 'av1' }),
  ])
  if (Math.abs(after - before) > 0.1) throw new Error(`the AV1 copy lasts ${after} s and not ${before} s`)
  const made = await hashFile(path)
  return made.bytes < mostBytes ? { ...made, ...size } : undefined
}

const run = (tools: MediaTools, { directory, signal }: ExtrasWork, args: string[]) =>
  runFfmpeg({ tools, workDirectory: directory, signal }, args, { limits: LIMITS, niceness: 19 })
