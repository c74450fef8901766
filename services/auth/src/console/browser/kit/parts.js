// Small parts of pages: times, badges, facts, sections, buttons.
import { ApiFailure } from '../api.js'
import { html, nothing, render } from '../lit.js'

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })

/** A time in the reader's zone; the exact one is its title. @param {string | null | undefined} iso */
export const time = (iso) => (iso ? html`<time datetime=${iso} title=${iso}>${TIME.format(new Date(iso))}</time>` : '–')

/** @param {string} text @param {'good' | 'bad' | 'warn' | 'plain'} [kind] */
export const badge = (text, kind = 'plain') => html`<span class="badge ${kind}">${text}</span>`

/** A list of names and values; absent values are left out. @param {[label: string, value: unknown][]} entries */
export const facts = (entries) => html`
  <dl class="facts">
    ${entries
      .filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false)
      .map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}
  </dl>`

/** @param {string} title @param {unknown} content @param {unknown} [actions] Buttons beside the title. */
export const section = (title, content, actions = nothing) => html`
  <section class="card" aria-label=${title}>
    <header><h2>${title}</h2><div class="actions">${actions}</div></header>
    ${content}
  </section>`

/** Buttons whose act is not done: a double click does it once. @type {WeakSet<EventTarget>} */
const pressed = new WeakSet()

/** @param {Event} event @param {() => unknown} act */
async function once({ currentTarget: target }, act) {
  if (!target || pressed.has(target)) return
  pressed.add(target)
  try {
    await act()
  } finally {
    pressed.delete(target)
  }
}

/** @param {string} label @param {() => unknown} onClick @param {'quiet' | 'primary' | 'danger'} [kind] */
export const button = (label, onClick, kind = 'quiet') =>
  html`<button type="button" class=${kind} @click=${(/** @type {Event} */ event) => once(event, onClick)}>${label}</button>`

/**
 * Says in place of a page, or a part of one, why it is not there.
 * @param {unknown} error @param {() => unknown} retry
 */
export function failure(error, retry) {
  const waits = error instanceof ApiFailure && error.retryAfterSeconds > 0
  return html`
    <div class="notice problem" role="alert">
      <p>${error instanceof Error ? error.message : String(error)}</p>
      ${waits ? laterButton(error.retryAfterSeconds, retry) : button('Try again', retry)}
    </div>`
}

/**
 * A button that takes no press before the service takes the request.
 * @param {number} seconds @param {() => unknown} retry
 */
function laterButton(seconds, retry) {
  const element = document.createElement('span')
  const draw = (/** @type {boolean} */ isEarly) =>
    render(html`<button type="button" class="quiet" ?disabled=${isEarly} @click=${retry}>Try again</button>`, element)
  draw(true)
  setTimeout(() => draw(false), seconds * 1000)
  return element
}

/**
 * A value that a user chose, as text. The template library takes some objects for nodes and templates, and fails.
 * @param {unknown} value
 */
export const plain = (value) => (typeof value === 'string' || value === undefined ? value : JSON.stringify(value))

/** A text to copy, such as an id. Its outcome is beside it, as a dialog hides the toasts. @param {string} text */
export const copyable = (text) => html`
  <span class="copyable"><code>${text}</code>
  <button type="button" class="quiet" aria-label="Copy ${text}" @click=${copy}>Copy</button>
  <span role="status"></span></span>`

/** @param {Event} event */
async function copy({ currentTarget }) {
  const [text, , outcome] = /** @type {Element} */ (currentTarget).parentElement?.children ?? []
  if (!text || !outcome) return
  outcome.textContent = ''
  try {
    // Throws on plain http, where browsers have no clipboard.
    await navigator.clipboard.writeText(text.textContent)
    outcome.textContent = 'Copied'
  } catch {
    outcome.textContent = 'Not copied: the browser refuses'
  }
}

/**
 * A value as JSON, read only. It can have the focus, to be scrolled by keys.
 * @param {string} label
 * @param {unknown} value
 */
export const json = (label, value) =>
  html`<pre tabindex="0" role="group" aria-label=${label}>${JSON.stringify(value, null, 2)}</pre>`
