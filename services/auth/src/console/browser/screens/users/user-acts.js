// Acts of an administrator on a user: each is a call of the admin API, after a question where it cannot be undone.
import { api } from '../../api.js'
import { confirm } from '../../kit/dialog.js'
import { download } from '../../kit/download.js'
import { formDialog } from '../../kit/form.js'
import { act } from '../../kit/toast.js'
import { go } from '../../router.js'
import { session } from '../../session.js'
import { confirmLoss, warningOf } from './admin-role.js'
import { changesOf, ownMember, saverOf } from './save-user.js'
import { nameOf } from './user-names.js'

/** @typedef {import('../../page.js').Page} Page */
/** @typedef {Record<string, any>} User */

/** @param {User} user */
const pathOf = ({ id }) => `/admin/users/${id}`

const BANS = [
  { value: '1h', label: 'for an hour' },
  { value: '24h', label: 'for a day' },
  { value: '168h', label: 'for a week' },
  { value: '720h', label: 'for 30 days' },
  { value: '876000h', label: 'until it is lifted' },
]

/** @param {Page} page @param {User} user */
export const ban = async (page, user) => {
  const isDone = await formDialog({
    title: `Ban ${nameOf(user)}`,
    text: `The user can neither sign in nor use a session. Access tokens stay valid until they expire. ${warningOf(user)}`,
    fields: [{ name: 'ban_duration', label: 'Duration', type: 'select', options: BANS, value: '24h' }],
    action: 'Ban',
    submit: (body) => api.put(pathOf(user), body),
    done: 'User banned',
  })
  if (isDone) await page.reload()
}

/** @param {Page} page @param {User} user */
export const unban = (page, user) =>
  act(() => api.put(pathOf(user), { ban_duration: 'none' }), 'Ban lifted', page.reload)

/** @param {User} user */
export const sendRecovery = (user) =>
  act(() => api.post(`${pathOf(user)}/recover`), `Recovery mail to ${user.email} queued`)

/** @param {User} user */
export const exportData = (user) =>
  act(async () => download(`user-${user.id}.json`, await api.text(`${pathOf(user)}/export`)), 'Data exported')

/**
 * Asks, then removes a part of the user.
 * @param {Page} page
 * @param {{ title: string, text: string, action: string, path: string, done: string }} removal
 */
export async function remove(page, { title, text, action, path, done }) {
  if (!(await confirm({ title, text, action, isDangerous: true }))) return
  await act(() => api.delete(path), done, page.reload)
}

/** @param {Page} page @param {User} user */
export const signOutEverywhere = (page, user) =>
  remove(page, {
    title: 'Sign out everywhere?',
    text: `All sessions of ${nameOf(user)} end. Access tokens stay valid until they expire.`,
    action: 'Sign out',
    path: `${pathOf(user)}/sessions`,
    done: 'Signed out everywhere',
  })

/** @param {User} user */
export async function deleteUser(user) {
  const isDone = await formDialog({
    title: `Delete ${nameOf(user)}?`,
    text: `The account, its sessions, factors and identities are removed at once. This cannot be undone. ${warningOf(user)}`,
    fields: [
      {
        name: 'should_soft_delete',
        label: 'Keep an empty row with the id, so that rows of your application still find it',
        type: 'checkbox',
      },
    ],
    action: 'Delete',
    isDangerous: true,
    submit: (body) => api.delete(pathOf(user), body),
    done: 'User deleted',
  })
  if (isDone) go('/users')
}

/** @param {Page} page @param {User} user @param {'user_metadata' | 'app_metadata'} kind */
export async function editMetadata(page, user, kind) {
  const before = user[kind]
  const save = saverOf(user)
  const isDone = await formDialog({
    title: kind === 'user_metadata' ? 'Metadata of the user' : 'Metadata of the application',
    text:
      kind === 'user_metadata'
        ? 'The user can change this too. It is part of access tokens.'
        : 'Only administrators can change this. It is part of access tokens.',
    fields: [{ name: 'metadata', label: 'JSON object', type: 'json', value: before }],
    action: 'Save',
    submit: async ({ metadata }) => {
      const changes = changesOf(before, metadata)
      if (Object.keys(changes).length === 0) return true
      if (!(await confirmLoss(user, { [kind]: metadata }))) return false
      const touched = (/** @type {User} */ current) =>
        Object.fromEntries(Object.keys(changes).map((name) => [name, ownMember(current[kind], name)]))
      await save({ [kind]: changes }, touched)
      return true
    },
    done: 'Metadata saved',
  })
  if (isDone) await page.reload()
}

/** @param {Page} page @param {User} user */
export async function editUser(page, user) {
  const save = saverOf(user)
  const phone = user.phone && `+${user.phone}`
  const appRole = typeof user.app_metadata.role === 'string' ? user.app_metadata.role : ''
  const isDone = await formDialog({
    title: `Change ${nameOf(user)}`,
    text: 'Changes apply at once, without a mail. Make sure that the new address belongs to the user.',
    fields: [
      { name: 'email', label: 'E-mail address', type: 'email', value: user.email, confirmedBy: 'email_confirm' },
      {
        name: 'email_confirm',
        label: 'The address counts as confirmed',
        type: 'checkbox',
        value: 'email_confirmed_at' in user,
      },
      { name: 'phone', label: 'Phone number', type: 'tel', value: phone, confirmedBy: 'phone_confirm' },
      {
        name: 'phone_confirm',
        label: 'The number counts as confirmed',
        type: 'checkbox',
        value: 'phone_confirmed_at' in user,
      },
      {
        name: 'role',
        label: 'Role',
        value: user.role,
        required: true,
        hint: `Part of access tokens. These give all rights over users: ${session().admin_roles.join(', ')}`,
      },
      {
        name: 'app_role',
        label: 'Role in the metadata of the application',
        value: appRole,
        hint: 'The same roles open the console from here, whatever the role above is. Empty removes it.',
      },
    ],
    action: 'Save',
    submit: async (given) => {
      const before = {
        ...{ email: user.email, phone, role: user.role, app_role: appRole },
        ...{ email_confirm: 'email_confirmed_at' in user, phone_confirm: 'phone_confirmed_at' in user },
      }
      const changes = changesOf(before, given)
      // A new address does not inherit the confirmation of the old one.
      for (const channel of ['email', 'phone']) {
        if (changes[channel]) changes[`${channel}_confirm`] = given[`${channel}_confirm`]
      }
      if (Object.keys(changes).length === 0) return true
      const { app_role: newRole, ...others } = changes
      const body = { ...others, ...(newRole !== undefined && { app_metadata: { role: newRole || null } }) }
      if (!(await confirmLoss(user, body))) return false
      await save(body, ({ email, phone, role, app_metadata, email_confirmed_at, phone_confirmed_at }) => ({
        ...('email' in changes && { email }),
        ...('phone' in changes && { phone }),
        ...('role' in changes && { role }),
        ...('app_role' in changes && { 'app_metadata.role': app_metadata.role }),
        ...('email_confirm' in changes && { email_confirmed_at }),
        ...('phone_confirm' in changes && { phone_confirmed_at }),
      }))
      return true
    },
    done: 'User saved',
  })
  if (isDone) await page.reload()
}
