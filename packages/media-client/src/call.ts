import { type Answer, type Connection, exchange, type Request } from './exchange.ts'
import { MediaError, networkError, toMediaError } from './media-error.ts'

/** Retries after the first attempt. */
export const RETRIES = 4

/** A longer Retry-After is for the caller to decide, such as the rest of a day. */
const LONGEST_WAIT_SECONDS = 60

interface Call extends Request {
  /** True when a second request does no harm after the answer of the first was lost. */
  isRepeatable: boolean
  /** Status that means success after a lost answer. */
  doneStatus?: number
}

/**
 * Sends a request until it succeeds: again after 429 and 503 as `Retry-After` says, after lost connections where that
 * is safe, five times at most. Throws any other refusal at once, as a MediaError.
 */
export async function call(connection: Connection, request: Call): Promise<Answer> {
  let isLost = false
  for (let retries = 0; ; retries++) {
    const answer = await attempt(connection, request)
    if (!(answer instanceof MediaError)) return answer
    if (isLost && answer.status === request.doneStatus) return { status: 204, headers: new Headers(), text: '' }
    isLost ||= answer.status === 0
    const waitMs = answer.status === 0 && !request.isRepeatable ? undefined : waitBefore(answer, retries)
    if (waitMs === undefined) throw answer
    await pause(waitMs, request.signal)
  }
}

/** Returns failures; throws the reason of an abort. */
export async function attempt(connection: Connection, request: Request): Promise<Answer | MediaError> {
  try {
    const answer = await exchange(connection, request)
    const { status, headers, text } = answer
    return status >= 200 && status < 300 ? answer : toMediaError(status, headers, text)
  } catch (error) {
    request.signal?.throwIfAborted()
    return networkError(error)
  }
}

/** Milliseconds until the next attempt; undefined for a failure that no attempt of ours repairs. */
export function waitBefore({ status, retryAfterSeconds }: MediaError, retries: number): number | undefined {
  if (retries >= RETRIES || ![0, 429, 503].includes(status)) return undefined
  if (retryAfterSeconds === undefined) return backoff(retries)
  return retryAfterSeconds > LONGEST_WAIT_SECONDS ? undefined : retryAfterSeconds * 1000
}

/** Half a second, then twice as long each time; spread, so that clients do not return together. */
export const backoff = (retries: number): number => 500 * 2 ** retries * (0.75 + Math.random() / 2)

export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })
}

/** The `success` of an answer. */
export function successOf<Body>({ text, status, headers }: Answer): Body {
  try {
    const { success } = JSON.parse(text) as { success?: Body }
    if (success !== undefined) return success
  } catch {
    // An answer of something else, such as a proxy.
  }
  throw toMediaError(status, headers, '')
}
