import { type OAuth2Provider, onlyEmail } from './provider.ts'

const MAPPED = ['sub', 'name', 'email', 'email_verified', 'picture', 'preferred_username', 'given_name', 'family_name']

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
  // Since version 19 profiles are told only to tokens with `openid`.
  scopes: ['openid', 'profile', 'email'],
  clientAuthentication: 'basic',
  pkce: true,
  async identify({ endpoints: { api, issuer }, get }) {
    const user = await get(api)
    const { sub, name, preferred_username, given_name, family_name, picture } = user
    const custom = Object.entries(user).filter(([claim]) => !MAPPED.includes(claim))
    return {
      sub,
      emails: onlyEmail(user.email, user.email_verified === true),
      claims: {
        iss: issuer,
        name,
        full_name: name,
        preferred_username,
        given_name,
        family_name,
        picture,
        avatar_url: picture,
        custom_claims: Object.fromEntries(custom),
      },
    }
  },
}
