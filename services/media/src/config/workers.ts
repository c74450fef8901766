import { availableParallelism, totalmem } from 'node:os'
import { boolean, integer, text, type Values, type Variables } from '@services/common/config'
import type { serverVariables } from './server.ts'

export const workerVariables = {
  WORKERS_ENABLED: boolean('Transcode in this process; false where separate `worker` processes do.', {
    default: 'true',
  }),
  WORKER_CONCURRENCY: integer(
    'Clips of one token transcoded at once by one process; by default as many as cores and memory bear. Clips of other tokens have one slot more.',
    { min: 1, max: 256 },
  ),
  QUEUE_LIMIT: integer(
    'Clips waiting or being made before new ones are answered 503; a token that has none of them is let in until there are twice as many.',
    { default: '100', min: 1 },
  ),
  QUEUE_PER_TOKEN: integer(
    'Clips of one token (or of all callers without one) waiting or being made, in all processes, before its new ones are answered 429; half of QUEUE_LIMIT if unset.',
    { min: 1 },
  ),
  EXTRAS: boolean(
    'Make an AV1 copy and a WebP poster of each clip too, in the background, while nothing else is to be done.',
    { default: 'false' },
  ),
  FFMPEG_PATH: text('The ffmpeg to use; else the one of the system, else an old one that comes along.'),
  FFPROBE_PATH: text('The ffprobe to use; else the one beside ffmpeg.'),
} satisfies Variables

/** `searchPath` is where programs are looked for that have no path of their own. */
export const workerSettings = (
  values: Values<typeof workerVariables & typeof serverVariables>,
  searchPath: string,
) => ({
  worker: {
    enabled: values.WORKERS_ENABLED,
    concurrency: values.WORKER_CONCURRENCY ?? slotsOfProcess(values.WEB_CONCURRENCY),
    /** Of the `worker` command, which is one process whatever WEB_CONCURRENCY says. */
    concurrencyAlone: values.WORKER_CONCURRENCY ?? slotsOfProcess(1),
    processes: values.WEB_CONCURRENCY,
    queueLimit: values.QUEUE_LIMIT,
    extras: values.EXTRAS,
    queueLimitPerToken: values.QUEUE_PER_TOKEN ?? Math.ceil(values.QUEUE_LIMIT / 2),
  },
  ffmpeg: {
    ffmpegPath: values.FFMPEG_PATH,
    ffprobePath: values.FFPROBE_PATH,
    searchPath,
  },
})

/** What one 1080p clip takes at its peak, and what is left for the rest (contract/media.md 5.7). */
const BYTES_PER_CLIP = 700 * 1024 ** 2
const BYTES_LEFT_FREE = 1024 ** 3

/**
 * As many clips at once as there are cores, with one thread each: 1.4 times what one clip on all cores gives. In memory
 * each process needs room for one more, because of its slot for other tokens (worker.ts).
 */
export function slotsOfProcess(processes: number, { cores, memory } = machine()): number {
  const inMemory = Math.floor((memory - BYTES_LEFT_FREE) / BYTES_PER_CLIP) - processes
  return Math.max(1, Math.floor(Math.min(cores, inMemory) / processes))
}

const machine = () => ({
  cores: availableParallelism(),
  memory: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
})
