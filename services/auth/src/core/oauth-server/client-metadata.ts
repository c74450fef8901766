// Rules of a client's metadata (RFC 7591, OpenID Connect Registration and Logout, RFC 9449). Tests:
// flows/admin/oauth/clients.test.ts.
import type { OAuthClient } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { requireKeys, SIGNING_ALGS } from './client-keys.ts'
import { pageFault, redirectFault, webFault } from './redirect-uris.ts'
import { resourceFault } from './resources.ts'

export const GRANT_TYPES = [
  'authorization_code',
  'refresh_token',
  'client_credentials',
  'urn:ietf:params:oauth:grant-type:device_code',
] as const
export const AUTH_METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const
export const CLIENT_TYPES = ['public', 'confidential'] as const

/** Columns that no member of the metadata writes. */
export type ServiceColumn =
  | ('id' | 'registration_type' | 'secret_hash' | 'created_at' | 'updated_at')
  | ('metadata_uri' | 'metadata_fresh_until' | 'metadata_usable_until' | 'last_used_at')

/** Members that administrators write. */
export type ClientMetadata = Omit<OAuthClient, ServiceColumn>
/** Members of a body, of which the schema has checked the JSON types alone. */
export type GivenMetadata = {
  [Member in keyof ClientMetadata]?: ClientMetadata[Member] extends unknown[] ? unknown[] : unknown
}

const MAX_REDIRECTS = 10
const MAX_NAME = 1024
const MAX_CONTACTS = 10
const MAX_CONTACT = 320
const MAX_SCOPE = 4096
const MAX_RESOURCES = 10

/** Length of a role of PostgreSQL, which row-level rules may switch to. */
const ROLE = /^[\w:.-]{1,63}$/

/** Addresses that pages may show, and that this service does not ask. */
const SHOWN_ADDRESSES = ['client_uri', 'logo_uri', 'tos_uri', 'policy_uri'] as const

/** Addresses that this service asks, or that its pages load. */
const ASKED_ADDRESSES = ['jwks_uri', 'backchannel_logout_uri', 'frontchannel_logout_uri'] as const

/** Host that a Content-Security-Policy can name: a parser of URLs takes `;` and `*` too. */
const PLAIN_HOST = /^[a-z0-9._-]{1,253}$/

const DEFAULTS = {
  token_endpoint_auth_signing_alg: null,
  jwks: null,
  jwks_uri: null,
  redirect_uris: [],
  post_logout_redirect_uris: [],
  grant_types: ['authorization_code', 'refresh_token'],
  scope: null,
  client_name: null,
  client_uri: null,
  logo_uri: null,
  tos_uri: null,
  policy_uri: null,
  contacts: [],
  backchannel_logout_uri: null,
  backchannel_logout_session_required: false,
  frontchannel_logout_uri: null,
  frontchannel_logout_session_required: false,
  dpop_bound_access_tokens: false,
  require_pushed_authorization_requests: false,
  role: 'service',
  introspects: [],
}

/** Members of the metadata. */
export const METADATA = [
  ...(['client_type', 'token_endpoint_auth_method'] as const),
  ...(Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[]),
]

/** Reads a new client. Its type, if given, decides the default method; otherwise the method decides the type. */
export function readNewClient(given: GivenMetadata): ClientMetadata {
  const { client_type: type, token_endpoint_auth_method: method, ...rest } = withoutEmpty(given)
  const client_type = type ?? (method === 'none' ? 'public' : 'confidential')
  requireOneOf('client_type', client_type, CLIENT_TYPES)
  const own = client_type === 'public' ? 'none' : 'client_secret_basic'
  return checked({ ...DEFAULTS, ...rest, client_type, token_endpoint_auth_method: method ?? own } as ClientMetadata)
}

/** Lays given members over a stored client. Empty text removes an optional member. */
export function readClientChange(stored: OAuthClient, given: GivenMetadata): ClientMetadata {
  const before = Object.fromEntries(METADATA.map((name) => [name, stored[name]]))
  return checked({ ...before, ...withEmptyAsNull(given) } as ClientMetadata)
}

const withoutEmpty = (given: GivenMetadata): GivenMetadata =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== '' && value !== null))

const withEmptyAsNull = (given: GivenMetadata): GivenMetadata =>
  Object.fromEntries(Object.entries(given).map(([name, value]) => [name, value === '' ? null : value]))

const invalid = (message: string) => apiError('validation_failed', { message })

function checked(client: ClientMetadata): ClientMetadata {
  checkGrants(client)
  checkAuthentication(client)
  checkRedirects('redirect_uri', client.redirect_uris)
  checkRedirects('post_logout_redirect_uri', client.post_logout_redirect_uris)
  checkLength('client_name', client.client_name, MAX_NAME)
  for (const name of SHOWN_ADDRESSES) checkAddress(name, client[name], pageFault)
  for (const name of ASKED_ADDRESSES) checkAddress(name, client[name], webFault)
  checkFrontChannel(client)
  checkContacts(client.contacts)
  checkScope(client.scope)
  checkRole(client.role)
  checkIntrospects(client)
  return client
}

function checkAddress(name: string, address: string | null, faultOf: typeof webFault): void {
  const fault = address === null ? undefined : faultOf(address)
  if (fault) throw invalid(`${name} ${fault}`)
}

function checkGrants({ client_type: type, grant_types: grants, redirect_uris: redirects }: ClientMetadata): void {
  if (grants.length === 0) throw invalid('grant_types must not be empty')
  for (const grant of grants) requireOneOf('grant_types', grant, GRANT_TYPES)
  if (new Set(grants).size < grants.length) throw invalid('grant_types must not repeat one')
  if (grants.includes('authorization_code') && redirects.length === 0) throw invalid('redirect_uris is required')
  if (grants.includes('client_credentials') && type === 'public') {
    throw invalid("grant_types 'client_credentials' contradicts client_type 'public'")
  }
}

function checkAuthentication(client: ClientMetadata): void {
  const { client_type: type, token_endpoint_auth_method: method, token_endpoint_auth_signing_alg: alg } = client
  requireOneOf('token_endpoint_auth_method', method, AUTH_METHODS)
  if ((type === 'public') !== (method === 'none')) {
    throw invalid(`token_endpoint_auth_method '${method}' contradicts client_type '${type}'`)
  }
  if (client.jwks !== null && client.jwks_uri !== null) throw invalid('jwks contradicts jwks_uri')
  if (client.jwks !== null) requireKeys(client.jwks)
  if (method === 'private_key_jwt' && client.jwks === null && client.jwks_uri === null) {
    throw invalid("token_endpoint_auth_method 'private_key_jwt' requires jwks or jwks_uri")
  }
  if (alg === null) return
  requireOneOf('token_endpoint_auth_signing_alg', alg, SIGNING_ALGS)
  if (method !== 'private_key_jwt') {
    throw invalid(`token_endpoint_auth_signing_alg contradicts token_endpoint_auth_method '${method}'`)
  }
}

function checkRedirects(member: string, addresses: readonly unknown[]): void {
  if (addresses.length > MAX_REDIRECTS) throw invalid(`${member}s cannot exceed ${MAX_REDIRECTS} items`)
  for (const address of addresses) {
    const fault = typeof address === 'string' ? redirectFault(address) : 'must be a text'
    if (fault) throw invalid(`invalid ${member} '${String(address).slice(0, 200)}': ${fault}`)
  }
}

/** A page may frame the application alone (OpenID Connect Front-Channel Logout 1.0, section 2). */
function checkFrontChannel({ frontchannel_logout_uri: address, redirect_uris: redirects }: ClientMetadata): void {
  if (address === null) return
  const { hostname, origin } = new URL(address)
  if (!PLAIN_HOST.test(hostname)) throw invalid('frontchannel_logout_uri must have a host of letters, digits, . and -')
  if (redirects.some((redirect) => URL.canParse(redirect) && new URL(redirect).origin === origin)) return
  throw invalid('frontchannel_logout_uri must have the scheme, host and port of a redirect address')
}

function checkContacts(contacts: readonly unknown[]): void {
  const areFine = contacts.every((text) => typeof text === 'string' && text !== '' && text.length <= MAX_CONTACT)
  if (areFine && contacts.length <= MAX_CONTACTS) return
  throw invalid(`contacts must be at most ${MAX_CONTACTS} texts of 1 to ${MAX_CONTACT} characters`)
}

/** Syntax alone; which roles are an administrator's is checked beside the settings. */
function checkRole(role: unknown): void {
  if (typeof role === 'string' && ROLE.test(role)) return
  throw invalid('role must have 1 to 63 of a-z, A-Z, 0-9, :, ., _ and -')
}

function checkIntrospects({ client_type: type, introspects: resources }: ClientMetadata): void {
  if (resources.length === 0) return
  if (type === 'public') throw invalid("introspects contradicts client_type 'public'")
  if (resources.length > MAX_RESOURCES) throw invalid(`introspects cannot exceed ${MAX_RESOURCES} items`)
  for (const resource of resources as unknown[]) {
    const fault = typeof resource === 'string' ? resourceFault(resource) : 'must be a text'
    if (fault) throw invalid(`invalid introspects '${String(resource).slice(0, 200)}': ${fault}`)
  }
}

/** Syntax alone (RFC 6749, section 3.3); which scopes there are is checked beside the database. */
function checkScope(scope: string | null): void {
  if (scope === null) return
  checkLength('scope', scope, MAX_SCOPE)
  if (!/^\S+( \S+)*$/.test(scope)) throw invalid('scope must be names separated by single spaces')
}

function checkLength(member: string, text: string | null, most: number): void {
  if (text !== null && text.length > most) throw invalid(`${member} must be at most ${most} characters long`)
}

function requireOneOf(member: string, value: unknown, known: readonly string[]): void {
  if (known.some((one) => one === value)) return
  throw invalid(`${member} must be of ${known.map((one) => `'${one}'`).join(', ')}`)
}
