import type { Egress } from '@services/common/egress/egress'
import { jsonObject } from '../../../adapters/json-object.ts'

/** Limit of the fetch of a client's document, within that of a request (API_MAX_REQUEST_DURATION, 10 s). */
const WITHIN_MS = 5_000
const MAX_BYTES = 16 * 1024

/**
 * Fetches a JSON object from an address that a client named. Throws unless it is answered at once, with 200, by at most
 * 16 KiB.
 */
export async function fetchDocument(
  egress: Pick<Egress, 'fetch'>,
  address: string,
): Promise<{ json: Record<string, unknown>; headers: Headers }> {
  const bounds = { timeoutMs: WITHIN_MS, maxBytes: MAX_BYTES }
  const answer = await egress.fetch(address, { headers: { accept: 'application/json' } }, bounds)
  if (answer.status !== 200) throw new Error(`the status is ${answer.status}`)
  const type = answer.headers.get('content-type') ?? ''
  if (!/^application\/([\w.-]+\+)?json *(;|$)/i.test(type)) throw new Error('the content type is not JSON')
  return { json: jsonObject(await answer.text(), 'the answer is no JSON object'), headers: answer.headers }
}
