// One user with everything about it: account, sessions, factors, passkeys, devices, applications, identities, messages,
// audit.
import { api } from '../../api.js'
import { showParts } from '../../kit/late-parts.js'
import { badge, button, copyable, facts, json, plain, section, time } from '../../kit/parts.js'
import { pager, table } from '../../kit/table.js'
import { html, nothing } from '../../lit.js'
import { session } from '../../session.js'
import { isAdministrator } from './admin-role.js'
import {
  ban,
  deleteUser,
  editMetadata,
  editUser,
  exportData,
  remove,
  sendRecovery,
  signOutEverywhere,
  unban,
} from './user-acts.js'
import { grantsOf } from './user-grants.js'
import { auditOf, messagesOf } from './user-history.js'
import { deviceOf, isBanned, nameOf, statesOf } from './user-names.js'

/** @typedef {import('../../page.js').Page} Page */
/** @typedef {import('../../kit/table.js').Next} Next */
/** @typedef {Record<string, any>} User */

/** Sessions at once; links lead to the others. */
const SESSIONS_SHOWN = 50

/** Messages and audit entries on the page; the lists of these have all. */
const SHOWN = 10

/** @type {import('../../page.js').Screen} */
export const oneUser = {
  path: '/users/:id',
  title: 'User',
  async open(page) {
    const id = encodeURIComponent(page.params.id ?? '')
    const path = `/admin/users/${id}`
    const user = await api.get(path)
    page.setTitle(nameOf(user))
    /** @type {Record<string, import('../../kit/late-parts.js').Part>} */
    const parts = {
      sessions: {
        title: 'Sessions',
        load: () => api.list(`${path}/sessions`, { cursor: page.query.get('cursor'), limit: SESSIONS_SHOWN }),
        show: (list) => sessionsOf(page, user, list),
      },
      passkeys: {
        title: 'Passkeys',
        load: () => api.get(`${path}/passkeys`),
        show: (passkeys) => passkeysOf(page, user, passkeys),
      },
      ...(session().capabilities.trusted_devices && {
        devices: {
          title: 'Trusted devices',
          load: () => api.get(`${path}/trusted-devices`),
          show: (devices) => devicesOf(page, user, devices),
        },
      }),
      ...(session().capabilities.oauth_server && {
        grants: {
          title: 'Applications',
          load: () => api.get(`${path}/oauth/grants`),
          show: (grants) => grantsOf(page, user, grants),
        },
      }),
      messages: {
        title: 'Messages',
        load: () => api.get('/admin/messages', { user_id: id, per_page: SHOWN }),
        show: ({ messages }) => messagesOf(user.id, messages),
      },
      audit: {
        title: 'Audit',
        load: () => api.get('/admin/audit', { query: `user:${id}`, limit: SHOWN }),
        show: (entries) => auditOf(user.id, entries),
      },
    }
    showParts(
      page,
      parts,
      ({ sessions, passkeys, devices, grants, messages, audit }) => html`
        <p class="badges">
          ${isAdministrator(user) ? badge('administrator', 'warn') : nothing}
          ${statesOf(user).map(({ text, kind }) => badge(text, kind))}
        </p>
        ${accountOf(page, user)}
        ${sessions}
        ${factorsOf(page, user)}
        ${passkeys}
        ${devices}
        ${grants}
        ${identitiesOf(user)}
        ${metadataOf(page, user, 'user_metadata', 'Metadata of the user')}
        ${metadataOf(page, user, 'app_metadata', 'Metadata of the application')}
        ${messages}
        ${audit}`,
    )
  },
}

/** @param {Page} page @param {User} user */
const accountOf = (page, user) =>
  section(
    'Account',
    facts([
      ['Id', copyable(user.id)],
      ['E-mail address', user.email && html`${user.email} ${confirmation(user.email_confirmed_at)}`],
      ['Requested e-mail address', user.new_email],
      ['Phone number', user.phone && html`+${user.phone} ${confirmation(user.phone_confirmed_at)}`],
      ['Requested phone number', user.new_phone && `+${user.new_phone}`],
      ['Role', user.role],
      ['Role in the metadata', plain(user.app_metadata.role)],
      ['Audience', user.aud],
      ['Password', user.has_password === undefined ? undefined : user.has_password ? 'set' : 'none'],
      ['Banned until', isBanned(user) && time(user.banned_until)],
      ['Invited', user.invited_at && time(user.invited_at)],
      ['Last sign-in', user.last_sign_in_at && time(user.last_sign_in_at)],
      ['Created', time(user.created_at)],
      ['Changed', time(user.updated_at)],
      ['Deleted', user.deleted_at && time(user.deleted_at)],
    ]),
    user.deleted_at
      ? button('Delete the row', () => deleteUser(user), 'danger')
      : [
          button('Change', () => editUser(page, user)),
          user.email ? button('Send recovery mail', () => sendRecovery(user)) : nothing,
          isBanned(user) ? button('Lift the ban', () => unban(page, user)) : button('Ban', () => ban(page, user)),
          button('Export data', () => exportData(user)),
          button('Delete', () => deleteUser(user), 'danger'),
        ],
  )

/** @param {string | undefined} at */
const confirmation = (at) => (at ? badge('confirmed', 'good') : badge('unconfirmed', 'warn'))

/** @param {Page} page @param {User} user @param {'user_metadata' | 'app_metadata'} kind @param {string} title */
const metadataOf = (page, user, kind, title) =>
  section(
    title,
    json(title, user[kind]),
    user.deleted_at ? nothing : button('Edit', () => editMetadata(page, user, kind)),
  )

/** @param {Page} page @param {User} user @param {{ body: Record<string, any>[], next: Next }} list */
const sessionsOf = (page, user, { body: sessions, next }) =>
  section(
    'Sessions',
    html`${table({
      label: 'Sessions',
      rows: sessions,
      empty: 'The user is signed in nowhere.',
      columns: [
        {
          head: 'Device',
          cell: ({ user_agent: agent }) => html`<span title=${agent ?? nothing}>${deviceOf(agent)}</span>`,
        },
        { head: 'Address', cell: ({ ip }) => ip ?? '–' },
        {
          head: 'Assurance',
          cell: ({ aal }) => (aal === 'aal2' ? badge('second factor', 'good') : badge('one factor')),
        },
        { head: 'Last used', cell: ({ refreshed_at: at }) => time(at) },
        { head: 'Began', cell: ({ created_at: at }) => time(at) },
        {
          head: 'Actions',
          cell: ({ id, user_agent: agent }) =>
            button('End', () =>
              remove(page, {
                title: 'End this session?',
                text: `${deviceOf(agent)} is signed out. Its access token stays valid until it expires.`,
                action: 'End the session',
                path: `/admin/users/${user.id}/sessions/${id}`,
                done: 'Session ended',
              }),
            ),
        },
      ],
    })}${pager(page, next)}`,
    sessions.length > 0 ? button('Sign out everywhere', () => signOutEverywhere(page, user), 'danger') : nothing,
  )

/** @param {Page} page @param {User} user */
const factorsOf = (page, user) =>
  section(
    'Second factors',
    table({
      label: 'Second factors',
      rows: user.factors ?? [],
      empty: 'The user has no second factor.',
      columns: [
        { head: 'Name', cell: ({ friendly_name: name }) => name ?? '–' },
        { head: 'Kind', cell: ({ factor_type: type, phone }) => [type, phone].filter(Boolean).join(' ') },
        { head: 'State', cell: ({ status }) => badge(status, status === 'verified' ? 'good' : 'warn') },
        { head: 'Last asked for', cell: ({ last_challenged_at: at }) => time(at) },
        { head: 'Added', cell: ({ created_at: at }) => time(at) },
        {
          head: 'Actions',
          cell: ({ id, friendly_name: name, factor_type: type }) =>
            button('Remove', () =>
              remove(page, {
                title: `Remove ${name ?? type}?`,
                text: 'The user signs in without it. Make sure that the request comes from the user: a thief would ask the same.',
                action: 'Remove the factor',
                path: `/admin/users/${user.id}/factors/${id}`,
                done: 'Factor removed',
              }),
            ),
        },
      ],
    }),
  )

/** @param {Page} page @param {User} user @param {Record<string, any>[]} passkeys */
const passkeysOf = (page, user, passkeys) =>
  section(
    'Passkeys',
    table({
      label: 'Passkeys',
      rows: passkeys,
      empty: 'The user has no passkey.',
      columns: [
        { head: 'Name', cell: ({ friendly_name: name }) => name },
        { head: 'Last used', cell: ({ last_used_at: at }) => time(at) },
        { head: 'Added', cell: ({ created_at: at }) => time(at) },
        {
          head: 'Actions',
          cell: ({ id, friendly_name: name }) =>
            button('Remove', () =>
              remove(page, {
                title: `Remove ${name}?`,
                text: 'The user can no longer sign in with it, and the sessions that it began end.',
                action: 'Remove the passkey',
                path: `/admin/users/${user.id}/passkeys/${id}`,
                done: 'Passkey removed',
              }),
            ),
        },
      ],
    }),
  )

/** @param {Page} page @param {User} user @param {Record<string, any>[]} devices */
const devicesOf = (page, user, devices) =>
  section(
    'Trusted devices',
    table({
      label: 'Trusted devices',
      rows: devices,
      empty: 'The user trusts no device.',
      columns: [
        { head: 'Device', cell: ({ name, user_agent: agent }) => name || deviceOf(agent) },
        { head: 'Last used', cell: ({ last_used_at: at }) => time(at) },
        { head: 'Trusted until', cell: ({ expires_at: at }) => time(at) },
        {
          head: 'Actions',
          cell: ({ id }) =>
            button('Remove', () =>
              remove(page, {
                title: 'End the trust in this device?',
                text: 'Its next sign-in asks for the second factor again.',
                action: 'Remove the device',
                path: `/admin/users/${user.id}/trusted-devices/${id}`,
                done: 'Device removed',
              }),
            ),
        },
      ],
    }),
  )

/** @param {User} user */
const identitiesOf = (user) =>
  section(
    'Identities',
    table({
      label: 'Identities',
      rows: user.identities,
      empty: 'The user has no identity.',
      columns: [
        { head: 'Provider', cell: ({ provider }) => provider },
        { head: 'Account', cell: ({ email, id }) => email ?? id },
        { head: 'Last sign-in', cell: ({ last_sign_in_at: at }) => time(at) },
        { head: 'Linked', cell: ({ created_at: at }) => time(at) },
      ],
    }),
  )
