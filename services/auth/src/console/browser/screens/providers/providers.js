// Providers: built-in ones, those of the settings, and those that are added here.
import { api } from '../../api.js'
import { badge, button, copyable } from '../../kit/parts.js'
import { filterForm } from '../../kit/search.js'
import { table } from '../../kit/table.js'
import { html } from '../../lit.js'
import { link } from '../../router.js'
import { create } from './provider-acts.js'

/** @type {import('../../page.js').Screen} */
export const providers = {
  path: '/providers',
  title: 'Providers',
  inMenu: true,
  async open(page) {
    const { providers: all } = await api.get('/admin/providers')
    const show = page.query.get('show')
    const rows = all.filter((/** @type {any} */ each) => show !== 'enabled' || each.enabled)
    page.show(html`
      <div class="bar">
        ${filterForm(page, [{ name: 'show', label: 'Show', options: [{ value: 'enabled', label: 'Enabled' }] }])}
        <div class="actions">${button('Add a provider', create, 'primary')}</div>
      </div>
      ${table({
        label: 'Providers',
        rows,
        empty: 'No provider is enabled.',
        columns: [
          { head: 'Provider', cell: ({ provider, name }) => html`<a href=${pageOf(provider)}>${name ?? provider}</a>` },
          { head: 'Set by', cell: ({ origin }) => ORIGINS[origin] ?? origin },
          { head: 'State', cell: stateOf },
          { head: 'Redirect address', cell: ({ redirect_uri }) => copyable(redirect_uri) },
        ],
      })}`)
  },
}

/** @param {string} provider */
const pageOf = (provider) => link(`/providers/${encodeURIComponent(provider)}`)

/** @type {Record<string, string>} */
export const ORIGINS = { built_in: 'environment', settings: 'environment', admin_api: 'administrators' }

/** @param {{ enabled: boolean, usable: boolean, problems: string[] }} provider */
export function stateOf({ enabled, usable, problems }) {
  if (!enabled) return badge('disabled')
  return usable && problems.length === 0 ? badge('enabled', 'good') : badge('incomplete', 'bad')
}
