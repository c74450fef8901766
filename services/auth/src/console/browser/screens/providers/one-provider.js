// One provider: how to set it up, its redirect address, and a test that signs in and shows the account.
import { api } from '../../api.js'
import { button, copyable, facts, json, section } from '../../kit/parts.js'
import { html, nothing } from '../../lit.js'
import { link } from '../../router.js'
import { change, deleteProvider, enable, pathOf } from './provider-acts.js'
import { testProvider } from './provider-test.js'
import { ORIGINS, stateOf } from './providers.js'

/** @typedef {import('../../page.js').Page} Page */

/** @type {import('../../page.js').Screen} */
export const oneProvider = {
  path: '/providers/:provider',
  title: 'Provider',
  async open(page) {
    const name = page.params.provider ?? ''
    const { providers } = await api.get('/admin/providers')
    const provider = providers.find((/** @type {any} */ each) => each.provider === name)
    if (!provider) throw new Error('There is no such provider.')
    const isOfApi = provider.origin === 'admin_api'
    const stored = isOfApi ? await api.get(pathOf(name)) : undefined
    page.setTitle(provider.name ?? name)
    page.show(html`
      <p><a href=${link('/providers')}>All providers</a></p>
      ${section(
        'Set-up',
        html`
          ${facts([
            ['Name for your application', copyable(name)],
            ['Set by', ORIGINS[provider.origin]],
            ['State', stateOf(provider)],
            ['Redirect address to register there', copyable(provider.redirect_uri)],
          ])}
          ${isOfApi ? nothing : stepsOf(provider)}
          ${provider.problems.map((/** @type {string} */ problem) => html`<p class="error">${problem}</p>`)}`,
        isOfApi ? actsOf(page, stored) : nothing,
      )}
      ${stored ? section('Fields', json('Fields of the provider', stored)) : nothing}
      ${section('Test', testOf(page, provider))}`)
  },
}

/** @param {Page} page @param {any} provider */
const actsOf = (page, provider) => html`
  ${button('Change', () => change(page, provider))}
  ${button(provider.enabled ? 'Disable' : 'Enable', () => enable(page, provider))}
  ${button('Delete', () => deleteProvider(provider), 'danger')}`

/** @param {any} provider */
const stepsOf = ({ setting, missing, redirect_uri: address, enabled }) => html`
  <ol>
    <li>Register an application at the provider, with the redirect address <code>${address}</code>.</li>
    <li>Set these variables of the environment:
      <ul>
        ${enabled ? nothing : html`<li><code>${setting}=true</code></li>`}
        ${missing.map((/** @type {string} */ name) => html`<li><code>${name}</code></li>`)}
        ${enabled && missing.length === 0 ? html`<li>All of them are set.</li>` : nothing}
      </ul>
    </li>
    <li>Restart the service, and test the sign-in below.</li>
  </ol>`

/** @param {Page} page @param {any} provider */
const testOf = (page, provider) => html`
  <p>A test signs in at the provider and shows the account as the service reads it. It creates neither a user nor a session.</p>
  ${
    provider.usable
      ? html`<div class="actions">${button('Test the sign-in', () => testProvider(page, provider.provider), 'primary')}</div>`
      : html`<p class="hint">The provider must be enabled and complete first.</p>`
  }
  <div id="test-outcome" role="status"></div>`
