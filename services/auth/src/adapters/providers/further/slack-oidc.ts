import { type OAuth2Provider, onlyEmail } from '../../oauth/provider.ts'
import { claimsOf, USER_ID } from '../slack.ts'

/** https://docs.slack.dev/authentication/sign-in-with-slack, which replaced the OAuth of `slack`. */
export const slackOidc: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://slack.com') => ({
    issuer: base,
    authorize: `${base}/openid/connect/authorize`,
    token: `${base}/api/openid.connect.token`,
    api: `${base}/api/openid.connect.userInfo`,
    idTokens: { jwks: `${base}/openid/connect/keys`, isIssuer: (issuer) => issuer === base },
  }),
  scopes: ['profile', 'email', 'openid'],
  clientAuthentication: 'basic',
  idToken: 'always',
  async identify({ endpoints: { api, issuer }, idToken, get }) {
    const user = await get(api)
    // OpenID Connect Core 5.3.2.
    if (user.sub !== idToken?.sub) throw new Error('the profile belongs to another account')
    return {
      sub: idToken?.[USER_ID],
      emails: onlyEmail(user.email, user.email_verified === true),
      claims: { iss: issuer, ...claimsOf(user) },
    }
  },
}
