// Scopes for other services: those of the settings, and those that are added here.
import { api } from '../../api.js'
import { confirm } from '../../kit/dialog.js'
import { formDialog } from '../../kit/form.js'
import { badge, button } from '../../kit/parts.js'
import { table } from '../../kit/table.js'
import { act } from '../../kit/toast.js'
import { html } from '../../lit.js'

/** @typedef {import('../../page.js').Page} Page */
/** @typedef {Record<string, any>} Scope */

/** @type {Record<string, string>} */
const ORIGINS = { settings: 'environment', admin_api: 'administrators' }

/** @type {import('../../page.js').Screen} */
export const scopes = {
  path: '/scopes',
  title: 'Scopes',
  inMenu: true,
  needs: 'oauth_server',
  async open(page) {
    const { scopes: all } = await api.get('/admin/oauth/scopes')
    page.show(html`
      <div class="bar">
        <p>Rights at your other services, beside the standard scopes. Clients are registered for them.</p>
        <div class="actions">${button('Add a scope', () => create(page), 'primary')}</div>
      </div>
      ${table({
        label: 'Scopes',
        rows: all,
        empty: 'There are no scopes beside the standard ones.',
        columns: [
          { head: 'Scope', cell: ({ name }) => html`<code>${name}</code>` },
          { head: 'Description', cell: ({ description }) => description },
          { head: 'Claims', cell: ({ claims }) => claims.join(', ') || '–' },
          { head: 'By default', cell: ({ default: isDefault }) => (isDefault ? badge('yes') : '–') },
          { head: 'Set by', cell: ({ origin }) => ORIGINS[origin] ?? origin },
          { head: 'Actions', cell: (scope) => (scope.origin === 'admin_api' ? actsOf(page, scope) : '–') },
        ],
      })}`)
  },
}

/** @param {Page} page @param {Scope} scope */
const actsOf = (page, scope) => html`
  <div class="actions">
    ${button('Change', () => change(page, scope))}
    ${button('Delete', () => deleteScope(page, scope), 'danger')}
  </div>`

/** @param {Scope} scope */
const pathOf = ({ name }) => `/admin/oauth/scopes/${encodeURIComponent(name)}`

/** @param {Scope} [scope] @returns {import('../../kit/form.js').Field[]} */
const fieldsOf = ({ description, descriptions, claims = [], default: isDefault } = {}) => [
  {
    ...{ name: 'description', label: 'Description', value: description, required: true },
    hint: 'People read it where they agree',
  },
  { name: 'descriptions', label: 'Descriptions by language, such as { "de": "…" }', type: 'json', value: descriptions },
  {
    ...{ name: 'claims', label: 'Claims', type: 'textarea', value: claims.join('\n') },
    hint: 'One path per line that becomes a claim of tokens, such as app_metadata.plan',
  },
  { name: 'default', label: 'Requests that name no scope get it', type: 'checkbox', value: isDefault },
]

/** @param {Record<string, any>} values */
const bodyOf = ({ claims, ...values }) => ({ ...values, claims: claims.split(/\s+/).filter(Boolean) })

/** @param {Page} page */
async function create(page) {
  const isDone = await formDialog({
    title: 'Add a scope',
    fields: [
      {
        ...{ name: 'name', label: 'Name', required: true },
        hint: 'Such as reports:read. It never changes.',
      },
      ...fieldsOf(),
    ],
    action: 'Add',
    submit: (values) => api.post('/admin/oauth/scopes', bodyOf(values)),
    done: 'Scope added',
  })
  if (isDone) await page.reload()
}

/** @param {Page} page @param {Scope} scope */
async function change(page, scope) {
  const isDone = await formDialog({
    title: `Change ${scope.name}`,
    fields: fieldsOf(scope),
    action: 'Save',
    submit: (values) => api.put(pathOf(scope), bodyOf(values)),
    done: 'Scope saved',
  })
  if (isDone) await page.reload()
}

/** @param {Page} page @param {Scope} scope */
async function deleteScope(page, scope) {
  const text = 'No further token gets it. Clients that are registered for it keep the name, without effect.'
  if (!(await confirm({ title: `Delete ${scope.name}?`, text, action: 'Delete', isDangerous: true }))) return
  await act(() => api.delete(pathOf(scope)), 'Scope deleted', page.reload)
}
