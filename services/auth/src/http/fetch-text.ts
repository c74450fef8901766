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
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    // Leaving the loop cancels the rest of the body.
    if (size > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return { status: response.status, text: Buffer.concat(chunks).toString('utf8') }
}
