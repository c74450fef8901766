// Asks a hook over HTTP (contract/auth-hooks.md 5). Keep-alive connections are those of `fetch`. A redirect is an
// unexpected status: following it could hand the payload to another host.
import { setTimeout as pause } from 'node:timers/promises'
import { ApiError } from '@services/common/errors'
import { tracedFetch } from '@services/common/telemetry/spans'
import { AnswerTooLarge, readText } from '@services/common/upstream/read-text'
import { apiError } from '../../errors.ts'
import { describeFailure } from '../oauth/upstream.ts'
import { type HookAnswer, readHookAnswer, refusalInText, timedOut } from './hook-answer.ts'
import type { Question } from './points.ts'
import { type Signer, signedHeaders } from './signing-secrets.ts'

export interface HttpHookSettings {
  url: string
  signers: readonly Signer[]
  /** Time limit of all attempts together. */
  timeoutSeconds: number
  attempts: number
}

const MAX_ANSWER_BYTES = 204_800

/** Pause after the first network error: mostly an idle connection that the receiver has closed. */
const FIRST_PAUSE_MS = 100

/** Pause after a later one, for a receiver that restarts; at most this share of the time limit. */
const PAUSE_MS = 2_000
const PAUSE_SHARE = 0.4

/** Asks over HTTP and returns the answer. Throws the refusal in it, or a hook_… error. */
export async function askByHttp(settings: HttpHookSettings, question: Question, now: () => Date): Promise<HookAnswer> {
  const { timeoutSeconds, attempts } = settings
  const deadline = AbortSignal.timeout(timeoutSeconds * 1000)
  const laterPauseMs = Math.min(PAUSE_MS, timeoutSeconds * 1000 * PAUSE_SHARE)
  for (let attempt = 1; ; attempt++) {
    const isLast = attempt >= attempts
    try {
      const response = await post(settings, question, now(), deadline)
      if (!isLast && isBusy(response) && response.headers.get('retry-after')) {
        await discard(response)
        continue
      }
      return await readAnswer(response)
    } catch (error) {
      const failure = failureOf(error, deadline, timeoutSeconds)
      if (failure) throw failure
      if (isLast) throw unreachable(error)
      await pause(attempt === 1 ? FIRST_PAUSE_MS : laterPauseMs, undefined, { signal: deadline }).catch(() => {})
      if (deadline.aborted) throw timedOut(timeoutSeconds)
    }
  }
}

function post({ url, signers }: HttpHookSettings, { id, body }: Question, now: Date, signal: AbortSignal) {
  const headers = {
    'content-type': 'application/json',
    'accept-encoding': 'identity',
    ...signedHeaders(signers, { id, body, now }),
  }
  const init = { method: 'POST', headers, body, redirect: 'manual', signal } as const
  return tracedFetch(url, init, { sendsTrace: true })
}

const isBusy = ({ status }: Response) => status === 429 || status === 503

/** Leaves the rest of an answer: its connection closes. */
const discard = (response: Response) => response.body?.cancel().catch(() => {})

/** The final failure behind an error; undefined for one of the network, after which another attempt may help. */
function failureOf(error: unknown, deadline: AbortSignal, timeoutSeconds: number): ApiError | undefined {
  if (error instanceof ApiError) return error
  if (error instanceof AnswerTooLarge) return tooLarge()
  return deadline.aborted ? timedOut(timeoutSeconds) : undefined
}

async function readAnswer(response: Response): Promise<HookAnswer> {
  const { status } = response
  if (status === 204) return {}
  if (status === 200 || status === 202) {
    const wrong = wrongType(response)
    if (wrong) {
      await discard(response)
      throw apiError('hook_payload_invalid_content_type', { message: wrong })
    }
    return readHookAnswer(await readText(response, MAX_ANSWER_BYTES))
  }
  throw (await refusalOf(response)) ?? unexpected(status)
}

/** The refusal in the body of a 4xx: receivers answer so, although the convention is a 200. */
async function refusalOf(response: Response) {
  if (response.status < 400 || response.status > 499 || wrongType(response)) {
    await discard(response)
    return undefined
  }
  const text = await readText(response, MAX_ANSWER_BYTES).catch((error) => {
    if (error instanceof AnswerTooLarge) return ''
    throw error
  })
  return refusalInText(text, response.status)
}

/** Parameters, such as a charset, may follow the type. */
function wrongType({ headers }: Response): string | undefined {
  const type = headers.get('content-type')
  if (!type) return 'Invalid Content-Type: Missing Content-Type header'
  const [media = ''] = type.split(';')
  if (media.trim().toLowerCase() === 'application/json') return undefined
  return `Invalid JSON response. Received content-type: ${type.slice(0, 100)}`
}

function unexpected(status: number) {
  const messages: Record<number, string> = {
    400: 'Invalid payload sent to hook',
    401: 'Hook requires authorization token',
    429: 'Service currently unavailable due to hook',
    503: 'Service currently unavailable due to hook',
  }
  const message = messages[status] ?? `Unexpected status code returned from hook: ${status}`
  return apiError('unexpected_failure', { message, cause: new Error(`the hook answered ${status}`) })
}

const unreachable = (error: unknown) =>
  apiError('hook_timeout_after_retry', { cause: new Error(describeFailure(error)) })

const tooLarge = () =>
  apiError('hook_payload_over_size_limit', {
    message: `Payload size exceeded size limit of ${MAX_ANSWER_BYTES} bytes`,
  })
