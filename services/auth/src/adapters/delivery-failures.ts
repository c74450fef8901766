import { PermanentFailure } from '@services/common/queue'

/** A failure that may pass; like that of a PermanentFailure its text names no address and no code, and may be stored. */
export class TemporaryFailure extends Error {
  override readonly name = 'TemporaryFailure'
}

/** What an admin may read about a failed try; anything unexpected could quote a secret and is in the log only. */
export const safeWords = (error: unknown): string =>
  error instanceof PermanentFailure || error instanceof TemporaryFailure
    ? error.message.slice(0, 300)
    : 'unexpected error, see the log'
