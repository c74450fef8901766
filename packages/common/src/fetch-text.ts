import { readText } from './read-text.ts'

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
  const response = await fetch(url, { ...init, redirect: 'error', signal: AbortSignal.timeout(timeoutMs) })
  return { status: response.status, text: await readText(response, maxBytes) }
}
