import type { JWTPayload } from 'jose'
import type { Metadata } from '../../../db/tables.ts'
import { type ExternalAccount, named, type OAuth2Provider, onlyEmail } from '../../oauth/provider.ts'

/** https://developers.kakao.com/docs/latest/en/kakaologin/rest-api; id_tokens are those of its SDKs in applications. */
export const kakao: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://kauth.kakao.com'}/oauth/authorize`,
    token: `${base ?? 'https://kauth.kakao.com'}/oauth/token`,
    api: `${base ?? 'https://kapi.kakao.com'}/v2`,
    idTokens: {
      jwks: `${base ?? 'https://kauth.kakao.com'}/.well-known/jwks.json`,
      isIssuer: (issuer) => issuer === (base ?? 'https://kauth.kakao.com'),
    },
  }),
  scopes: ['account_email', 'profile_image', 'profile_nickname'],
  clientAuthentication: 'post',
  async identify({ endpoints: { api }, get }) {
    const { id, kakao_account: account } = await get(`${api}/user/me`)
    const { profile, email, is_email_valid, is_email_verified } = account ?? {}
    return {
      sub: id,
      // An address becomes invalid when another account of Kakao takes it over, and stays verified.
      emails: onlyEmail(email, is_email_valid === true && is_email_verified === true),
      claims: { iss: api, ...claimsOf(profile?.nickname, profile?.profile_image_url) },
    }
  },
  accountOfIdToken,
}

/** The claims do not say whether the address is valid or verified. */
function accountOfIdToken({ sub, iss, email, nickname, picture }: JWTPayload): ExternalAccount {
  const claims = { iss, ...claimsOf(nickname, picture) }
  return { sub, emails: onlyEmail(email, false), claims, isPartial: true }
}

const claimsOf = (nickname: unknown, picture: unknown): Metadata => ({
  ...named(nickname),
  preferred_username: nickname,
  user_name: nickname,
  avatar_url: picture,
})
