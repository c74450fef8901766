// The outside world: mail, SMS and providers, a folder each. A failure says whether another attempt may help.
import { PermanentFailure } from '@services/common/queue/run-job'

/** Failure that may pass. Its text, like a PermanentFailure's, is stored, so it names no address and no code. */
export class TemporaryFailure extends Error {
  override readonly name = 'TemporaryFailure'
  /**
   * `silent`: the upstream accepted the connection and then did not answer, so another attempt may hold a slot as long.
   * `answered`: it deferred this message. Undefined where the failure reveals neither.
   */
  readonly upstream: 'silent' | 'answered' | undefined

  constructor(message: string, { cause, upstream }: { cause?: unknown; upstream?: TemporaryFailure['upstream'] } = {}) {
    super(message, { cause })
    this.upstream = upstream
  }
}

/**
 * Reason that an admin may read, as PostgreSQL can store it: an upstream may answer NUL, and the cut may halve a
 * character. The text of an unexpected error could quote a secret and goes to the log only.
 */
export const safeWords = (error: unknown): string =>
  error instanceof PermanentFailure || error instanceof TemporaryFailure
    ? error.message.replaceAll('\0', '').slice(0, 300).toWellFormed()
    : 'unexpected error, see the log'
