import type { ApiError } from '@services/common/errors'
import { apiError } from '../../errors.ts'

/** Answer of a hook: the members of a JSON object, none where there is nothing to say. */
export type HookAnswer = Record<string, unknown>

/** Longest message of a refusal that is shown; it may stand in the query of a redirect. */
const MAX_MESSAGE = 500

/** Parses an answer. Throws unexpected_failure for anything but an object, and the refusal that it holds. */
export function readHookAnswer(text: string): HookAnswer {
  const answer = parseAnswer(text)
  const refusal = refusalIn(answer)
  if (refusal) throw refusal
  return answer
}

function parseAnswer(text: string): HookAnswer {
  let answer: unknown
  try {
    answer = JSON.parse(text)
  } catch {
    throw unfit('not JSON')
  }
  if (answer === null) return {}
  if (typeof answer !== 'object' || Array.isArray(answer)) throw unfit('not an object')
  return answer as HookAnswer
}

const UNFIT = 'Error unmarshaling JSON output.'

export const unfit = (reason: string) => apiError('unexpected_failure', { message: UNFIT, cause: new Error(reason) })

/** Whether the hook accepted the question, in an answer that cannot be read: it may have done its work. */
export const hasAccepted = ({ code, message }: ApiError): boolean =>
  code === 'hook_payload_over_size_limit' ||
  code === 'hook_payload_invalid_content_type' ||
  message === UNFIT ||
  /^Unexpected status code returned from hook: 2\d\d$/.test(message)

/**
 * Returns the refusal of an answer: `error` with a message. A status outside 400 to 599 would announce a success, so it
 * counts as 500.
 */
function refusalIn({ error }: HookAnswer, status = 500) {
  if (error === undefined || error === null) return undefined
  if (typeof error !== 'object' || Array.isArray(error)) throw unfit('error is not an object')
  const { http_code: given, message = '' } = error as { http_code?: unknown; message?: unknown }
  if (given !== undefined && given !== null && !Number.isSafeInteger(given)) throw unfit('http_code is not an integer')
  if (typeof message !== 'string' && message !== null) throw unfit('message is not a string')
  if (!message) return undefined
  return refusal(message, (given as number | null | undefined) || status)
}

/** The refusal that an answer with status 4xx holds, under the status that it names or has; undefined for any other. */
export function refusalInText(text: string, status: number) {
  try {
    return refusalIn(parseAnswer(text), status)
  } catch {
    return undefined
  }
}

export const refusal = (message: string, status: number) =>
  apiError('hook_rejected', {
    status: status >= 400 && status <= 599 ? status : 500,
    message: message.slice(0, MAX_MESSAGE),
  })

export const timedOut = (seconds: number, cause?: Error) =>
  apiError('hook_timeout', {
    message: `Failed to reach hook within maximum time of ${seconds.toFixed(6)} seconds`,
    cause,
  })
