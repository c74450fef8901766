import type { JWTPayload } from 'jose'
import { type ExternalAccount, type OAuth2Provider, onlyEmail } from '../../oauth/provider.ts'

/**
 * https://vercel.com/docs/integrations/create-integration/marketplace-api: the account is in the id_token alone. Vercel
 * documents how integrations get one; the browser's addresses are those of the reference.
 */
export const vercelMarketplace: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://api.vercel.com'}/oauth/v2/authorization`,
    token: `${base ?? 'https://api.vercel.com'}/oauth/v2/accessToken`,
    api: base ?? 'https://api.vercel.com',
    idTokens: {
      jwks: { discover: base ?? 'https://marketplace.vercel.com' },
      isIssuer: (issuer) => issuer === (base ?? 'https://marketplace.vercel.com'),
    },
  }),
  scopes: [],
  clientAuthentication: 'post',
  idToken: 'always',
  repeatsNonce: false,
  identify: ({ idToken = {} }) => accountOfIdToken(idToken),
  accountOfIdToken,
}

/** `sub` differs between the installations of one person, `global_user_id` does not. */
function accountOfIdToken({ sub, iss, ...claims }: JWTPayload): ExternalAccount {
  const { global_user_id, user_email, user_name, user_avatar_url } = claims
  return {
    sub: typeof global_user_id === 'string' && global_user_id !== '' ? `global_user_id:${global_user_id}` : sub,
    // Accounts sign in by a code sent to this address.
    emails: onlyEmail(user_email, true),
    claims: { iss, name: user_name, picture: user_avatar_url },
  }
}
