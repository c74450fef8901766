import { readText } from './read-text.ts'
import { tracedFetch } from './tracing.ts'

export interface FetchBounds {
  timeoutMs: number
  maxBytes: number
}

/**
 * Asks a service elsewhere and reads its answer as text, bounded in time and size; redirects are not followed, the request
 * may carry a secret. Throws whatever went wrong: unreachable, too slow, too large.
 */
export async function fetchText(
  url: string,
  init: RequestInit,
  { timeoutMs, maxBytes }: FetchBounds,
): Promise<{ status: number; text: string }> {
  const request = { ...init, redirect: 'error', signal: AbortSignal.timeout(timeoutMs) } as const
  // Captchas and passwords are not looked up in a way that relates them to anything else.
  const response = await tracedFetch(url, request, { isTold: false })
  return { status: response.status, text: await readText(response, maxBytes) }
}
