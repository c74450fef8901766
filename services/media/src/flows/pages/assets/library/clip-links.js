// Links with a time limit for a private clip or album: made, copied, and ended all at once. Those of a clip are listed.
import { html, render } from '../lit.js'
import { call } from '../owner/api.js'
import { confirm } from '../owner/dialog.js'
import { text } from '../owner/page-data.js'
import { toast, toastFailure } from '../owner/toast.js'

/** @typedef {{ url: string, expires_at: string }} Link */

/** @param {string} path @param {{ areListed: boolean }} options whether the API has a list of them */
export function startLinks(path, { areListed }) {
  const part = /** @type {HTMLElement} */ (document.getElementById('links'))
  const list = /** @type {HTMLElement} */ (part.querySelector('ul'))
  const form = /** @type {HTMLFormElement} */ (part.querySelector('form'))
  const time = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short' })
  /** @type {Link[]} */
  let links = []

  const draw = () => {
    const row = (/** @type {Link} */ { url, expires_at: end }, /** @type {number} */ index) => html`<li>
      <span>${text('until', { time: time.format(new Date(end)) })}</span>
      <input id="link-${index}" readonly value=${url} aria-label=${text('page')}>
      <button type="button" class="quiet" data-copy="link-${index}">${text('copy')}</button></li>`
    render(links.length > 0 ? html`${links.map(row)}` : html`<li>${text('noLinks')}</li>`, list)
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const button = /** @type {HTMLButtonElement} */ (form.querySelector('[type=submit]'))
    // A second press would make a second link.
    button.disabled = true
    try {
      const expiresIn = new FormData(form).get('expires_in')
      const { body } = await call(`${path}/links`, { method: 'POST', body: { expires_in: expiresIn } })
      links = [{ url: body.url ?? body.page, expires_at: body.expires_at }, ...links]
      draw()
    } catch (error) {
      toastFailure(error)
    } finally {
      button.disabled = false
      button.focus()
    }
  })
  document.getElementById('end-links')?.addEventListener('click', async () => {
    const about = { title: text('endTitle'), question: text('endText'), action: text('endAll') }
    if (!(await confirm(about))) return
    try {
      await call(`${path}/links`, { method: 'DELETE' })
      links = []
      draw()
      toast(text('ended'))
    } catch (error) {
      toastFailure(error)
    }
  })
  if (areListed) void load()
  else draw()

  async function load() {
    try {
      const { body } = await call(`${path}/links`)
      links = body.items ?? body.links ?? []
      draw()
    } catch (error) {
      render(html`<li>${error instanceof Error ? error.message : ''}</li>`, list)
    }
  }
}
