/** The longest a template server may take, connection and body together. */
const FETCH_WITHIN_MS = 10_000

/** The text behind a URL. Throws an Error in words for anything but 200 in time and within the size; nothing is cut. */
export async function fetchTemplate(url: string, maxBytes: number): Promise<string> {
  const signal = AbortSignal.timeout(FETCH_WITHIN_MS)
  try {
    const response = await fetch(url, { signal, headers: { accept: 'text/html, text/plain;q=0.9, */*;q=0.1' } })
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new FetchFailure(`its server answered ${response.status}`)
    }
    return await readBounded(response, maxBytes)
  } catch (error) {
    if (error instanceof FetchFailure) throw error
    if (signal.aborted) throw new FetchFailure(`its server took longer than ${FETCH_WITHIN_MS / 1000} s`)
    throw new FetchFailure('its server cannot be reached')
  }
}

class FetchFailure extends Error {
  override readonly name = 'FetchFailure'
}

async function readBounded(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    // Leaving the loop ends the stream, and with it the connection.
    if (bytes > maxBytes) throw new FetchFailure(`it is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
