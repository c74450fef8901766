// Deliveries of the token's webhooks about a clip: the newest, asked for when the reader opens them.
import { html, render } from '../lit.js'
import { call } from '../owner/api.js'
import { text } from '../owner/page-data.js'
import { toastFailure } from '../owner/toast.js'

const MOST = 20

/**
 * @typedef {{ type: string, state: string, attempts: number, created_at: string, last_status: number | null,
 *   last_error: string | null }} Delivery
 */

/** @param {string} path */
export function startDeliveries(path) {
  const part = /** @type {HTMLDetailsElement | null} */ (document.getElementById('deliveries'))
  const place = part?.querySelector('div')
  if (!part || !place) return
  const time = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium', timeStyle: 'short' })
  const columns = ['event', 'state', 'attempts', 'time'].map((key) => text(key))
  const row = (/** @type {Delivery} */ delivery) => {
    const reason = delivery.last_error ?? delivery.last_status ?? ''
    const cells = [
      delivery.type,
      `${text(delivery.state)} ${reason}`,
      delivery.attempts,
      time.format(new Date(delivery.created_at)),
    ]
    return html`<tr>${cells.map((cell, n) => html`<td data-column=${columns[n]}>${cell}</td>`)}</tr>`
  }
  part.addEventListener('toggle', async () => {
    if (!part.open) return
    try {
      const { body } = await call(`${path}/deliveries?limit=${MOST}`)
      const table = html`<table><thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
        <tbody>${body.items.map(row)}</tbody></table>`
      render(body.items.length > 0 ? table : html`<p class="empty">${text('noDeliveries')}</p>`, place)
    } catch (error) {
      toastFailure(error)
    }
  })
}
