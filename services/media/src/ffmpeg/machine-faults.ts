// Failures of a program that are the machine's and not the file's: a full disk, missing memory, a kill from outside.
import { statfs } from 'node:fs/promises'
import { apiError } from '../errors.ts'
import type { RunOutcome } from './run-confined.ts'

/** Messages of ffmpeg and of Node. */
const DISK_FULL = /no space left on device|disk quota exceeded/i

/** stderr of a program that lacked memory or a right; a file cannot cause it. */
export const MACHINE_FAULT = /Cannot allocate memory|Permission denied|Read-only file system/

export function isDiskFull(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const { code, message, stderr, cause } = error as Partial<NodeJS.ErrnoException> & { stderr?: string }
  if (code === 'ENOSPC' || code === 'EDQUOT') return true
  return DISK_FULL.test(`${message} ${stderr}`) || isDiskFull(cause)
}

/** Less free than this is full: ffmpeg's unfinished files still hold the rest. */
const HARDLY_ANY_BYTES = 16 * 1024 ** 2

/** Throws for an ffmpeg that wrote too little without giving the reason, if the disk is full. */
export async function refuseFullDisk(directory: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory)
  if (bavail * bsize < HARDLY_ANY_BYTES) throw new Error('No space left on device')
}

const KILLED_RETRY_SECONDS = 10

/** SIGKILL is rarely the file's doing: the kernel's out-of-memory killer sends it. */
export const wasKilled = (outcome: RunOutcome) => outcome.state === 'failed' && outcome.signal === 'SIGKILL'

/** Whether a program was killed, or ended at its time limit, by the error whose cause is its outcome. */
export function hasLackedTime(error: unknown): boolean {
  const outcome = (error as { cause?: RunOutcome }).cause
  return outcome?.state === 'timed-out' || (outcome !== undefined && wasKilled(outcome))
}

export const busyAfterKill = (outcome: RunOutcome) =>
  apiError('busy', { retryAfterSeconds: KILLED_RETRY_SECONDS, cause: outcome })
