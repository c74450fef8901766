import type { JWTPayload } from 'jose'
import { type ExternalAccount, named, type OAuth2Provider, onlyEmail, pictured } from '../oauth/provider.ts'

const SCOPE = 'https://auth.snapchat.com/oauth2/api/user.'
const QUERY = '{me{externalId displayName bitmoji{avatar id} email}}'

/** https://developers.snap.com/snap-kit/login-kit/overview; most accounts come without an address. */
export const snapchat: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://accounts.snapchat.com'}/accounts/oauth2/auth`,
    token: `${base ?? 'https://accounts.snapchat.com'}/accounts/oauth2/token`,
    api: `${base ?? 'https://kit.snapchat.com'}/v1`,
    idTokens: {
      jwks: { discover: base ?? 'https://accounts.snapchat.com' },
      isIssuer: (issuer) => issuer === (base ?? 'https://accounts.snapchat.com'),
    },
  }),
  scopes: [`${SCOPE}external_id`, `${SCOPE}display_name`, `${SCOPE}bitmoji.avatar`],
  clientAuthentication: 'post',
  async identify({ endpoints: { api, token }, get }) {
    const answer = await get(`${api}/me?query=${encodeURIComponent(QUERY)}`)
    const { me } = answer.data
    return {
      sub: me.externalId,
      // The API does not say whether the address is verified.
      emails: onlyEmail(me.email, false),
      claims: { iss: token, ...named(me.displayName), slug: me.displayName, ...pictured(me.bitmoji?.avatar) },
    }
  },
  accountOfIdToken,
}

function accountOfIdToken(claims: JWTPayload): ExternalAccount {
  const { sub, iss, email, email_verified, name, picture } = claims
  return {
    sub,
    emails: onlyEmail(email, email_verified === true),
    claims: { iss, ...named(name), ...pictured(picture) },
  }
}
