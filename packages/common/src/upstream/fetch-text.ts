// Requests to upstreams, each with bounds on its time and bytes.
import { tracedFetch } from '../telemetry/spans.ts'
import { readText } from './read-text.ts'

export interface FetchBounds {
  timeoutMs: number
  maxBytes: number
}

/**
 * Fetches text; throws if the upstream is unreachable, slow or verbose, or redirects: the request may hold a secret.
 */
export async function fetchText(
  url: string,
  init: RequestInit,
  { timeoutMs, maxBytes }: FetchBounds,
): Promise<{ status: number; text: string }> {
  const request = { ...init, redirect: 'error', signal: AbortSignal.timeout(timeoutMs) } as const
  // No trace headers: they would relate captchas and passwords to other requests.
  const response = await tracedFetch(url, request, { sendsTrace: false })
  return { status: response.status, text: await readText(response, maxBytes) }
}
