import { isStorable } from '@services/common/database/storable-json'
import { type ClientMetadata, type GivenMetadata, GRANT_TYPES, METADATA, readNewClient } from '../client-metadata.ts'
import { USUAL_SCOPES } from '../oauth-scopes.ts'
import { webFault } from '../redirect-uris.ts'

/**
 * Whether a client's id is the address of its metadata document (draft-ietf-oauth-client-id-metadata-document). It is
 * https with a path, written as a URL parser would: each document has one id. Http is for loopback alone.
 */
export function isDocumentAddress(clientId: string): boolean {
  if (!/^https?:\/\//.test(clientId) || webFault(clientId) !== undefined) return false
  const { href, pathname } = new URL(clientId)
  return href === clientId && pathname !== '/'
}

/** Methods without a secret, which a public document could not keep. */
const METHODS = ['none', 'private_key_jwt']

/** Grants of a document; machine tokens are given by administrators alone. */
const GRANTS: readonly unknown[] = GRANT_TYPES.filter((grant) => grant !== 'client_credentials')

const OWN = ['client_type', 'role', 'introspects']

const LISTS = ['redirect_uris', 'post_logout_redirect_uris', 'grant_types', 'contacts']
const FLAGS = [
  ...['backchannel_logout_session_required', 'frontchannel_logout_session_required'],
  ...['dpop_bound_access_tokens', 'require_pushed_authorization_requests'],
]

/**
 * Reads a document as the metadata of a client. It is written for any server: grants and scopes that it may not have
 * here are left out. Throws the fault.
 */
export function readDocument(address: string, json: Record<string, unknown>): ClientMetadata {
  if (json.client_id !== address) throw new Error('client_id is not the address of the document')
  if (json.client_secret !== undefined || json.client_secret_expires_at !== undefined) {
    throw new Error('a document must not have a secret')
  }
  if (!isStorable(json)) throw new Error('the document has NUL, half characters or too many levels')
  const { token_endpoint_auth_method: method = 'none', grant_types: grants, scope } = json
  if (!METHODS.some((one) => one === method))
    throw new Error("token_endpoint_auth_method must be of 'none', 'private_key_jwt'")
  const given = Object.fromEntries(
    METADATA.filter((name) => json[name] !== undefined && json[name] !== null && !OWN.includes(name)).map((name) => {
      if (!hasKind(name, json[name])) throw new Error(`${name} has the wrong type`)
      return [name, json[name]]
    }),
  )
  return readNewClient({
    ...(given as GivenMetadata),
    token_endpoint_auth_method: method,
    ...(Array.isArray(grants) && { grant_types: grants.filter((grant) => GRANTS.includes(grant)) }),
    scope: String(scope ?? '')
      .split(' ')
      .filter((name) => USUAL_SCOPES.includes(name))
      .join(' '),
  })
}

function hasKind(name: string, value: unknown): boolean {
  if (LISTS.includes(name)) return Array.isArray(value)
  if (FLAGS.includes(name)) return typeof value === 'boolean'
  return typeof value === (name === 'jwks' ? 'object' : 'string')
}
