import { availableParallelism, totalmem } from 'node:os'
import { boolean, integer, oneOf, text, type Values, type Variables } from '@services/common/config/variables'
import { memoryBound } from '../ffmpeg/memory-bound.ts'
import type { serverVariables } from './server.ts'
import type { sourceVariables } from './sources.ts'

export const workerVariables = {
  WORKERS_ENABLED: boolean('Transcode in this process; false if separate `worker` processes do.', {
    default: 'true',
  }),
  WORKER_CONCURRENCY: integer(
    'Clips of one token that a process transcodes at once; by default as many as cores and memory allow. Other tokens have one slot more.',
    { min: 1, max: 256 },
  ),
  QUEUE_LIMIT: integer(
    'Clips waiting or processing before new ones get 503; a token without such clips may still add one, up to twice the limit.',
    { default: '100', min: 1 },
  ),
  QUEUE_PER_TOKEN: integer(
    'Clips of one token (or of all callers without one) waiting or processing, in all processes, before new ones get 429; half of QUEUE_LIMIT if unset.',
    { min: 1 },
  ),
  EXTRAS: boolean('Also make an AV1 copy and a WebP poster of each clip, in the background while no clip waits.', {
    default: 'false',
  }),
  GIF_ENCODER: oneOf(
    ['own', 'ffmpeg'],
    'Encoder of the GIF of a clip: `own` halves its bytes; `ffmpeg` takes less CPU and has one palette for all frames. GIF variants are always by `own`.',
    { default: 'own' },
  ),
  COPY: oneOf(
    ['auto', 'never'],
    '`auto` keeps the streams of an mp4 or webm that is as our own files are; `never` encodes every file.',
    { default: 'auto' },
  ),
  FFMPEG_PATH: text('Path of ffmpeg; if unset, that of the system, or an old bundled one.'),
  FFPROBE_PATH: text('Path of ffprobe; if unset, the one beside ffmpeg.'),
} satisfies Variables

/** `searchPath` is a PATH for programs without a configured path. */
export const workerSettings = (
  values: Values<typeof workerVariables & typeof serverVariables & typeof sourceVariables>,
  searchPath: string,
) => ({
  worker: {
    enabled: values.WORKERS_ENABLED,
    concurrency: values.WORKER_CONCURRENCY ?? slotsOfProcess(values.WEB_CONCURRENCY, values.MAX_SIDE),
    /** Concurrency of the `worker` command, which is one process regardless of WEB_CONCURRENCY. */
    concurrencyAlone: values.WORKER_CONCURRENCY ?? slotsOfProcess(1, values.MAX_SIDE),
    processes: values.WEB_CONCURRENCY,
    queueLimit: values.QUEUE_LIMIT,
    extras: values.EXTRAS,
    gifEncoder: values.GIF_ENCODER,
    copy: values.COPY,
    queueLimitPerToken: values.QUEUE_PER_TOKEN ?? Math.ceil(values.QUEUE_LIMIT / 2),
  },
  ffmpeg: {
    ffmpegPath: values.FFMPEG_PATH,
    ffprobePath: values.FFPROBE_PATH,
    searchPath,
  },
})

/** Memory for the service, the libraries of ffmpeg and rare clips that exceed the bound (contract/media.md 5.7). */
const BYTES_LEFT_FREE = 1024 ** 3

/**
 * One clip per core with one thread each, which is 1.4 times as fast as one clip on all cores. Each process needs
 * memory for one more clip: its slot for other tokens (worker.ts). A square of `largestSide` is the largest clip.
 */
export function slotsOfProcess(processes: number, largestSide: number, { cores, memory } = machine()): number {
  const bytesPerClip = memoryBound({ width: largestSide, height: largestSide })
  const inMemory = Math.floor((memory - BYTES_LEFT_FREE) / bytesPerClip) - processes
  return Math.max(1, Math.floor(Math.min(cores, inMemory) / processes))
}

const machine = () => ({
  cores: availableParallelism(),
  memory: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
})
