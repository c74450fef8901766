// Keys of requests that act once (Idempotency-Key). A request whose answer is lost keeps its key, so that a repetition
// by hand does not act again.

/** @type {Map<string, string>} */
const keys = new Map()

/** @returns {string} */
export const newKey = () =>
  // `crypto.randomUUID` does not exist on plain http.
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

/**
 * Sends a request with its key, and forgets the key when it is answered. Failures of the server do not say whether it
 * acted.
 * @template T @param {unknown} request @param {(key: string) => Promise<T>} send @returns {Promise<T>}
 */
export async function sendOnce(request, send) {
  const name = JSON.stringify(request)
  const key = keys.get(name) ?? newKey()
  keys.set(name, key)
  try {
    const answer = await send(key)
    keys.delete(name)
    return answer
  } catch (error) {
    const status = /** @type {{ status?: number }} */ (error).status ?? 0
    if (status >= 400 && status < 500) keys.delete(name)
    throw error
  }
}
