import { type Static, Type } from 'typebox'
import { SIGNING_ALGS } from '../../core/oauth-server/client-keys.ts'
import { AUTH_METHODS, GRANT_TYPES } from '../../core/oauth-server/client-metadata.ts'
import { USUAL_SCOPES } from '../../core/oauth-server/oauth-scopes.ts'
import type { Deps } from '../../deps.ts'

export type DiscoveryDeps = Pick<Deps, 'keys' | 'config'>

const Texts = Type.Array(Type.String())
const Text = Type.Optional(Type.String())

export const DiscoveryDocument = Type.Object(
  {
    issuer: Type.String({ description: '`iss` of access tokens.' }),
    jwks_uri: Type.String(),
    id_token_signing_alg_values_supported: Type.Array(Type.String(), {
      description: 'Signature algorithms of tokens.',
    }),
    subject_types_supported: Texts,
    claims_supported: Texts,
    ...{ authorization_endpoint: Text, token_endpoint: Text, userinfo_endpoint: Text, registration_endpoint: Text },
  },
  {
    title: 'OpenidConfiguration',
    additionalProperties: true,
    description: 'While the OAuth server is enabled, with its endpoints and what they take.',
  },
)
export type DiscoveryDocument = Static<typeof DiscoveryDocument> & Record<string, unknown>

/**
 * Endpoints by the member that names them, and members that belong to them. Only those are listed whose route exists.
 */
const ENDPOINTS: Record<string, { method: string; path: string; members?: object }> = {
  authorization_endpoint: {
    ...{ method: 'GET', path: '/oauth/authorize' },
    members: {
      response_types_supported: ['code'],
      response_modes_supported: ['query', 'form_post'],
      code_challenge_methods_supported: ['S256'],
      prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
      acr_values_supported: ['aal1', 'aal2'],
      authorization_response_iss_parameter_supported: true,
      request_parameter_supported: false,
      request_uri_parameter_supported: false,
      scopes_supported: USUAL_SCOPES,
    },
  },
  token_endpoint: {
    ...{ method: 'POST', path: '/oauth/token' },
    members: {
      token_endpoint_auth_methods_supported: AUTH_METHODS,
      token_endpoint_auth_signing_alg_values_supported: SIGNING_ALGS,
      dpop_signing_alg_values_supported: SIGNING_ALGS,
    },
  },
  userinfo_endpoint: { method: 'GET', path: '/oauth/userinfo' },
  pushed_authorization_request_endpoint: { method: 'POST', path: '/oauth/par' },
  revocation_endpoint: {
    ...{ method: 'POST', path: '/oauth/revoke' },
    members: {
      revocation_endpoint_auth_methods_supported: AUTH_METHODS,
      revocation_endpoint_auth_signing_alg_values_supported: SIGNING_ALGS,
    },
  },
  introspection_endpoint: {
    ...{ method: 'POST', path: '/oauth/introspect' },
    members: {
      introspection_endpoint_auth_methods_supported: AUTH_METHODS.filter((method) => method !== 'none'),
      introspection_endpoint_auth_signing_alg_values_supported: SIGNING_ALGS,
    },
  },
  device_authorization_endpoint: { method: 'POST', path: '/oauth/device_authorization' },
  end_session_endpoint: {
    ...{ method: 'GET', path: '/oauth/logout' },
    members: { backchannel_logout_supported: true, backchannel_logout_session_supported: true },
  },
  registration_endpoint: { method: 'POST', path: '/oauth/clients/register' },
}

/** Claims of access tokens and id_tokens. */
const CLAIMS = ['iss', 'sub', 'aud', 'exp', 'iat', 'jti', 'role', 'email', 'phone', 'session_id', 'aal', 'amr']
const OAUTH_CLAIMS = [
  ...['sub', 'aud', 'iss', 'exp', 'iat', 'auth_time', 'nonce', 'acr', 'email', 'email_verified', 'phone_number'],
  ...['phone_number_verified', 'name', 'picture', 'preferred_username', 'updated_at'],
]

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** Builds the document of clients and verifiers. Without the OAuth server it names issuer and keys alone. */
export function discoveryDocument(
  { keys, config }: DiscoveryDeps,
  hasRoute: (method: string, path: string) => boolean,
): DiscoveryDocument {
  const { jwt, oauthServer, pages, server } = config
  const published = keys.publicJwks.map(({ alg }) => String(alg))
  const basics = {
    issuer: jwt.issuer,
    jwks_uri: `${server.externalUrl}/.well-known/jwks.json`,
    id_token_signing_alg_values_supported: [...new Set([keys.alg, ...published])],
    subject_types_supported: ['public'],
    claims_supported: CLAIMS,
  }
  if (!oauthServer.enabled) return basics
  const isOn = { registration_endpoint: oauthServer.dynamicRegistration, device_authorization_endpoint: pages.enabled }
  const present = Object.entries(ENDPOINTS).filter(
    ([name, { method, path }]) => hasRoute(method, path) && isOn[name as keyof typeof isOn] !== false,
  )
  const names = present.map(([name]) => name)
  return {
    ...basics,
    claims_supported: OAUTH_CLAIMS,
    grant_types_supported: GRANT_TYPES.filter(
      (grant) => grant !== DEVICE_GRANT || names.includes('device_authorization_endpoint'),
    ),
    // The frames are those of hosted pages.
    ...(pages.enabled && { frontchannel_logout_supported: true, frontchannel_logout_session_supported: true }),
    ...(oauthServer.metadataDocuments && { client_id_metadata_document_supported: true }),
    ...Object.assign(
      {},
      ...present.map(([name, { path, members }]) => ({ [name]: server.externalUrl + path, ...members })),
    ),
  }
}
