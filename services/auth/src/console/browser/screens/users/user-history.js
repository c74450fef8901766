// The newest messages to a user and the newest audit entries about it, with links to all of them.
import { badge, section, time } from '../../kit/parts.js'
import { table } from '../../kit/table.js'
import { html, nothing } from '../../lit.js'
import { link } from '../../router.js'

/** @param {string} userId @param {Record<string, any>[]} messages */
export const messagesOf = (userId, messages) =>
  section(
    'Messages',
    table({
      label: 'Messages',
      rows: messages,
      empty: 'No message was sent to the user.',
      columns: [
        { head: 'Kind', cell: ({ kind, channel }) => `${kind} (${channel})` },
        {
          head: 'State',
          cell: ({ state, last_error: error }) =>
            html`${badge(state, state === 'failed' ? 'bad' : 'plain')} ${error ?? nothing}`,
        },
        { head: 'Created', cell: ({ created_at: at }) => time(at) },
        { head: 'Sent', cell: ({ sent_at: at }) => time(at) },
      ],
    }),
    html`<a href=${link('/messages', { user_id: userId })}>All messages</a>`,
  )

/** @param {string} userId @param {Record<string, any>[]} entries */
export const auditOf = (userId, entries) =>
  section(
    'Audit',
    table({
      label: 'Audit',
      rows: entries,
      empty: 'No entry names the user.',
      columns: [
        { head: 'Action', cell: ({ payload }) => payload.action },
        {
          head: 'By',
          cell: ({ payload }) =>
            payload.actor_id === userId ? 'the user' : `${payload.actor_username || payload.actor_id}${viaOf(payload)}`,
        },
        { head: 'Address', cell: ({ ip_address: ip }) => ip || '–' },
        { head: 'Time', cell: ({ created_at: at }) => time(at) },
      ],
    }),
    html`<a href=${link('/audit', { query: `user:${userId}` })}>All entries</a>`,
  )

/** @param {{ via?: string }} payload */
const viaOf = ({ via }) => (via ? ` (${via})` : '')
