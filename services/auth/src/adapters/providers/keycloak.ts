import {
  type Endpoints,
  type ExternalAccount,
  named,
  type OAuth2Provider,
  onlyEmail,
  type ProviderJson,
  pictured,
} from '../oauth/provider.ts'

/** Claims with a member of their own. */
const MAPPED = ['sub', 'name', 'email', 'email_verified', 'picture', 'preferred_username', 'given_name', 'family_name']
/** Claims about the token itself. */
const OF_TOKEN = ['iss', 'aud', 'exp', 'iat', 'auth_time', 'jti', 'typ', 'azp', 'nonce', 'at_hash', 'sid', 'acr']

/** https://www.keycloak.org/securing-apps/oidc-layers; EXTERNAL_KEYCLOAK_URL is the realm's address. */
export const keycloak: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = '') => ({
    issuer: base,
    authorize: `${base}/protocol/openid-connect/auth`,
    token: `${base}/protocol/openid-connect/token`,
    api: `${base}/protocol/openid-connect/userinfo`,
    idTokens: { jwks: `${base}/protocol/openid-connect/certs`, isIssuer: (issuer) => issuer === base },
  }),
  // Since version 19 the userinfo endpoint requires `openid`.
  scopes: ['openid', 'profile', 'email'],
  clientAuthentication: 'basic',
  pkce: true,
  idToken: 'usually',
  isProfileProof: true,
  identify: async ({ endpoints, get }) => accountOf(await get(endpoints.api), endpoints),
  accountOfIdToken: accountOf,
}

function accountOf(user: ProviderJson, { issuer }: Endpoints): ExternalAccount {
  const { sub, name, preferred_username, given_name, family_name, picture } = user
  const custom = Object.entries(user).filter(([claim]) => !MAPPED.includes(claim) && !OF_TOKEN.includes(claim))
  return {
    sub,
    emails: onlyEmail(user.email, user.email_verified === true),
    claims: {
      iss: issuer,
      ...named(name),
      preferred_username,
      given_name,
      family_name,
      ...pictured(picture),
      custom_claims: Object.fromEntries(custom),
    },
  }
}
