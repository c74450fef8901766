import type { Egress, EgressRequest } from '@services/common/egress/egress'
import { tracedFetch } from '@services/common/telemetry/spans'
import { readText } from '@services/common/upstream/read-text'
import { apiError } from '../../errors.ts'

/** Tokens and profiles take kilobytes, a tenant's key set some dozen. */
const MAX_ANSWER_BYTES = 1024 * 1024

/** Bound on all requests of one sign-in together; API_MAX_REQUEST_DURATION is 10 s. */
export const SIGN_IN_WITHIN_MS = 8_000

export type UpstreamFetch = (url: string, init: RequestInit) => Promise<Response>

/** Makes a fetch bounded in size, and in time over all calls. Following redirects could leak a secret. */
export type OpenFetch = (withinMs: number) => UpstreamFetch

/** Fetches addresses that the operator's settings name. */
export function boundedFetch(withinMs: number): UpstreamFetch {
  const deadline = AbortSignal.timeout(withinMs)
  return async (url, init) => {
    const signal = init.signal ? AbortSignal.any([init.signal, deadline]) : deadline
    const response = await tracedFetch(url, { ...init, redirect: 'manual', signal }, { sendsTrace: true })
    const text = await readText(response, MAX_ANSWER_BYTES)
    return new Response(isEmptyByDefinition(response.status) ? null : text, {
      status: response.status,
      headers: response.headers,
    })
  }
}

/** Fetches addresses that an admin chose, by the guarded client. */
export const guardedFetch =
  (egress: Pick<Egress, 'fetch'>): OpenFetch =>
  (withinMs) => {
    const deadline = AbortSignal.timeout(withinMs)
    return (url, init) => {
      const signal = init.signal ? AbortSignal.any([init.signal, deadline]) : deadline
      const request = { ...(init as EgressRequest), signal }
      return egress.fetch(url, request, { timeoutMs: withinMs, maxBytes: MAX_ANSWER_BYTES })
    }
  }

/** URLs have limits, proxies lower ones; a Keycloak token of 200 roles has 12 KiB. */
const MAX_TOKEN_IN_ADDRESS = 16 * 1024

/** Whether a token fits into a URL that a browser is sent to. */
export const fitsAddress = (token: string): boolean => token.length <= MAX_TOKEN_IN_ADDRESS

const isEmptyByDefinition = (status: number) => [204, 205, 304].includes(status)

/** An upstream's failure under the code that the reference uses. The logged cause holds no secret. */
export const upstreamFailed = (message: string, cause: unknown) =>
  apiError('unexpected_failure', { status: 502, message, cause: new Error(describeFailure(cause)) })

/** Names that say no more than that something failed. */
const PLAIN_NAMES = ['Error', 'TypeError', 'SyntaxError', 'AggregateError']

/** Describes an error by name, codes and message; other members, and a SyntaxError's message, quote tokens, answers. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'not an error'
  const { name, message, cause, code, error: refusal } = error as Error & { code?: unknown; error?: unknown }
  const words = error instanceof SyntaxError ? 'invalid JSON' : message
  const codes = [code, refusal].filter((value) => typeof value === 'string' && /^\w{1,60}$/.test(value))
  const described = [...(PLAIN_NAMES.includes(name) ? [] : [name]), ...codes, words].join(': ')
  return cause instanceof Error ? `${described} (${describeFailure(cause)})` : described
}
