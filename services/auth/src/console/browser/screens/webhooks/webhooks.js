// Webhooks: the receivers of events of users.
import { api } from '../../api.js'
import { badge, button, time } from '../../kit/parts.js'
import { table } from '../../kit/table.js'
import { html } from '../../lit.js'
import { link } from '../../router.js'
import { create } from './webhook-acts.js'

/** @type {import('../../page.js').Screen} */
export const webhooks = {
  path: '/webhooks',
  title: 'Webhooks',
  inMenu: true,
  async open(page) {
    const { webhooks: all } = await api.get('/admin/webhooks')
    page.show(html`
      <div class="bar">
        <p>Your own servers that get events, such as a new user or a sign-in.</p>
        <div class="actions">${button('Add a webhook', create, 'primary')}</div>
      </div>
      ${table({
        label: 'Webhooks',
        rows: all,
        empty: 'There are no webhooks yet.',
        columns: [
          { head: 'Address', cell: ({ id, url }) => html`<a href=${link(`/webhooks/${id}`)}>${url}</a>` },
          { head: 'Events', cell: ({ events }) => events.join(', ') },
          { head: 'State', cell: stateOf },
          { head: 'Description', cell: ({ description }) => description || '–' },
          { head: 'Created', cell: ({ created_at }) => time(created_at) },
        ],
      })}`)
  },
}

/** @type {Record<string, string>} */
const REASONS = {
  gone: 'disabled: it answered 410',
  failing: 'disabled: it failed for five days',
  unset: 'no longer set',
}

/** @param {{ enabled: boolean, disabled_reason?: string }} webhook */
export function stateOf({ enabled, disabled_reason: reason }) {
  if (enabled) return badge('enabled', 'good')
  return badge(reason ? (REASONS[reason] ?? reason) : 'disabled', reason ? 'bad' : 'plain')
}
