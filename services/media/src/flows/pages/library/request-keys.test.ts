// Keys of the library's requests, without a browser.
import { expect, test } from 'vitest'

const SCRIPT = new URL('../assets/owner/request-keys.js', import.meta.url).href
const { sendOnce } = await import(SCRIPT)

/** Sends a request that is answered so; returns the key that it came with. */
async function keyOf(request: object, status = 200): Promise<string> {
  let sent = ''
  const send = async (key: string) => {
    sent = key
    if (status !== 200) throw Object.assign(new Error(), { status })
  }
  await sendOnce(request, send).catch(() => {})
  return sent
}

test.for([0, 500, 503])('a request without an answer (%i) is repeated with the key that it had', async (status) => {
  const request = { ids: ['a', 'b'], action: 'delete', status }
  const key = await keyOf(request, status)
  expect(key).toMatch(/^[\da-f]{32}$/)
  expect(await keyOf({ ...request, action: 'nsfw' }, status)).not.toBe(key)
  expect(await keyOf({ ...request })).toBe(key)
  expect(await keyOf(request)).not.toBe(key)
})

test.for([200, 422, 429])('a request that was answered by %i has another key the next time', async (status) => {
  const request = { ids: ['a'], action: 'delete' }
  expect(await keyOf(request, status)).not.toBe(await keyOf(request, status))
})
