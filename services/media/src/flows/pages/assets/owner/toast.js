// Short messages at the end of the page: news go by themselves, a failure stays until it is closed.
import { html, render } from '../lit.js'
import { text } from './page-data.js'

const NEWS_MS = 6_000

const [done, failed] = ['done', 'failed'].map((id) => /** @type {HTMLElement} */ (document.getElementById(id)))

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer

/** Shows news; an empty text takes the last away. @param {string} news */
export function toast(news) {
  if (!done) return
  clearTimeout(timer)
  render(news ? html`<div class="notice news"><p dir="auto">${news}</p></div>` : html``, done)
  timer = setTimeout(() => render(html``, done), NEWS_MS)
}

/** @param {unknown} error */
export function toastFailure(error) {
  if (!failed) return
  const message = error instanceof Error ? error.message : String(error)
  const close = () => render(html``, failed)
  render(
    html`<div class="notice problem"><p dir="auto">${message}</p>
      <button type="button" class="quiet" @click=${close}>${text('close')}</button></div>`,
    failed,
  )
}
