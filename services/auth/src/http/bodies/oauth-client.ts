import { type Static, Type } from 'typebox'
import { AUTH_METHODS, CLIENT_TYPES, type GivenMetadata, GRANT_TYPES } from '../../core/oauth-server/client-metadata.ts'
import type { ShownClient } from '../../core/oauth-server/create-client.ts'
import type { OAuthClient } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'
import { choiceOf } from './shapes.ts'

const text = (description: string) => Type.Optional(Type.String({ description }))
const texts = (description: string) => Type.Optional(Type.Array(Type.Unknown(), { description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description: `${description} False if absent.` }))

const members = {
  redirect_uris: texts('Addresses that a code may go to, 1 to 10; required for authorization_code.'),
  post_logout_redirect_uris: texts('Addresses that a sign-out may lead to, up to 10.'),
  grant_types: texts(`Of ${GRANT_TYPES.join(', ')}; the first two if absent.`),
  token_endpoint_auth_method: Type.Optional(choiceOf(AUTH_METHODS, { title: 'ClientAuthMethod' })),
  token_endpoint_auth_signing_alg: text('Algorithm of private_key_jwt; any of its keys if absent.'),
  jwks: Type.Optional(
    Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], {
      description: 'Public keys of the client (RFC 7517), in place of jwks_uri; null removes them.',
    }),
  ),
  jwks_uri: text('Address of the public keys.'),
  scope: text('Most that the client may ask for, separated by spaces; the standard scopes if absent.'),
  client_name: text('Name for people, up to 1024 characters.'),
  client_uri: text('Address of the site of the client.'),
  logo_uri: text('Address of its logo.'),
  tos_uri: text('Address of its terms of service.'),
  policy_uri: text('Address of its privacy policy.'),
  contacts: texts('Up to 10 addresses of people.'),
  backchannel_logout_uri: text('Address that gets a notice when a session ends.'),
  backchannel_logout_session_required: flag('Whether that notice names the session.'),
  frontchannel_logout_uri: text('Address that a page of the sign-out frames, on the origin of a redirect address.'),
  frontchannel_logout_session_required: flag('Whether that address needs issuer and session, which it always gets.'),
  dpop_bound_access_tokens: flag('Whether tokens are bound to a key of the client (RFC 9449).'),
  require_pushed_authorization_requests: flag('Whether authorization requests must be pushed (RFC 9126).'),
  role: text('Role of its own tokens (client_credentials), never one of AUTH_JWT_ADMIN_ROLES; `service` if absent.'),
  introspects: texts('Resources whose tokens a confidential client may introspect, up to 10.'),
}

export const ClientBody = Type.Object({
  client_type: Type.Optional(choiceOf(CLIENT_TYPES, { title: 'ClientType' })),
  ...members,
})

export const CLEARABLE = ['jwks'] as const

/** Picks the members of a schema: no other one of a body reaches a row. */
export const givenMembers = ({ properties }: { properties: object }, body: object): GivenMetadata =>
  Object.fromEntries(Object.entries(body).filter(([name]) => Object.hasOwn(properties, name)))

export const ClientParams = Type.Object({ client_id: Type.String() })

export function requireClientId(id: string): string {
  if (UUID.test(id)) return id
  throw apiError('validation_failed', { message: 'invalid client_id format' })
}

const Texts = Type.Array(Type.String())
const Text = Type.Optional(Type.String())
const Time = Type.String({ format: 'date-time' })

export const ClientShape = Type.Object(
  {
    client_id: Type.String(),
    client_secret: Type.Optional(
      Type.String({ description: 'Only in the answers that make it; it cannot be read again.' }),
    ),
    client_type: choiceOf(CLIENT_TYPES, { title: 'ClientType' }),
    registration_type: choiceOf(['manual', 'dynamic', 'metadata_document']),
    token_endpoint_auth_method: choiceOf(AUTH_METHODS, { title: 'ClientAuthMethod' }),
    ...{ token_endpoint_auth_signing_alg: Text, jwks_uri: Text },
    jwks: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    ...{ redirect_uris: Texts, grant_types: Texts, response_types: Texts },
    ...{ post_logout_redirect_uris: Type.Optional(Texts), contacts: Type.Optional(Texts) },
    ...{ scope: Text, client_name: Text, client_uri: Text, logo_uri: Text, tos_uri: Text, policy_uri: Text },
    backchannel_logout_uri: Text,
    backchannel_logout_session_required: Type.Boolean(),
    frontchannel_logout_uri: Text,
    frontchannel_logout_session_required: Type.Boolean(),
    dpop_bound_access_tokens: Type.Boolean(),
    require_pushed_authorization_requests: Type.Boolean(),
    role: Type.String(),
    introspects: Type.Optional(Texts),
    metadata_uri: Type.Optional(
      Type.String({ description: 'Address of its metadata document, which is its id for others.' }),
    ),
    last_used_at: Type.Optional(Type.String({ format: 'date-time', description: 'Day of its latest tokens.' })),
    ...{ created_at: Time, updated_at: Time },
  },
  { title: 'OAuthClient' },
)

/** Empty members are left out, and the hash of the secret always. */
export function toClientBody({ client, secret }: ShownClient): Static<typeof ClientShape> {
  const { id, secret_hash: _, last_used_at, created_at, updated_at, ...rest } = client
  const { metadata_fresh_until: _fresh, metadata_usable_until: _usable, ...metadata } = rest
  const given = Object.entries(metadata).filter(([name, value]) => !isEmpty(name, value))
  return {
    ...(Object.fromEntries(given) as Pick<OAuthClient, NeededMember>),
    client_id: id,
    ...(secret !== undefined && { client_secret: secret }),
    response_types: client.grant_types.includes('authorization_code') ? ['code'] : [],
    ...(last_used_at && { last_used_at: last_used_at.toISOString() }),
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  }
}

const isEmpty = (name: string, value: unknown): boolean =>
  value === null ||
  (['post_logout_redirect_uris', 'contacts', 'introspects'].includes(name) && (value as unknown[]).length === 0)

type NeededMember =
  | 'client_type'
  | 'registration_type'
  | 'token_endpoint_auth_method'
  | 'redirect_uris'
  | 'grant_types'
  | 'backchannel_logout_session_required'
  | 'frontchannel_logout_session_required'
  | 'dpop_bound_access_tokens'
  | 'require_pushed_authorization_requests'
  | 'role'
