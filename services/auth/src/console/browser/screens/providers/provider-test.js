// The test of a provider: opens its sign-in in another window, and waits for the outcome.
import { api } from '../../api.js'
import { badge, facts, json } from '../../kit/parts.js'
import { toastFailure } from '../../kit/toast.js'
import { html, render } from '../../lit.js'

const ASK_EVERY_MS = 1_500

/** @param {import('../../page.js').Page} page @param {string} provider */
export async function testProvider(page, provider) {
  const place = document.getElementById('test-outcome')
  if (!place) return
  try {
    const test = await api.post(`/admin/providers/${encodeURIComponent(provider)}/test`)
    render(waiting(test), place)
    const outcome = await outcomeOf(test, page.signal)
    if (!page.signal.aborted) render(outcome ? shown(outcome) : html`<p>No browser came back in time.</p>`, place)
  } catch (error) {
    toastFailure(error)
  }
}

/** The reader opens the window: scripts may open none after a request. @param {{ url: string }} test */
const waiting = ({ url }) => html`
  <p><a href=${url} target="_blank" rel="noopener noreferrer">Open the sign-in in a new window</a></p>
  <p>The outcome appears here once you are back.</p>`

/** @param {{ id: string, expires_at: string }} test @param {AbortSignal} signal */
async function outcomeOf({ id, expires_at }, signal) {
  const end = Date.parse(expires_at)
  while (!signal.aborted && Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS))
    const outcome = await api.get(`/admin/providers/tests/${id}`)
    if (outcome.state !== 'waiting') return outcome
  }
  return undefined
}

/** @param {any} outcome */
const shown = ({ state, identity, emails, error }) =>
  state === 'succeeded'
    ? html`
      <p>${badge('signed in', 'good')} No user was created.</p>
      ${facts([
        [
          'Addresses',
          emails.map(
            (/** @type {any} */ each) => html`${each.email} ${badge(each.verified ? 'verified' : 'not verified')} `,
          ),
        ],
      ])}
      ${json('Identity that a sign-in would store', identity)}`
    : html`
      <p>${badge('failed', 'bad')} ${error.message}</p>
      ${facts([
        ['Code', error.code],
        ['Reason', error.reason],
      ])}`
