import type { JWTPayload } from 'jose'
import { type Endpoints, type ExternalAccount, type OAuth2Provider, onlyEmail } from './provider.ts'

/** Names under which accounts of more than one tenant sign in, at Microsoft's host or that of a national cloud. */
const ANY_TENANT = /^(.*)\/(?:common|organizations)$/
/** Private accounts are those of one tenant, whose tokens name it by its id. */
const PRIVATE = /^(.*)\/consumers$/
const PRIVATE_TENANT_ID = '9188040d-6c67-4c5b-b112-36a304b66dad'
const TENANT_ID = /^[0-9a-f-]{36}$/
/** Its tokens name their issuer by the tenant's id, whatever name the address has. */
const EXTERNAL_ID = /^https:\/\/[a-z0-9-]+\.ciamlogin\.com\/([0-9a-f-]{36})$/

/** Of the token itself, and what has a place of its own. */
const NOT_CUSTOM = [
  ...['aud', 'iss', 'iat', 'nbf', 'exp', 'c_hash', 'at_hash', 'aio', 'nonce', 'rh', 'uti', 'jti', 'ver'],
  ...['sub', 'name', 'preferred_username'],
]

/** https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow; EXTERNAL_AZURE_URL is the tenant's. */
export const azure: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://login.microsoftonline.com/common') => ({
    authorize: `${base}/oauth2/v2.0/authorize`,
    token: `${base}/oauth2/v2.0/token`,
    api: base,
    idTokens: { jwks: `${base}/discovery/v2.0/keys`, isIssuer: (issuer) => isIssuerAt(base, issuer) },
  }),
  // Address and name are told only to who asks for them too.
  scopes: ['openid', 'email', 'profile'],
  clientAuthentication: 'post',
  pkce: true,
  idToken: 'always',
  identify: ({ idToken = {}, endpoints }) => accountOfIdToken(idToken, endpoints),
  accountOfIdToken,
}

/** Whether tokens by this issuer are meant where the operator named this tenant, or any. */
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

/** Where accounts of strangers' tenants may sign in. */
const STRANGERS = /\/(?:common|organizations)$/

/**
 * "Email domain owner verified" is told to applications that ask for it. Without it the word of the operator's own tenant is
 * good; who runs another one can write any address into it.
 */
const isVerified = (xmsEdov: unknown, tenant: string): boolean =>
  xmsEdov === undefined ? !STRANGERS.test(tenant) : [true, 1, '1', 'true'].includes(xmsEdov as never)
