// Acts on a provider of the admin API.
import { api } from '../../api.js'
import { confirm } from '../../kit/dialog.js'
import { formDialog } from '../../kit/form.js'
import { act } from '../../kit/toast.js'
import { go } from '../../router.js'

/** @typedef {import('../../page.js').Page} Page */
/** @typedef {Record<string, any>} Provider */
/** @typedef {import('../../kit/form.js').Field} Field */

/** @param {string} identifier */
export const pathOf = (identifier) => `/admin/custom-providers/${encodeURIComponent(identifier)}`

const TYPES = [
  { value: 'oidc', label: 'OpenID Connect' },
  { value: 'oauth2', label: 'OAuth 2.0' },
]

/** @returns {Promise<void>} */
export async function create() {
  /** @type {string | undefined} */
  let type
  const isChosen = await formDialog({
    title: 'Add a provider',
    text: 'Choose OpenID Connect where the provider has it: it describes itself.',
    fields: [{ name: 'provider_type', label: 'Protocol', type: 'select', options: TYPES, value: 'oidc' }],
    action: 'Next',
    submit: async (values) => {
      type = values.provider_type
    },
  })
  if (!isChosen || !type) return
  /** @type {Provider | undefined} */
  let added
  await formDialog({
    title: type === 'oidc' ? 'Add a provider with OpenID Connect' : 'Add a provider with OAuth 2.0',
    fields: [
      {
        name: 'identifier',
        label: 'Name for your application',
        value: 'custom:',
        required: true,
        hint: 'custom: and a-z, 0-9, hyphens',
      },
      ...fieldsOf({ provider_type: type }),
    ],
    action: 'Add',
    submit: async ({ identifier, ...values }) => {
      added = await api.post('/admin/custom-providers', { provider_type: type, identifier, ...inputOf(values) })
    },
  })
  if (added) go(`/providers/${encodeURIComponent(added.identifier)}`)
}

/** @param {Provider} provider @returns {Field[]} */
function fieldsOf(provider) {
  const {
    provider_type: type,
    name = '',
    client_id = '',
    scopes = type === 'oidc' ? ['openid', 'email', 'profile'] : [],
  } = provider
  const { attribute_mapping: mapping = {} } = provider
  return [
    { name: 'name', label: 'Name for people', value: name, required: true },
    ...addressesOf(provider),
    { name: 'client_id', label: 'Client id', value: client_id, required: true },
    {
      name: 'client_secret',
      label: 'Client secret',
      type: 'password',
      hint: provider.id ? 'Empty keeps the present one' : 'Empty for a public client',
    },
    { name: 'scopes', label: 'Scopes', value: scopes.join(' '), hint: 'Separated by blanks' },
    { name: 'attribute_mapping', label: 'Mapping of claims', type: 'json', value: mapping },
  ]
}

/** @param {Provider} provider @returns {Field[]} */
const addressesOf = ({
  provider_type: type,
  issuer = '',
  authorization_url = '',
  token_url = '',
  userinfo_url = '',
}) =>
  type === 'oidc'
    ? [
        {
          name: 'issuer',
          label: 'Issuer',
          value: issuer,
          required: true,
          hint: 'https address that serves /.well-known/openid-configuration',
        },
      ]
    : [
        { name: 'authorization_url', label: 'Authorization address', value: authorization_url, required: true },
        { name: 'token_url', label: 'Token address', value: token_url, required: true },
        { name: 'userinfo_url', label: 'Profile address', value: userinfo_url, required: true },
      ]

/** @param {Record<string, any>} values */
const inputOf = ({ scopes, client_secret, ...values }) => ({
  ...values,
  scopes: scopes.split(/\s+/).filter(Boolean),
  ...(client_secret && { client_secret }),
})

/** @param {Page} page @param {Provider} provider */
export async function change(page, provider) {
  const isDone = await formDialog({
    title: `Change ${provider.name}`,
    fields: fieldsOf(provider),
    action: 'Save',
    submit: (values) => api.put(pathOf(provider.identifier), inputOf(values)),
    done: 'Provider saved',
  })
  if (isDone) await page.reload()
}

/** @param {Page} page @param {Provider} provider */
export const enable = (page, { identifier, enabled }) =>
  act(
    () => api.put(pathOf(identifier), { enabled: !enabled }),
    enabled ? 'Provider disabled' : 'Provider enabled',
    page.reload,
  )

/** @param {Provider} provider */
export async function deleteProvider({ identifier, name }) {
  const text = 'It signs users in no more. Users and their identities stay.'
  if (!(await confirm({ title: `Delete ${name}?`, text, action: 'Delete', isDangerous: true }))) return
  await act(
    () => api.delete(pathOf(identifier)),
    'Provider deleted',
    () => go('/providers'),
  )
}
