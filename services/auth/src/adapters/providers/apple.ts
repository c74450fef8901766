import type { JWTPayload } from 'jose'
import type { Metadata } from '../../db/tables.ts'
import { type ExternalAccount, joinName, named, type OAuth2Provider, onlyEmail } from '../oauth/provider.ts'

const ISSUERS = ['https://appleid.apple.com', 'https://account.apple.com']

/** https://developer.apple.com/documentation/signinwithapplerestapi; the operator makes the secret, a JWT. */
export const apple: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://appleid.apple.com') => ({
    authorize: `${base}/auth/authorize`,
    token: `${base}/auth/token`,
    api: base,
    idTokens: { jwks: `${base}/auth/keys`, isIssuer: (issuer) => issuer === base || ISSUERS.includes(issuer) },
  }),
  scopes: ['email', 'name'],
  takesScopes: false,
  takesParameters: false,
  clientAuthentication: 'post',
  idToken: 'always',
  // Apple returns the data of these scopes by form post only.
  authorizeParameters: () => ({ response_mode: 'form_post' }),
  tokenParameters: ({ secret }) => ({ secret }),
  identify({ idToken = {}, callback }) {
    const account = accountOfIdToken(idToken)
    const name = nameIn(callback.user)
    return { ...account, claims: { ...account.claims, ...named(name) } }
  },
  accountOfIdToken,
}

function accountOfIdToken(claims: JWTPayload): ExternalAccount {
  const { sub, iss, email, email_verified, is_private_email, auth_time, transfer_sub } = claims
  const custom: Metadata = { is_private_email: asBoolean(is_private_email), auth_time, transfer_sub }
  return {
    sub,
    // A missing claim means verified; accounts managed by a school or company may be unverified.
    emails: onlyEmail(email, asBoolean(email_verified) !== false),
    claims: { iss, custom_claims: custom },
  }
}

/** Some tokens have booleans as text. */
const asBoolean = (claim: unknown): boolean | undefined =>
  claim === undefined ? undefined : claim === true || claim === 'true'

/** Sent once, at the first sign-in, through the browser: trusted for a name, not for an address. */
function nameIn(user: string | undefined): string | undefined {
  if (!user) return undefined
  try {
    const { firstName, lastName } = JSON.parse(user).name
    return joinName([firstName, lastName])
  } catch {
    return undefined
  }
}
