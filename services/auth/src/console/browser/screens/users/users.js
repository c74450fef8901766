// Users: search by address, number, name or id, newest first, by cursor. Creating and inviting.
import { api } from '../../api.js'
import { formDialog } from '../../kit/form.js'
import { badge, button, plain, time } from '../../kit/parts.js'
import { filterForm, listOf } from '../../kit/search.js'
import { pager, table } from '../../kit/table.js'
import { toast } from '../../kit/toast.js'
import { html } from '../../lit.js'
import { go, link } from '../../router.js'
import { session } from '../../session.js'
import { nameOf, statesOf } from './user-names.js'

/** @typedef {import('../../page.js').Page} Page */

const PER_PAGE = 50
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** @type {import('../../page.js').Screen} */
export const users = {
  path: '/users',
  title: 'Users',
  inMenu: true,
  async open(page) {
    const filter = page.query.get('filter') ?? ''
    if (UUID.test(filter)) {
      location.replace(link(`/users/${filter}`))
      return
    }
    const query = { filter, cursor: page.query.get('cursor'), limit: PER_PAGE, sort: 'created_at desc' }
    const audience = audienceOf(page)
    const [empty, ...options] = session().audiences
    const list = await listOf(page, api.list('/admin/users', query, audience), (answer) => rowsOf(page, answer))
    page.show(html`
      <div class="bar">
        ${filterForm(page, [
          { name: 'filter', label: 'Search', hint: 'Address, number, name or id' },
          ...(options.length > 0 ? [{ name: 'aud', label: 'Audience', options, empty }] : []),
        ])}
        <div class="actions">
          ${button('Invite', () => invite(audience))}
          ${button('Create user', () => create(audience), 'primary')}
        </div>
      </div>
      ${list}`)
  },
}

/**
 * Header that names the audience of the address; without one it is the default of the service.
 * @param {Page} page @returns {Record<string, string>}
 */
function audienceOf({ query }) {
  const aud = query.get('aud')
  return aud ? { 'x-jwt-aud': aud } : {}
}

/** @param {Page} page @param {{ body: any, next: Record<string, string> | undefined }} answer */
function rowsOf(page, { body, next }) {
  const filter = page.query.get('filter')
  return html`
      ${table({
        label: 'Users',
        rows: body.users,
        empty: filter ? `No user has “${filter}” in an address, number or name.` : 'There are no users yet.',
        columns: [
          { head: 'User', cell: (user) => html`<a href=${link(`/users/${user.id}`)}>${nameOf(user)}</a>` },
          { head: 'Name', cell: ({ user_metadata: data }) => plain(data.full_name ?? data.name) ?? '–' },
          { head: 'State', cell: (user) => statesOf(user).map(({ text, kind }) => badge(text, kind)) },
          { head: 'Last sign-in', cell: (user) => time(user.last_sign_in_at) },
          { head: 'Created', cell: (user) => time(user.created_at) },
        ],
      })}
      ${pager(page, next)}`
}

/** @param {Record<string, string>} audience */
const invite = (audience) =>
  formDialog({
    title: 'Invite a user',
    text: 'The address gets a mail with a link, at which the user chooses a password.',
    fields: [{ name: 'email', label: 'E-mail address', type: 'email', required: true }],
    action: 'Send the invitation',
    submit: async ({ email }) => {
      const user = await api.post('/invite', { email }, audience)
      toast('Invitation queued')
      go(`/users/${user.id}`)
    },
  })

/** @param {Record<string, string>} audience */
const create = (audience) =>
  formDialog({
    title: 'Create a user',
    text: 'No message is sent. Give an e-mail address, a phone number, or both.',
    fields: [
      { name: 'email', label: 'E-mail address', type: 'email' },
      { name: 'email_confirm', label: 'The address counts as confirmed', type: 'checkbox' },
      { name: 'phone', label: 'Phone number', type: 'tel', hint: 'With country code, such as +44 7700 900123' },
      { name: 'phone_confirm', label: 'The number counts as confirmed', type: 'checkbox' },
      { name: 'password', label: 'Password', type: 'password', hint: 'Without one the user signs in by link or code' },
    ],
    action: 'Create',
    submit: async ({ email_confirm, phone_confirm, ...given }) => {
      const texts = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
      const confirmations = { ...(texts.email && { email_confirm }), ...(texts.phone && { phone_confirm }) }
      const user = await api.post('/admin/users', { ...texts, ...confirmations }, audience)
      toast('User created')
      go(`/users/${user.id}`)
    },
  })
