// Messages: mails and SMS with their state, why they failed, and sending them again.
import { api } from '../api.js'
import { badge, button, time } from '../kit/parts.js'
import { filterForm, listOf } from '../kit/search.js'
import { pager, table } from '../kit/table.js'
import { act } from '../kit/toast.js'
import { html, nothing } from '../lit.js'
import { link } from '../router.js'

const PER_PAGE = 50
const STATES = ['queued', 'sent', 'failed', 'dropped']

/** Kinds that only SMS have. */
const SMS_KINDS = ['phone_confirmation', 'phone_change', 'second_factor']

/** @typedef {import('../page.js').Page} Page */
/** @typedef {Record<string, any>} Message */

/** @type {import('../page.js').Screen} */
export const messages = {
  path: '/messages',
  title: 'Messages',
  inMenu: true,
  async open(page) {
    const query = { ...Object.fromEntries(page.query), limit: PER_PAGE }
    const userId = page.query.get('user_id')
    const [kinds, list] = await Promise.all([
      listKinds(),
      listOf(page, api.list('/admin/messages', query), (answer) => rowsOf(page, answer)),
    ])
    page.show(html`
      <div class="bar">
        ${filterForm(page, [
          { name: 'address', label: 'Address', hint: 'Whole address or number' },
          { name: 'state', label: 'State', options: STATES },
          { name: 'kind', label: 'Kind', options: kinds.map((value) => ({ value, label: words(value) })) },
        ])}
      </div>
      ${userId ? html`<p>To ${userLink(userId)} alone. <a href=${link('/messages')}>All messages</a></p>` : nothing}
      ${list}`)
  },
}

/** @param {Page} page @param {{ body: any, next: Record<string, string> | undefined }} answer */
const rowsOf = (page, { body, next }) => html`
      ${table({
        label: 'Messages',
        rows: body.messages,
        empty: 'No message matches.',
        columns: [
          { head: 'Message', cell: ({ channel, kind }) => `${words(kind)} (${channel})` },
          { head: 'State', cell: ({ state }) => badge(state, KINDS_OF_STATES[state]) },
          { head: 'Outcome', cell: outcomeOf },
          { head: 'To', cell: ({ user_id: id }) => (id === null ? '–' : userLink(id)) },
          { head: 'Created', cell: ({ created_at: at }) => time(at) },
          { head: 'Sent', cell: ({ sent_at: at }) => time(at) },
          { head: 'Actions', cell: (message) => (message.state === 'failed' ? retryButton(page, message) : '–') },
        ],
      })}
      ${pager(page, next)}`

/** @type {Record<string, 'good' | 'bad' | 'plain'>} */
const KINDS_OF_STATES = { sent: 'good', failed: 'bad' }

/** The kinds that only filter are no reason to show no messages. @returns {Promise<string[]>} */
async function listKinds() {
  const { templates } = await api.get('/admin/mail-templates').catch(() => ({ templates: [] }))
  return [...templates.map((/** @type {{ kind: string }} */ { kind }) => kind), ...SMS_KINDS]
}

/** @param {string} name */
const words = (name) => name.replaceAll('_', ' ')

/** @param {string} id */
const userLink = (id) => html`<a href=${link(`/users/${id}`)}>user ${id.slice(0, 8)}</a>`

/** @param {Message} message */
function outcomeOf({ state, last_error: error, attempts }) {
  const reason = error ?? (state === 'dropped' ? 'only pretended, for no account' : undefined)
  const count = attempts === 0 ? undefined : attempts === 1 ? '1 attempt' : `${attempts} attempts`
  return [reason, count].filter(Boolean).join(', ') || '–'
}

/**
 * Ids of messages that are being sent again: a second press of the button is none.
 * @type {Set<string>}
 */
const retried = new Set()

/** @param {Page} page @param {Message} message */
function retryButton(page, { id }) {
  const retry = async () => {
    if (retried.has(id)) return
    retried.add(id)
    await act(() => api.post(`/admin/messages/${id}/retry`), 'Message queued', page.reload)
    retried.delete(id)
  }
  return html`<div class="actions">${button('Send again', retry)}</div>`
}
