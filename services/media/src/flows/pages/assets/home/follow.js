// Waits until an accepted clip is ready, by its events or by its GIF.
import { Problem, toProblem } from './problems.js'
import { pause, report } from './progress.js'

export const MAKING = 'Making the files'

export async function waitUntilReady({ page, files }, { headers, signal }, what) {
  const id = new URL(page).pathname.split('/').at(-1)
  report(MAKING, undefined)
  while (!signal.aborted) {
    const answer = await fetch(`media/${id}/events`, { headers, signal }).catch(() => undefined)
    signal.throwIfAborted()
    if (answer?.status === 200) {
      if (await followEvents(answer.body, what)) return
    } else if (answer && (await isThere(files.gif, signal))) return
    await pause(2_000, signal)
  }
}

/** True when the clip is ready, false when the connection ends first. EventSource cannot send the token. */
async function followEvents(body, what) {
  let text = ''
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { value, done } = await reader.read().catch(() => ({ done: true }))
    if (done) return false
    text += value
    const events = text.split('\n\n')
    text = events.pop()
    for (const event of events) {
      const [, data] = /^data: (.*)$/m.exec(event) ?? []
      if (!data) continue
      const { state, progress, failure } = JSON.parse(data)
      // A file that is stored before the others.
      if (!state) continue
      if (state === 'ready') return true
      if (state === 'failed') throw new Problem(failure?.message ?? 'The clip could not be made.', what)
      if (state === 'deleted') throw new Problem('The clip was deleted meanwhile.')
      if (state === 'hidden') throw new Problem('The operator has hidden this clip.')
      report(MAKING, progress || undefined, progress ? `${Math.round(progress * 100)} %` : '')
    }
  }
}

/** Addresses of a private clip; its own show nothing. */
export async function linkTo(result, { headers, signal }) {
  const id = result.page.split('/').at(-1)
  const answer = await fetch(`media/${id}/links`, { method: 'POST', headers, signal })
  if (answer.status !== 200) throw toProblem(answer.status, await answer.text())
  const { url, files, embed } = (await answer.json()).success
  return { ...result, page: url, files, embed }
}

/** Checks the GIF at its address, which is never stored before the others, for a token without the scope `read`. */
async function isThere(gif, signal) {
  const asked = { method: 'HEAD', cache: 'no-store', redirect: 'manual', signal }
  const { status, type } = await fetch(`f/${gif.split('/').at(-1)}`, asked)
  if (status >= 400 && status !== 429 && status < 500) throw new Problem('The clip could not be made.')
  // Only existing files are redirected to a CDN, which this page may not call.
  return status === 200 || type === 'opaqueredirect'
}
