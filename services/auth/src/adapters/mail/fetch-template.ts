import { AnswerTooLarge, readText } from '@services/common/read-text'
import { tracedFetch } from '@services/common/tracing'

/** The longest a template server may take, connection and body together. */
const FETCH_WITHIN_MS = 10_000

/** The text behind a URL. Throws an Error in words for anything but 200 in time and within the size; nothing is cut. */
export async function fetchTemplate(url: string, maxBytes: number): Promise<string> {
  const signal = AbortSignal.timeout(FETCH_WITHIN_MS)
  try {
    const headers = { accept: 'text/html, text/plain;q=0.9, */*;q=0.1' }
    const response = await tracedFetch(url, { signal, headers }, { isTold: true })
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new FetchFailure(`its server answered ${response.status}`)
    }
    return await readText(response, maxBytes)
  } catch (error) {
    if (error instanceof FetchFailure) throw error
    if (error instanceof AnswerTooLarge) throw new FetchFailure(`it is larger than ${maxBytes} bytes`)
    if (signal.aborted) throw new FetchFailure(`its server took longer than ${FETCH_WITHIN_MS / 1000} s`)
    throw new FetchFailure('its server cannot be reached')
  }
}

class FetchFailure extends Error {
  override readonly name = 'FetchFailure'
}
