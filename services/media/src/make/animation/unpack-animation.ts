import { moduleBeside } from '@services/common/process/sibling-module'
import { apiError } from '../../errors.ts'
import { type RunLimits, runConfined } from '../../ffmpeg/run-confined.ts'
import { workFiles } from '../command/work-files.ts'
import type { TranscodeWork } from '../run/encode.ts'
import { refuseAsCorrupt } from '../run/failures.ts'
import { EXIT } from './exit-codes.ts'

/** The command line of `animation-program.ts`. */
export interface AnimationProgramInput {
  type: 'apng' | 'webp'
  input: string
  output: string
}

const PROGRAM = moduleBeside(import.meta, 'animation-program')

const NODE_OPTIONS = ['--max-old-space-size=128', '--max-semi-space-size=1', '--disable-warning=ExperimentalWarning']

/**
 * A billion pixels, the most that an animation may have (probe/source-limits.ts), take 60 s. Their noise would be 4 GB,
 * film is below one. Node reserves far more memory than it uses.
 */
const LIMITS: RunLimits = {
  wallSeconds: 240,
  cpuSeconds: 240,
  memoryBytes: 8 * 1024 ** 3,
  fileBytes: 2 * 1024 ** 3,
}

/** Writes the frames of an animated image as an APNG. Throws corrupt_media, too_many_frames, processing_timeout. */
export async function unpackAnimation(work: TranscodeWork, type: AnimationProgramInput['type']): Promise<void> {
  const { tools, workDirectory, signal } = work
  const input: AnimationProgramInput = { type, input: workFiles.input, output: workFiles.animation }
  const outcome = await runConfined(process.execPath, [...NODE_OPTIONS, PROGRAM, JSON.stringify(input)], {
    ...{ limits: LIMITS, limiters: tools.limiters, cwd: workDirectory, signal },
  })
  if (outcome.state === 'done') return
  if (outcome.state === 'timed-out') throw apiError('processing_timeout', { cause: outcome.stderr })
  if (outcome.state === 'failed' && outcome.exitCode === EXIT.broken) {
    throw apiError('corrupt_media', { cause: outcome.stderr })
  }
  if (outcome.state === 'failed' && outcome.exitCode === EXIT.tooLarge) {
    throw apiError('too_many_frames', { cause: outcome.stderr })
  }
  const error = new Error('the animation was not unpacked', { cause: outcome })
  throw outcome.state === 'failed' && outcome.signal ? refuseAsCorrupt(error) : error
}
