import { joinName, named, type OAuth2Provider, onlyEmail, pictured } from '../../oauth/provider.ts'

/**
 * https://learn.microsoft.com/en-us/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2. The addresses
 * are fixed, because the description named another issuer than the tokens did while LinkedIn renamed itself in 2024.
 */
export const linkedinOidc: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://www.linkedin.com') => ({
    authorize: `${base}/oauth/v2/authorization`,
    token: `${base}/oauth/v2/accessToken`,
    api: base,
    idTokens: {
      jwks: `${base}/oauth/openid/jwks`,
      isIssuer: (issuer) => issuer === `${base}/oauth` || issuer === base,
    },
  }),
  scopes: ['openid', 'email', 'profile'],
  clientAuthentication: 'post',
  idToken: 'always',
  repeatsNonce: false,
  identify({ idToken = {} }) {
    const { sub, iss, email, email_verified, given_name, family_name, picture } = idToken
    const name = idToken.name || joinName([given_name, family_name])
    return {
      sub,
      // A text in id_tokens, a boolean in the documentation.
      emails: onlyEmail(email, email_verified === true || email_verified === 'true'),
      claims: { iss, ...named(name), given_name, family_name, ...pictured(picture) },
    }
  },
}
