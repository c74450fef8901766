// Fields of the dialogs about a client, and the members of the admin API that their values are.
import { GRANTS, METHODS } from './client-names.js'

/** @typedef {import('../../kit/form.js').Field} Field */
/** @typedef {import('./client-names.js').Client} Client */

const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']

const LISTS = ['redirect_uris', 'post_logout_redirect_uris', 'contacts', 'introspects']

const REDIRECTS_HINT =
  'One per line: https, http on localhost, or a scheme of the application. Compared letter by letter.'

/** @param {Record<string, string>} names */
const optionsOf = (names) => Object.entries(names).map(([value, label]) => ({ value, label }))

/** @param {string[]} [lines] */
const text = (lines = []) => lines.join('\n')

/** @param {'public' | 'confidential'} type @returns {Field[]} */
export const newClientFields = (type) => [
  { name: 'client_name', label: 'Name', required: true, hint: 'People read it where they agree' },
  { name: 'redirect_uris', label: 'Addresses after a sign-in', type: 'textarea', hint: REDIRECTS_HINT },
  ...grantFields({ client_type: type, grant_types: ['authorization_code', 'refresh_token'] }),
  ...(type === 'confidential' ? proofFields({ token_endpoint_auth_method: 'client_secret_basic' }) : []),
]

/** @param {Client} client @returns {Field[]} */
export const peopleFields = ({ client_name, client_uri, logo_uri, tos_uri, policy_uri, contacts }) => [
  { name: 'client_name', label: 'Name', value: client_name },
  { name: 'client_uri', label: 'Site', value: client_uri, hint: 'https' },
  { name: 'logo_uri', label: 'Logo', value: logo_uri, hint: 'https' },
  { name: 'tos_uri', label: 'Terms of service', value: tos_uri, hint: 'https' },
  { name: 'policy_uri', label: 'Privacy policy', value: policy_uri, hint: 'https' },
  { name: 'contacts', label: 'Contacts', type: 'textarea', value: text(contacts), hint: 'One per line' },
]

/** @param {Client} client @returns {Field[]} */
export const addressFields = (client) => [
  {
    ...{ name: 'redirect_uris', label: 'After a sign-in', type: 'textarea', hint: REDIRECTS_HINT },
    value: text(client.redirect_uris),
  },
  {
    ...{ name: 'post_logout_redirect_uris', label: 'After a sign-out', type: 'textarea', hint: 'One per line' },
    value: text(client.post_logout_redirect_uris),
  },
  {
    ...{ name: 'backchannel_logout_uri', label: 'Notices of ended sessions', hint: 'https' },
    value: client.backchannel_logout_uri,
  },
  {
    ...{ name: 'backchannel_logout_session_required', label: 'Notices name the session', type: 'checkbox' },
    value: client.backchannel_logout_session_required,
  },
  {
    ...{ name: 'frontchannel_logout_uri', label: 'Frame of the sign-out', hint: 'On the origin of a sign-in address' },
    value: client.frontchannel_logout_uri,
  },
  {
    ...{ name: 'frontchannel_logout_session_required', label: 'The frame names the session', type: 'checkbox' },
    value: client.frontchannel_logout_session_required,
  },
]

/** @param {Client} client @returns {Field[]} */
export const rightFields = (client) => [
  ...grantFields(client),
  {
    ...{ name: 'scope', label: 'Scopes at most', type: 'textarea', value: client.scope },
    hint: 'Separated by blanks. Empty permits the standard ones.',
  },
  ...(client.client_type === 'confidential' ? machineFields(client) : []),
]

/** @param {Client} client @returns {Field[]} */
const machineFields = ({ role, introspects }) => [
  { name: 'role', label: 'Role in tokens of its own', value: role, required: true, hint: 'No role of administrators' },
  {
    ...{ name: 'introspects', label: 'Resources whose tokens it may introspect', type: 'textarea' },
    ...{ value: text(introspects), hint: 'One address per line' },
  },
]

/** @param {Client} client @returns {Field[]} */
export const authenticationFields = (client) => [
  ...(client.client_type === 'confidential' ? [...proofFields(client), ...keyFields(client)] : []),
  {
    ...{ name: 'dpop_bound_access_tokens', label: 'Tokens are bound to a key of the client (DPoP)', type: 'checkbox' },
    value: client.dpop_bound_access_tokens,
  },
  {
    ...{ name: 'require_pushed_authorization_requests', label: 'Requests must be pushed (PAR)', type: 'checkbox' },
    value: client.require_pushed_authorization_requests,
  },
]

/** Machines keep a secret: a public client has no tokens of its own. @param {Client} client @returns {Field[]} */
const grantFields = ({ client_type: type, grant_types: granted }) =>
  Object.entries(GRANTS)
    .filter(([name]) => type === 'confidential' || name !== 'client_credentials')
    .map(([name, words]) => ({
      ...{ name, type: 'checkbox', value: granted.includes(name) },
      label: `${words[0]?.toUpperCase()}${words.slice(1)}`,
    }))

/** @param {Client} client @returns {Field[]} */
const proofFields = ({ token_endpoint_auth_method: method, jwks_uri }) => {
  const { none: _, ...methods } = METHODS
  return [
    { name: 'token_endpoint_auth_method', label: 'Proof', type: 'select', options: optionsOf(methods), value: method },
    { name: 'jwks_uri', label: 'Address of its keys', value: jwks_uri, hint: 'https, where it signs by a key' },
  ]
}

/** @param {Client} client @returns {Field[]} */
const keyFields = ({ jwks, token_endpoint_auth_signing_alg: algorithm }) => [
  { name: 'jwks', label: 'Its public keys, in place of the address', type: 'json', value: jwks },
  {
    ...{ name: 'token_endpoint_auth_signing_alg', label: 'Algorithm of its signatures', type: 'select' },
    ...{ options: [{ value: '', label: 'any of its keys' }, ...ALGORITHMS], value: algorithm ?? '' },
  },
]

/** Makes a body of the values of such fields. @param {Record<string, any>} values */
export function bodyOf(values) {
  const isGrant = (/** @type {string} */ name) => Object.hasOwn(GRANTS, name)
  const grants = Object.keys(values).filter(isGrant)
  const others = Object.entries(values).filter(([name]) => !isGrant(name))
  return {
    ...Object.fromEntries(others.map(([name, value]) => [name, memberOf(name, value)])),
    ...(grants.length > 0 && { grant_types: grants.filter((name) => values[name]) }),
  }
}

/** @param {string} name @param {any} value */
function memberOf(name, value) {
  if (LISTS.includes(name)) return wordsOf(value, /\n/)
  if (name === 'scope') return wordsOf(value, /\s+/).join(' ')
  if (name === 'jwks') return Object.keys(value).length === 0 ? null : value
  return typeof value === 'string' ? value.trim() : value
}

/** @param {string} value @param {RegExp} separator */
const wordsOf = (value, separator) =>
  value
    .split(separator)
    .map((word) => word.trim())
    .filter(Boolean)
