// The public API, called with the session of this browser. Nothing else is called, so a script can do the same.
import { data, text } from './page-data.js'

/** Address of the service, which may stand below a path. */
const BASE = new URL('../../', import.meta.url)

/** @typedef {{ method?: string, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }} Call */

/** A refusal in the reader's words. `body` is the whole answer. */
export class Refusal extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {any} [body] */
  constructor(status, code, message, body) {
    super(message)
    this.status = status
    this.code = code
    this.body = body
  }
}

/** @param {string} path */
export const address = (path) => new URL(path.replace(/^\//, ''), BASE).href

/** Sends a call; throws a Refusal for every answer but success. @param {string} path @param {Call} [call] */
export async function send(path, { method = 'GET', body, headers, signal } = {}) {
  const answer = await fetch(address(path), {
    ...{ method, signal, cache: 'no-store', credentials: 'same-origin' },
    headers: { 'x-media': '1', ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch((error) => {
    if (signal?.aborted) throw error
    throw new Refusal(0, 'unreachable', wordsFor('unreachable', ''))
  })
  if (!answer.ok) throw await refusalOf(answer)
  return answer
}

/** Returns the member `success` of an answer, and its ETag. @param {string} path @param {Call} [call] */
export async function call(path, call) {
  const answer = await send(path, call)
  const body = answer.status === 204 ? undefined : await answer.json()
  return { body: body?.success, etag: answer.headers.get('etag') }
}

/** @param {Response} answer */
async function refusalOf(answer) {
  const body = await answer.json().catch(() => ({}))
  const { code = 'internal', message = '' } = body.error ?? {}
  const seconds = Number(answer.headers.get('retry-after')) || 0
  const again = seconds > 0 ? ` ${text('again', { seconds })}` : ''
  return new Refusal(answer.status, code, `${wordsFor(code, message)}${again}`, body)
}

/** @param {string} code @param {string} message */
export const wordsFor = (code, message) => data.failures?.[code] ?? (message || data.failures?.internal)
