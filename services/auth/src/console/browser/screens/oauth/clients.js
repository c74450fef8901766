// Clients of the OAuth server: applications that sign in with this service.
import { api } from '../../api.js'
import { button, time } from '../../kit/parts.js'
import { listOf } from '../../kit/search.js'
import { pager, table } from '../../kit/table.js'
import { html } from '../../lit.js'
import { link } from '../../router.js'
import { create } from './client-acts.js'
import { nameOf, TYPES, wordsOf } from './client-names.js'

const PER_PAGE = 50

/** @type {import('../../page.js').Screen} */
export const clients = {
  path: '/clients',
  title: 'Clients',
  inMenu: true,
  needs: 'oauth_server',
  async open(page) {
    const query = { page: page.query.get('page'), per_page: PER_PAGE }
    const list = await listOf(page, api.list('/admin/oauth/clients', query), ({ body, next }) => [
      table({
        label: 'Clients',
        rows: body.clients,
        empty: 'There are no clients yet.',
        columns: [
          {
            head: 'Client',
            cell: (client) => html`<a href=${link(`/clients/${client.client_id}`)}>${nameOf(client)}</a>`,
          },
          { head: 'Type', cell: ({ client_type: type }) => TYPES[type] },
          { head: 'Grants', cell: ({ grant_types: grants }) => wordsOf(grants) },
          { head: 'Last used', cell: ({ last_used_at: at }) => time(at) },
          { head: 'Created', cell: ({ created_at: at }) => time(at) },
        ],
      }),
      pager(page, next),
    ])
    page.show(html`
      <div class="bar">
        <p>Applications that sign in with this service.</p>
        <div class="actions">${button('Add a client', create, 'primary')}</div>
      </div>
      ${list}`)
  },
}
