// Applications that a user signs in to by the OAuth server, and the end of that.
import { button, section, time } from '../../kit/parts.js'
import { table } from '../../kit/table.js'
import { html } from '../../lit.js'
import { link } from '../../router.js'
import { remove } from './user-acts.js'

/** @param {import('../../page.js').Page} page @param {{ id: string }} user @param {Record<string, any>[]} grants */
export const grantsOf = (page, user, grants) =>
  section(
    'Applications',
    table({
      label: 'Applications',
      rows: grants,
      empty: 'The user has agreed to no application.',
      columns: [
        {
          head: 'Application',
          cell: ({ client }) => html`<a href=${link(`/clients/${client.id}`)}>${client.name ?? client.id}</a>`,
        },
        { head: 'Scopes', cell: ({ scopes }) => scopes.join(' ') },
        { head: 'Agreed', cell: ({ granted_at: at }) => time(at) },
        {
          head: 'Actions',
          cell: ({ client }) =>
            button('Withdraw', () =>
              remove(page, {
                title: `Withdraw the consent to ${client.name ?? client.id}?`,
                text: 'Its sessions of the user end, and it asks again. Access tokens stay valid until they expire.',
                action: 'Withdraw',
                path: `/admin/users/${user.id}/oauth/grants/${client.id}`,
                done: 'Consent withdrawn',
              }),
            ),
        },
      ],
    }),
  )
