// A new clip from an earlier one: the library names its file in the fragment of the address, as
// `/#from=https://host/f/id.mp4`.
import { text } from '../owner/page-data.js'
import { take } from './choose.js'
import { form } from './elements.js'
import { complain } from './problems.js'

/** Longest wait for a file that is at most as large as an upload. */
const WAIT_MS = 60_000

async function takeNamed() {
  const from = new URLSearchParams(location.hash.slice(1)).get('from')
  const { pathname } = from && URL.canParse(from) ? new URL(from) : { pathname: '' }
  const [, name, clip] = /\/f\/((\w+)\.(?:mp4|webm|gif))$/.exec(pathname) ?? []
  if (!name) return
  // A reload would take it again.
  history.replaceState(null, '', location.pathname)
  try {
    const answer = await fetch(from, { signal: AbortSignal.timeout(WAIT_MS) })
    if (!answer.ok) throw new Error(`answer ${answer.status}`)
    const file = await answer.blob()
    if (!form.hidden) take([new File([file], name, { type: file.type })], { beside: true, from: clip })
  } catch {
    complain('file', text('noSource'))
  }
}
takeNamed()
addEventListener('hashchange', takeNamed)
