import { createHmac } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { type ExternalAccount, joinName, named, type OAuth2Provider, onlyEmail, pictured } from '../oauth/provider.ts'

const FIELDS = 'email,first_name,last_name,name,picture'

/** https://developers.facebook.com/docs/facebook-login; id_tokens are those of Limited Login in applications. */
export const facebook: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://www.facebook.com'}/dialog/oauth`,
    token: `${base ?? 'https://graph.facebook.com'}/oauth/access_token`,
    api: base ?? 'https://graph.facebook.com',
    idTokens: {
      jwks: `${base ?? 'https://www.facebook.com'}/.well-known/oauth/openid/jwks/`,
      isIssuer: (issuer) => issuer === (base ?? 'https://www.facebook.com'),
    },
  }),
  scopes: ['email'],
  clientAuthentication: 'post',
  async identify({ endpoints: { api }, accessToken, client, get }) {
    // Proves knowledge of the secret, so that a stolen access token alone is useless.
    const proof = createHmac('sha256', client.secret).update(accessToken).digest('hex')
    const user = await get(`${api}/me?fields=${FIELDS}&appsecret_proof=${proof}`)
    const fullName = joinName([user.first_name, user.last_name])
    return {
      sub: user.id,
      emails: onlyEmail(user.email, true),
      claims: {
        iss: api,
        ...named(fullName),
        nickname: user.name,
        slug: user.name,
        ...pictured(user.picture?.data?.url),
      },
    }
  },
  accountOfIdToken,
}

function accountOfIdToken(claims: JWTPayload): ExternalAccount {
  const { sub, iss, email, name, given_name, family_name, picture } = claims
  return {
    sub,
    emails: onlyEmail(email, true),
    claims: { iss, ...named(name), given_name, family_name, ...pictured(picture) },
  }
}
