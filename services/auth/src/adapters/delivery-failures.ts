// The outside world: mail, SMS and providers, a folder each. A failure says whether another attempt may help.
import { PermanentFailure } from '@services/common/queue/run-job'

/** Failure that may pass. Its text, like a PermanentFailure's, is stored, so it names no address and no code. */
export class TemporaryFailure extends Error {
  override readonly name = 'TemporaryFailure'
  /** The upstream accepted the connection and then did not answer: another attempt may hold a slot as long. */
  readonly timedOut: boolean

  constructor(message: string, { cause, timedOut = false }: { cause?: unknown; timedOut?: boolean } = {}) {
    super(message, { cause })
    this.timedOut = timedOut
  }
}

/** Reason that an admin may read. The text of an unexpected error could quote a secret and goes to the log only. */
export const safeWords = (error: unknown): string =>
  error instanceof PermanentFailure || error instanceof TemporaryFailure
    ? error.message.slice(0, 300)
    : 'unexpected error, see the log'
