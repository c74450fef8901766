import {
  type Endpoints,
  type ExternalAccount,
  named,
  type OAuth2Provider,
  onlyEmail,
  type ProviderJson,
  pictured,
} from '../oauth/provider.ts'

/** https://developers.google.com/identity/openid-connect/openid-connect */
export const google: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({ discover: base ?? 'https://accounts.google.com' }),
  scopes: ['openid', 'email', 'profile'],
  clientAuthentication: 'post',
  pkce: true,
  idToken: 'usually',
  identify: async ({ endpoints, idToken, get }) => accountOf(idToken ?? (await get(endpoints.api)), endpoints),
  accountOfIdToken: accountOf,
}

function accountOf(user: ProviderJson, { issuer }: Endpoints): ExternalAccount {
  return {
    sub: user.sub ?? user.id,
    emails: onlyEmail(user.email, user.email_verified === true || user.verified_email === true),
    claims: { iss: issuer, ...named(user.name), ...pictured(user.picture), custom_claims: { hd: user.hd } },
  }
}
