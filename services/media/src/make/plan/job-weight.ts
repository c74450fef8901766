// Cost of a job in the fair queue (common's pg-boss-tables.ts): a multiple of a usual clip's predicted CPU time.
import type { MediaInfo } from '../../db/media-info.ts'
import { predictedSeconds, secondsOf } from './run-limits.ts'

/** Five seconds of 720p with 30 frames a second. */
const USUAL_SECONDS = secondsOf({ width: 1280, height: 720 }, 150)

/** Four minutes of CPU, the time limit of a run (run-limits.ts). It bounds the cost of a wrong prediction. */
const MAX_WEIGHT = 60

export const weightOf = (seconds: number): number =>
  Math.min(MAX_WEIGHT, Math.max(1, Math.ceil(seconds / USUAL_SECONDS)))

export const clipWeight = (info: MediaInfo): number => weightOf(predictedSeconds(info))
