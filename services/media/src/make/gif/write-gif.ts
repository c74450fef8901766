import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'
import type { Writable } from 'node:stream'
import { moduleBeside } from '@services/common/process/sibling-module'
import { type RunLimits, runConfined } from '../../ffmpeg/run-confined.ts'
import { workFiles } from '../command/work-files.ts'
import { GIF_BUDGET_BYTES } from '../plan/gif-plan.ts'
import type { RenditionPlan } from '../plan/rendition-plan.ts'
import { LARGEST_FILE_BYTES } from '../plan/run-limits.ts'
import type { FramesPipe, TranscodeWork } from '../run/encode.ts'
import type { GifFormat } from './gif-writer.ts'

/** The command line of `gif-program.ts`. */
export interface GifProgramInput {
  file: string
  format: GifFormat
  totalCentiseconds: number
}

const PROGRAM = moduleBeside(import.meta, 'gif-program')

/** A service from sources has a folder of compiled modules, which halves the start of this program, too. */
const compiled = getCompileCacheDir()
const environment: Record<string, string> = compiled ? { NODE_COMPILE_CACHE: dirname(compiled) } : {}

/**
 * Without threads of V8 and with a small young generation Node takes 10 MB less, in the same time. Frames are outside
 * of the heap, which holds little more than the program. One start in twenty with compiled modules and no threads hangs
 * for ever (Node 24).
 */
const NODE_OPTIONS = [
  ...['--max-old-space-size=48', '--max-semi-space-size=1', '--disable-warning=ExperimentalWarning'],
  ...(compiled ? [] : ['--v8-pool-size=0']),
]

/** Noise, which takes longest: 0.1 s for a frame of 480 x 270. Most clips take a fifth. */
const SECONDS_PER_PIXEL = 8e-7

/** ffmpeg, which ends first, has 240 s at most (run-limits.ts). Node reserves far more memory than it uses. */
const LIMITS: RunLimits = {
  wallSeconds: 300,
  cpuSeconds: 300,
  memoryBytes: 8 * 1024 ** 3,
  fileBytes: LARGEST_FILE_BYTES,
}

/** Our writer failed and not the file: ffmpeg's GIF is the remedy. */
export class GifWriterFailed extends Error {
  override readonly name = 'GifWriterFailed'
}

/**
 * Runs our GIF writer beside an ffmpeg that writes frames to its pipe, until both have ended; returns what
 * `encodeFrames` does. Throws its error, or GifWriterFailed, of which ffmpeg's broken pipe is a consequence.
 */
export async function writeGif<Encoded>(
  { tools, workDirectory, signal }: Pick<TranscodeWork, 'tools' | 'workDirectory' | 'signal'>,
  input: GifProgramInput,
  encodeFrames: (frames: FramesPipe) => Promise<Encoded>,
  niceness?: number,
): Promise<Encoded> {
  const args = [...NODE_OPTIONS, PROGRAM, JSON.stringify(input)]
  const started = Promise.withResolvers<Writable>()
  const failed = (cause: unknown) => {
    signal?.throwIfAborted()
    return new GifWriterFailed('the GIF writer failed', { cause })
  }
  const writing = runConfined(process.execPath, args, {
    ...{ limits: LIMITS, limiters: tools.limiters, cwd: workDirectory, signal, niceness },
    ...{ environment, onInput: started.resolve },
  })
  writing.catch(started.reject)
  const pipe = await started.promise.catch((cause) => Promise.reject(failed(cause)))
  const { width, height, budget } = input.format
  const frames = { pipe, writerSeconds: width * height * budget.frames * SECONDS_PER_PIXEL }
  const [encoded, written] = await Promise.allSettled([encodeFrames(frames).finally(() => pipe.destroy()), writing])
  if (written.status === 'rejected') throw failed(written.reason)
  if (written.value.state !== 'done') throw failed(written.value)
  if (encoded.status === 'rejected') throw encoded.reason
  return encoded.value
}

/** The GIF of a plan, below the usual number of bytes if possible. */
export function gifOf({ gif, keepsAlpha, durationSeconds }: RenditionPlan): GifProgramInput {
  if (gif.from !== 'frames') throw new Error('this plan has no frames for a GIF')
  const { size, delayCentiseconds, loopCount } = gif
  const totalCentiseconds = Math.round(durationSeconds * 100)
  const budget = { bytes: GIF_BUDGET_BYTES, frames: Math.ceil(totalCentiseconds / delayCentiseconds) }
  const format = { ...size, delayCentiseconds, loopCount, hasAlpha: keepsAlpha, budget }
  return { file: workFiles.gif, format, totalCentiseconds }
}
