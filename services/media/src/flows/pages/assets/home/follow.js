// Waits until an accepted clip is ready, by its events or by its GIF.
import { text } from '../owner/page-data.js'
import { Problem, toProblem } from './problems.js'
import { answerOf, pause } from './retry.js'

/** Resolves when the clip is ready. Throws its failure as a Problem, and the reason of `signal`. */
export async function waitUntilReady({ page, files }, { headers, signal, report }, what) {
  const id = new URL(page).pathname.split('/').at(-1)
  report(text('making'))
  for (;;) {
    const answer = await fetch(`media/${id}/events`, { headers, signal }).catch(() => undefined)
    signal.throwIfAborted()
    if (answer?.status === 200) {
      if (await followEvents(answer.body, report, what)) return
    } else if (answer && (await isThere(files.gif, signal))) return
    await pause(2_000, signal)
  }
}

/** True when the clip is ready, false when the connection ends first. EventSource cannot send the token. */
async function followEvents(body, report, what) {
  let received = ''
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { value, done } = await reader.read().catch(() => ({ done: true }))
    if (done) return false
    received += value
    const events = received.split('\n\n')
    received = events.pop()
    for (const event of events) {
      const [, data] = /^data: (.*)$/m.exec(event) ?? []
      if (!data) continue
      const { state, progress, failure } = JSON.parse(data)
      // A file that is stored before the others.
      if (!state) continue
      if (state === 'ready') return true
      if (state === 'failed') throw new Problem(failure?.message ?? text('notMade'), what)
      if (state === 'deleted') throw new Problem(text('deleted'))
      if (state === 'hidden') throw new Problem(text('hidden'))
      report(text('making'), progress || undefined, progress ? `${Math.round(progress * 100)} %` : '')
    }
  }
}

/** Addresses of a private clip; its own show nothing. */
export async function linkTo(result, { headers, signal }) {
  const id = result.page.split('/').at(-1)
  const answer = await answerOf(fetch(`media/${id}/links`, { method: 'POST', headers, signal }), signal)
  if (answer.status !== 200) throw toProblem(answer)
  const { url, files, embed } = JSON.parse(answer.body).success
  return { ...result, page: url, files, embed }
}

/** Checks the GIF at its address, which is never stored before the others, for a token without the scope `read`. */
async function isThere(gif, signal) {
  const asked = { method: 'HEAD', cache: 'no-store', redirect: 'manual', signal }
  const answer = await fetch(`f/${gif.split('/').at(-1)}`, asked).catch(() => undefined)
  signal.throwIfAborted()
  const { status = 0, type } = answer ?? {}
  if (status >= 400 && status !== 429 && status < 500) throw new Problem(text('notMade'))
  // Only existing files are redirected to a CDN, which this page may not call.
  return status === 200 || type === 'opaqueredirect'
}
