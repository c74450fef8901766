import { ApiError } from '@services/common/errors'
import { PermanentFailure } from '@services/common/queue/run-job'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import { hasAccepted } from '../../adapters/hooks/hook-answer.ts'

/** Statuses by which a receiver asks for another attempt, rather than refusing the message. */
const NOT_NOW = [408, 425, 429, 502, 503, 504]

/**
 * Turns the failure of a hook into one of a message. A refusal ends the message, and so does a 2xx that cannot be read.
 * The message may have left then, and repeating it for a day would send it three hundred times.
 */
export function toDeliveryFailure(error: unknown, secrets: readonly string[]): unknown {
  if (!(error instanceof ApiError)) return error
  const words = without(secrets, error.message)
  if (error.code === 'hook_rejected') {
    if (NOT_NOW.includes(error.status))
      return new TemporaryFailure(`the hook cannot send it now: ${words}`, { cause: error })
    return new PermanentFailure(`the hook refused it: ${words}`, { cause: error })
  }
  if (hasAccepted(error)) {
    return new PermanentFailure(`not repeated, because the hook accepted it with a bad answer: ${words}`, {
      cause: error,
    })
  }
  return new TemporaryFailure(`the hook failed: ${words}`, { cause: error })
}

/** Removes addresses and codes, which a receiver may quote: admins read the text. */
const without = (secrets: readonly string[], text: string) =>
  secrets.filter(Boolean).reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
