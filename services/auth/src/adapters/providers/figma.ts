import { named, type OAuth2Provider, onlyEmail } from '../oauth/provider.ts'

/** https://www.figma.com/developers/api#oauth2 */
export const figma: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://www.figma.com'}/oauth`,
    token: `${base ?? 'https://api.figma.com'}/v1/oauth/token`,
    api: `${base ?? 'https://api.figma.com'}/v1`,
  }),
  scopes: ['current_user:read'],
  clientAuthentication: 'basic',
  async identify({ endpoints: { api }, get }) {
    const user = await get(`${api}/me`)
    return {
      sub: user.id,
      // The API does not say whether the address is verified.
      emails: onlyEmail(user.email, false),
      claims: { iss: api, ...named(user.handle), avatar_url: user.img_url },
    }
  },
}
