// One client of the OAuth server: the application, its addresses, rights and proofs.
import { api } from '../../api.js'
import { chart, nameOfDay } from '../../kit/chart.js'
import { showParts } from '../../kit/late-parts.js'
import { button, copyable, facts, json, section, time } from '../../kit/parts.js'
import { html, nothing } from '../../lit.js'
import { link } from '../../router.js'
import { change, deleteClient, pathOf, rotateSecret } from './client-acts.js'
import { addressFields, authenticationFields, peopleFields, rightFields } from './client-fields.js'
import { GRANTS, METHODS, nameOf, REGISTRATIONS, TYPES, wordsOf } from './client-names.js'

/** @typedef {import('../../page.js').Page} Page */
/** @typedef {import('./client-names.js').Client} Client */

/** @type {import('../../page.js').Screen} */
export const oneClient = {
  path: '/clients/:id',
  title: 'Client',
  async open(page) {
    const path = pathOf({ client_id: page.params.id })
    const client = await api.get(path)
    page.setTitle(nameOf(client))
    const title = 'Sign-ins of the last 30 days'
    const uses = {
      ...{ title, load: () => api.get(`${path}/statistics`) },
      show: (/** @type {{ days: Day[] }} */ { days }) =>
        section(title, chart({ title, name: nameOfDay, bars: barsOf(days) })),
    }
    showParts(
      page,
      { uses },
      ({ uses: shown }) => html`
        <p><a href=${link('/clients')}>All clients</a></p>
        ${peopleOf(page, client)}
        ${addressesOf(page, client)}
        ${rightsOf(page, client)}
        ${authenticationOf(page, client)}
        ${shown}`,
    )
  },
}

/** @typedef {{ from: string, grants: Record<string, number> }} Day */

/** @param {Day[]} days */
const barsOf = (days) =>
  days.map(({ from, grants }) => ({
    from,
    parts: Object.fromEntries(Object.entries(grants).map(([grant, count]) => [GRANTS[grant] ?? grant, count])),
  }))

/** @param {Page} page @param {Client} client */
const peopleOf = (page, client) =>
  section(
    'Application',
    facts([
      ['Client id', copyable(client.metadata_uri ?? client.client_id)],
      ['Name', client.client_name],
      ['Type', TYPES[client.client_type]],
      ['Registered by', REGISTRATIONS[client.registration_type] ?? client.registration_type],
      ['Site', client.client_uri],
      ['Logo', client.logo_uri],
      ['Terms of service', client.tos_uri],
      ['Privacy policy', client.policy_uri],
      ['Contacts', client.contacts?.join(', ')],
      ['Last used', client.last_used_at && time(client.last_used_at)],
      ['Created', time(client.created_at)],
      ['Changed', time(client.updated_at)],
    ]),
    html`
      ${changeButton(page, client, 'Change the application', peopleFields)}
      ${button('Delete', () => deleteClient(client), 'danger')}`,
  )

/** @param {Page} page @param {Client} client */
const addressesOf = (page, client) =>
  section(
    'Addresses',
    facts([
      ['After a sign-in', linesOf(client.redirect_uris)],
      ['After a sign-out', linesOf(client.post_logout_redirect_uris)],
      ['Notices of ended sessions', client.backchannel_logout_uri],
      ['These name the session', client.backchannel_logout_session_required && 'yes'],
      ['Frame of the sign-out', client.frontchannel_logout_uri],
      ['It names the session', client.frontchannel_logout_session_required && 'yes'],
    ]),
    changeButton(page, client, 'Change the addresses', addressFields),
  )

/** @param {Page} page @param {Client} client */
const rightsOf = (page, client) =>
  section(
    'Rights',
    facts([
      ['Grants', wordsOf(client.grant_types)],
      ['Scopes at most', client.scope ?? 'the standard ones'],
      ['Role in tokens of its own', client.grant_types.includes('client_credentials') && client.role],
      ['Introspects tokens of', linesOf(client.introspects)],
    ]),
    changeButton(page, client, 'Change the rights', rightFields),
  )

/** @param {Page} page @param {Client} client */
const authenticationOf = (page, client) =>
  section(
    'Authentication',
    html`
      ${facts([
        ['Proof', METHODS[client.token_endpoint_auth_method]],
        ['Algorithm', client.token_endpoint_auth_signing_alg],
        ['Address of its keys', client.jwks_uri],
        ['Tokens are bound to a key', client.dpop_bound_access_tokens && 'yes (DPoP)'],
        ['Requests must be pushed', client.require_pushed_authorization_requests && 'yes (PAR)'],
      ])}
      ${client.jwks ? json('Keys of the client', client.jwks) : nothing}`,
    html`
      ${changeButton(page, client, 'Change the proofs', authenticationFields)}
      ${
        client.token_endpoint_auth_method.startsWith('client_secret')
          ? button('Rotate the secret', () => rotateSecret(page, client))
          : nothing
      }`,
  )

/**
 * A client of a metadata document changes with its document alone.
 * @param {Page} page @param {Client} client @param {string} label
 * @param {(client: Client) => import('../../kit/form.js').Field[]} fieldsOf
 */
const changeButton = (page, client, label, fieldsOf) =>
  client.registration_type === 'metadata_document'
    ? nothing
    : button(label, () => change(page, client, label, fieldsOf(client)))

/** @param {string[]} [lines] */
const linesOf = (lines) => lines?.length !== 0 && lines?.map((line) => html`<div><code>${line}</code></div>`)
