import { readText } from '@services/common/read-text'
import { tracedFetch } from '@services/common/tracing'
import { apiError } from '../../errors.ts'

/** Tokens, profiles, keys: the largest of them has some kilobytes, a tenant's key set some dozen. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** Longest time all requests of one sign-in may take together; API_MAX_REQUEST_DURATION is 10 s. */
export const SIGN_IN_WITHIN_MS = 8_000

export type UpstreamFetch = (url: string, init: RequestInit) => Promise<Response>

/**
 * A fetch for what a provider answers: bounded in size, and all calls of one of these together in time. Redirects are
 * answers, not followed: a request may carry a secret.
 */
export function boundedFetch(withinMs: number): UpstreamFetch {
  const deadline = AbortSignal.timeout(withinMs)
  return async (url, init) => {
    const signal = init.signal ? AbortSignal.any([init.signal, deadline]) : deadline
    const response = await tracedFetch(url, { ...init, redirect: 'manual', signal }, { isTold: true })
    const text = await readText(response, MAX_ANSWER_BYTES)
    return new Response(isEmptyByDefinition(response.status) ? null : text, {
      status: response.status,
      headers: response.headers,
    })
  }
}

/** Addresses have limits, and those of proxies are lower; a Keycloak token of 200 roles has 12 KiB. */
const MAX_TOKEN_IN_ADDRESS = 16 * 1024

/** Whether a token may stand in the address that a browser is sent to. */
export const fitsAddress = (token: string): boolean => token.length <= MAX_TOKEN_IN_ADDRESS

const isEmptyByDefinition = (status: number) => [204, 205, 304].includes(status)

/** Not our failure, but one that the code of the reference names so. Of its cause the log gets what holds nothing secret. */
export const upstreamFailed = (message: string, cause: unknown) =>
  apiError('unexpected_failure', { status: 502, message, cause: new Error(describeFailure(cause)) })

/**
 * An error of the libraries in words: its other members hold claims, tokens, whole answers. Of a SyntaxError not even the
 * message, which quotes the text that could not be read.
 */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'something else than an error'
  const { name, message, cause, code, error: refusal } = error as Error & { code?: unknown; error?: unknown }
  const words = error instanceof SyntaxError ? 'no JSON' : message
  const codes = [code, refusal].filter((value) => typeof value === 'string' && /^\w{1,60}$/.test(value))
  const described = [name, ...codes, words].join(': ')
  return cause instanceof Error ? `${described} (${describeFailure(cause)})` : described
}
