// Repetition of calls whose answer was lost.
import { text } from '../owner/page-data.js'
import { toProblem } from './problems.js'

export const RETRY_DELAYS_MS = [500, 1_000, 2_000, 4_000, 8_000, 16_000]

export const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })

/** Reads what is needed of an answer of `fetch`; status 0 means none. */
export async function answerOf(call, signal) {
  const answer = await call.catch(() => undefined)
  signal.throwIfAborted()
  const header = (name) => answer?.headers.get(name) ?? null
  const body = (await answer?.text().catch(() => '')) ?? ''
  return { status: answer?.status ?? 0, header, body, retryAfter: header('Retry-After') }
}

/** Repeats a call until the service itself answers; returns a 201 and throws a Problem otherwise. */
export async function untilAdded(send, { what, report, signal }) {
  for (let failures = 0; ; failures++) {
    const answer = await send()
    if (answer.status === 201) return answer
    const problem = toProblem(answer, what)
    const isLost = answer.status === 0 || ([502, 503, 504].includes(answer.status) && !problem.code)
    if (!isLost || failures === RETRY_DELAYS_MS.length) throw problem
    report(text('lost'))
    await pause(RETRY_DELAYS_MS[failures], signal)
  }
}
