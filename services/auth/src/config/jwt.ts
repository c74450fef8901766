import { duration, list, oneOf, parsed, text, type Values, type Variables } from '@services/common/config/variables'
import { parseJwtKeys } from '../core/keys/jwt-keys.ts'
import type { serverVariables } from './server.ts'

export const jwtVariables = {
  JWT_SECRET: parsed(
    'string',
    'Secret for HS256 tokens, refresh tokens and codes; at least 16 bytes, better 32 or more.',
    { required: true, secret: true },
    parseSecret,
  ),
  JWT_KEYS: parsed(
    'JSON',
    'JWK set (or array of JWKs) of private keys; the one whose `key_ops` has `sign` signs, the others verify. `getClaims()` of the client reads only RS256 and ES256.',
    { secret: true },
    parseJwtKeys,
  ),
  JWT_EXP: duration('Lifetime of access tokens.', { default: '3600', positive: true }),
  JWT_TYPE: oneOf(
    ['jwt', 'at+jwt'],
    '`typ` of access tokens; `at+jwt` (RFC 9068) distinguishes them from all others, but some libraries refuse it.',
    { default: 'jwt' },
  ),
  JWT_AUD: text('Audience of tokens and of new users.', { default: 'authenticated' }),
  JWT_AUDIENCES: list('Further audiences that a request may name in `X-JWT-AUD`; JWT_AUD is always permitted.', {
    default: '',
  }),
  JWT_ISSUER: text('`iss` of tokens; API_EXTERNAL_URL when unset.'),
  JWT_ADMIN_ROLES: list('Role claims accepted for admin operations.', { default: 'service_role,supabase_admin' }),
  JWT_ADMIN_GROUP_NAME: text('Inherited: role whose users may write their own app_metadata.', { default: 'admin' }),
  JWT_DEFAULT_GROUP_NAME: text('Role of new users.', { default: 'authenticated' }),
} satisfies Variables

/** Algorithms whose tokens the client's getClaims reads: HS256 by GET /user, the others by the published keys. */
const READ_BY_CLIENT: readonly string[] = ['HS256', 'RS256', 'ES256']

export function jwtWarnings({ JWT_KEYS: keys = [] }: Values<Pick<typeof jwtVariables, 'JWT_KEYS'>>): string[] {
  const signer = keys.find(({ key_ops }) => key_ops.includes('sign'))
  if (!signer || READ_BY_CLIENT.includes(signer.alg)) return []
  return [`AUTH_JWT_KEYS signs ${signer.alg}, for which getClaims() of the client throws; it reads RS256 and ES256`]
}

export const jwtSettings = (
  values: Values<typeof jwtVariables & Pick<typeof serverVariables, 'API_EXTERNAL_URL'>>,
) => ({
  secret: values.JWT_SECRET,
  keys: values.JWT_KEYS,
  lifetimeSeconds: values.JWT_EXP,
  type: values.JWT_TYPE,
  audience: values.JWT_AUD,
  audiences: [values.JWT_AUD, ...values.JWT_AUDIENCES],
  issuer: values.JWT_ISSUER ?? values.API_EXTERNAL_URL,
  adminRoles: values.JWT_ADMIN_ROLES,
  adminGroup: values.JWT_ADMIN_GROUP_NAME,
  defaultRole: values.JWT_DEFAULT_GROUP_NAME,
})

export function parseSecret(value: string): string {
  // RFC 7518 3.2 requires 32 bytes. Shorter secrets exist in the field; a dictionary word must not pass.
  if (Buffer.byteLength(value) < 16) throw new Error('must be at least 16 bytes long')
  return value
}
