// Acts on a client: each is a call of the admin API.
import { api } from '../../api.js'
import { confirm } from '../../kit/dialog.js'
import { formDialog } from '../../kit/form.js'
import { showSecret } from '../../kit/secret.js'
import { act, toastFailure } from '../../kit/toast.js'
import { go } from '../../router.js'
import { changesOf } from '../users/save-user.js'
import { bodyOf, newClientFields } from './client-fields.js'
import { nameOf } from './client-names.js'

/** @typedef {import('../../page.js').Page} Page */
/** @typedef {import('./client-names.js').Client} Client */

/** @param {{ client_id?: string }} client */
export const pathOf = ({ client_id: id = '' }) => `/admin/oauth/clients/${encodeURIComponent(id)}`

const TYPES = [
  { value: 'confidential', label: 'Confidential: a server, which keeps a secret' },
  { value: 'public', label: 'Public: a browser, a phone or a command line' },
]

/** @returns {Promise<void>} */
export async function create() {
  /** @type {'public' | 'confidential' | undefined} */
  let type
  const isChosen = await formDialog({
    title: 'Add a client',
    text: 'The type never changes. An application that runs at its users keeps no secret.',
    fields: [{ name: 'client_type', label: 'Type', type: 'select', options: TYPES, value: 'confidential' }],
    action: 'Next',
    submit: async ({ client_type: chosen }) => {
      type = chosen
    },
  })
  if (!isChosen || !type) return
  /** @type {Client | undefined} */
  let added
  await formDialog({
    title: `Add a ${type} client`,
    ...(type === 'confidential' && { text: 'Its secret is shown once, after this.' }),
    fields: newClientFields(type),
    action: 'Add',
    submit: async (values) => {
      added = await api.post('/admin/oauth/clients', { client_type: type, ...bodyOf(values) })
    },
  })
  if (added === undefined) return
  await showNew(added)
  go(`/clients/${added.client_id}`)
}

/** @param {Client} client */
const showNew = async ({ client_secret: secret }) =>
  secret && showSecret('Secret of the client', 'Store it in the application now: it is not shown again.', secret)

/**
 * Saves the members that were changed alone: another administrator may change others meanwhile.
 * @param {Page} page @param {Client} client @param {string} title @param {import('../../kit/form.js').Field[]} fields
 */
export async function change(page, client, title, fields) {
  const before = bodyOf(Object.fromEntries(fields.map(({ name, value = '' }) => [name, value])))
  const isDone = await formDialog({
    ...{ title, fields, action: 'Save', done: 'Client saved' },
    submit: async (values) => {
      const changes = changesOf(before, bodyOf(values))
      if (Object.keys(changes).length > 0) await api.put(pathOf(client), changes)
    },
  })
  if (isDone) await page.reload()
}

/** @param {Page} page @param {Client} client */
export async function rotateSecret(page, client) {
  const isWanted = await confirm({
    title: 'Rotate the secret?',
    text: 'The present secret ends at once: the application is refused until it has the new one.',
    action: 'Rotate',
    isDangerous: true,
  })
  if (!isWanted) return
  try {
    await showNew(await api.post(`${pathOf(client)}/regenerate_secret`))
  } catch (error) {
    toastFailure(error)
  }
  await page.reload()
}

/** @param {Client} client */
export async function deleteClient(client) {
  const title = `Delete ${nameOf(client)}?`
  const text = 'No user signs in with it any more. This cannot be undone.'
  if (!(await confirm({ title, text, action: 'Delete', isDangerous: true }))) return
  await act(
    () => api.delete(pathOf(client)),
    'Client deleted',
    () => go('/clients'),
  )
}
