import { apiError } from '../errors.ts'
import type { RunOutcome } from './run-confined.ts'

/** When a machine that ran out of memory may have some again. */
const KILLED_RETRY_SECONDS = 10

/** SIGKILL is rarely the file's doing: the memory killer sends it. */
export const wasKilled = (outcome: RunOutcome) => outcome.state === 'failed' && outcome.signal === 'SIGKILL'

/** What to throw for a program that `wasKilled` and is not started again. */
export const busyAfterKill = (outcome: RunOutcome) =>
  apiError('busy', { retryAfterSeconds: KILLED_RETRY_SECONDS, cause: outcome })
