import type { JWTPayload } from 'jose'
import { type Endpoints, type ExternalAccount, type OAuth2Provider, onlyEmail } from '../oauth/provider.ts'

/** Tenant names that stand for several tenants, at Microsoft's host or that of a national cloud. */
const ANY_TENANT = /^(.*)\/(?:common|organizations)$/
/** Personal accounts belong to one tenant, which their tokens name by its id. */
const PRIVATE = /^(.*)\/consumers$/
const PRIVATE_TENANT_ID = '9188040d-6c67-4c5b-b112-36a304b66dad'
const TENANT_ID = /^[0-9a-f-]{36}$/
/** External ID: tokens name the issuer by the tenant's id, whatever name the address has. */
const EXTERNAL_ID = /^https:\/\/[a-z0-9-]+\.ciamlogin\.com\/([0-9a-f-]{36})$/

/** Claims about the token itself, and those with a member of their own. */
const NOT_CUSTOM = [
  ...['aud', 'iss', 'iat', 'nbf', 'exp', 'c_hash', 'at_hash', 'aio', 'nonce', 'rh', 'uti', 'jti', 'ver'],
  ...['sub', 'name', 'preferred_username'],
]

/** https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow */
export const azure: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://login.microsoftonline.com/common') => ({
    authorize: `${base}/oauth2/v2.0/authorize`,
    token: `${base}/oauth2/v2.0/token`,
    api: base,
    idTokens: { jwks: `${base}/discovery/v2.0/keys`, isIssuer: (issuer) => isIssuerAt(base, issuer) },
  }),
  // Tokens carry address and name only with these scopes.
  scopes: ['openid', 'email', 'profile'],
  clientAuthentication: 'post',
  pkce: true,
  idToken: 'always',
  identify: ({ idToken = {}, endpoints }) => accountOfIdToken(idToken, endpoints),
  accountOfIdToken,
}

/** Whether an issuer belongs to the tenant, or to any tenant, that the operator configured. */
function isIssuerAt(base: string, issuer: string): boolean {
  const named = issuer.replace(/\/$/, '')
  const [, host] = ANY_TENANT.exec(base) ?? []
  if (host) {
    const tenant = named.slice(host.length + 1, -'/v2.0'.length)
    return TENANT_ID.test(tenant) && named === `${host}/${tenant}/v2.0`
  }
  const [, privateHost] = PRIVATE.exec(base) ?? []
  if (privateHost) return named === `${privateHost}/${PRIVATE_TENANT_ID}/v2.0`
  const [, id] = EXTERNAL_ID.exec(base) ?? []
  return named === `${base}/v2.0` || (id !== undefined && named === `https://${id}.ciamlogin.com/${id}/v2.0`)
}

function accountOfIdToken(claims: JWTPayload, { api: tenant }: Pick<Endpoints, 'api'>): ExternalAccount {
  const { sub, iss, name, preferred_username, email, xms_edov } = claims
  const custom = Object.entries(claims).filter(([claim]) => !NOT_CUSTOM.includes(claim))
  return {
    sub,
    emails: onlyEmail(email, isVerified(xms_edov, tenant)),
    claims: { iss, full_name: name, preferred_username, custom_claims: Object.fromEntries(custom) },
  }
}

/** Settings that admit accounts of other tenants. */
const STRANGERS = /\/(?:common|organizations)$/

/** Without `xms_edov` (email domain owner verified) only the own tenant is trusted: others' admins set any address. */
const isVerified = (xmsEdov: unknown, tenant: string): boolean =>
  xmsEdov === undefined ? !STRANGERS.test(tenant) : [true, 1, '1', 'true'].includes(xmsEdov as never)
