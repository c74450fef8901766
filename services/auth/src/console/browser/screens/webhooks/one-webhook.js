// One webhook: its settings, acts, and the log of its deliveries.
import { api } from '../../api.js'
import { badge, button, copyable, facts, section, time } from '../../kit/parts.js'
import { pager, table } from '../../kit/table.js'
import { act } from '../../kit/toast.js'
import { html, nothing } from '../../lit.js'
import { link } from '../../router.js'
import { change, deleteWebhook, enable, pathOf, rotateSecret, sendTest } from './webhook-acts.js'
import { stateOf } from './webhooks.js'

/** @typedef {import('../../page.js').Page} Page */

/** @type {import('../../page.js').Screen} */
export const oneWebhook = {
  path: '/webhooks/:id',
  title: 'Webhook',
  async open(page) {
    const path = `/admin/webhooks/${encodeURIComponent(page.params.id ?? '')}`
    const [webhook, { body, next }] = await Promise.all([
      api.get(path),
      api.list(`${path}/deliveries`, { cursor: page.query.get('cursor') }),
    ])
    page.show(html`
      <p><a href=${link('/webhooks')}>All webhooks</a></p>
      ${section(
        'Receiver',
        facts([
          ['Address', copyable(webhook.url)],
          ['Events', webhook.events.join(', ')],
          ['State', stateOf(webhook)],
          ['Description', webhook.description],
          ['Id', copyable(webhook.id)],
          ['Created', time(webhook.created_at)],
        ]),
        actsOf(page, webhook),
      )}
      ${section('Deliveries', html`${deliveriesOf(page, webhook, body.deliveries)} ${pager(page, next)}`)}`)
  },
}

/** @param {Page} page @param {any} webhook */
const actsOf = (page, webhook) => html`
  ${button('Change', () => change(page, webhook))}
  ${button(webhook.enabled ? 'Disable' : 'Enable', () => enable(page, webhook))}
  ${button('Send a test', () => sendTest(page, webhook))}
  ${button('Rotate the secret', () => rotateSecret(page, webhook))}
  ${button('Delete', () => deleteWebhook(webhook), 'danger')}`

/** @type {Record<string, 'good' | 'bad' | 'plain'>} */
const KINDS = { delivered: 'good', failed: 'bad' }

/** @param {Page} page @param {any} webhook @param {any[]} deliveries */
const deliveriesOf = (page, webhook, deliveries) =>
  table({
    label: 'Deliveries',
    rows: deliveries,
    empty: 'No event was sent to it yet.',
    columns: [
      { head: 'Event', cell: ({ event, id }) => html`${event}<br><code>${id}</code>` },
      { head: 'User', cell: ({ user_id: id }) => (id ? html`<a href=${link(`/users/${id}`)}>${id}</a>` : '–') },
      { head: 'State', cell: deliveryState },
      { head: 'Last answer', cell: lastAnswer },
      { head: 'Created', cell: ({ created_at }) => time(created_at) },
      { head: 'Actions', cell: (delivery) => button('Send again', () => replay(page, webhook, delivery)) },
    ],
  })

/** @param {any} delivery */
const deliveryState = ({ state, next_at: next }) =>
  html`${badge(state, KINDS[state])} ${state === 'waiting' && next ? html`<br>next at ${time(next)}` : nothing}`

/** @param {any} delivery */
const lastAnswer = ({ status, error, attempts }) =>
  attempts === 0 ? '–' : `${[status, error].filter(Boolean).join(': ')} (attempt ${attempts})`

/** @param {Page} page @param {any} webhook @param {{ id: string }} delivery */
const replay = (page, webhook, { id }) =>
  act(() => api.post(`${pathOf(webhook)}/deliveries/${id}/retry`), 'The event is sent again', page.reload)
