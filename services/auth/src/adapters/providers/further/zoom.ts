import { joinName, named, type OAuth2Provider, onlyEmail, pictured } from '../../oauth/provider.ts'

/**
 * https://developers.zoom.us/docs/integrations/oauth; scopes are those of the application's registration. PKCE is only
 * for public clients, which have an id of their own.
 */
export const zoom: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://zoom.us'}/oauth/authorize`,
    token: `${base ?? 'https://zoom.us'}/oauth/token`,
    api: `${base ?? 'https://api.zoom.us'}/v2`,
  }),
  scopes: [],
  takesScopes: false,
  clientAuthentication: 'basic',
  async identify({ endpoints: { api }, get }) {
    const user = await get(`${api}/users/me`)
    const name = joinName([user.first_name, user.last_name])
    return {
      sub: user.id,
      // Zoom does not say whether it checked the address of an account with another login (`login_types` 1, 101).
      emails: onlyEmail(user.email, user.verified === 1),
      claims: { iss: api, ...named(name), ...pictured(user.pic_url) },
    }
  },
}
