// Acts on a webhook: each is a call of the admin API.
import { api } from '../../api.js'
import { confirm } from '../../kit/dialog.js'
import { formDialog } from '../../kit/form.js'
import { showSecret } from '../../kit/secret.js'
import { act, toastFailure } from '../../kit/toast.js'
import { go } from '../../router.js'

/** @typedef {import('../../page.js').Page} Page */
/** @typedef {Record<string, any>} Webhook */

/** @param {Webhook} webhook */
export const pathOf = ({ id }) => `/admin/webhooks/${id}`

/** @param {Partial<Webhook>} webhook @returns {import('../../kit/form.js').Field[]} */
const fieldsOf = ({ url = '', events = ['*'], description = '' }) => [
  { name: 'url', label: 'Address', value: url, required: true, hint: 'https on a public server' },
  {
    name: 'events',
    label: 'Events',
    value: events.join(', '),
    required: true,
    hint: 'Separated by commas: * for all, groups such as user.*, or names such as user.created',
  },
  { name: 'description', label: 'Description', value: description },
]

/** @param {Record<string, string>} values */
const inputOf = ({ url, events = '', description }) => ({
  ...{ url, description },
  events: events
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean),
})

export async function create() {
  /** @type {Webhook | undefined} */
  let added
  await formDialog({
    title: 'Add a webhook',
    text: 'The secret that signs its events is shown once, after this.',
    fields: fieldsOf({}),
    action: 'Add',
    submit: async (values) => {
      added = await api.post('/admin/webhooks', inputOf(values))
    },
  })
  if (added === undefined) return
  await show(added.secret)
  go(`/webhooks/${added.id}`)
}

/** @param {Page} page @param {Webhook} webhook */
export async function change(page, webhook) {
  const isDone = await formDialog({
    title: 'Change the webhook',
    text: 'Another address gets the waiting events at once.',
    fields: fieldsOf(webhook),
    action: 'Save',
    submit: (values) => api.put(pathOf(webhook), inputOf(values)),
    done: 'Webhook saved',
  })
  if (isDone) await page.reload()
}

/** @param {Page} page @param {Webhook} webhook */
export const enable = (page, webhook) =>
  act(
    () => api.put(pathOf(webhook), { enabled: !webhook.enabled }),
    webhook.enabled ? 'Disabled: events wait for three days' : 'Enabled: waiting events are sent',
    page.reload,
  )

/** @param {Page} page @param {Webhook} webhook */
export const sendTest = (page, webhook) =>
  act(() => api.post(`${pathOf(webhook)}/test`), 'Test queued: its result is below', page.reload)

/** @param {Page} page @param {Webhook} webhook */
export async function rotateSecret(page, webhook) {
  const isWanted = await confirm({
    title: 'Rotate the secret?',
    text: 'The new secret signs beside the present one for a day, then alone.',
    action: 'Rotate',
  })
  if (!isWanted) return
  try {
    const { secret } = await api.post(`${pathOf(webhook)}/rotate-secret`)
    await show(secret)
  } catch (error) {
    toastFailure(error)
  }
  await page.reload()
}

/** @param {Webhook} webhook */
export async function deleteWebhook(webhook) {
  const text = `Events that wait for ${webhook.url} are deleted with it.`
  if (!(await confirm({ title: 'Delete the webhook?', text, action: 'Delete', isDangerous: true }))) return
  await act(
    () => api.delete(pathOf(webhook)),
    'Webhook deleted',
    () => go('/webhooks'),
  )
}

/** @param {string} secret */
const show = (secret) =>
  showSecret('Secret of the webhook', 'Store it at the receiver now: it is not shown again.', secret)
