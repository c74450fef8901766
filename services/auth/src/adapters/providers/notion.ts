import { named, type OAuth2Provider, onlyEmail, pictured } from '../oauth/provider.ts'

/** https://developers.notion.com/docs/authorization */
export const notion: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://api.notion.com') => ({
    authorize: `${base}/v1/oauth/authorize`,
    token: `${base}/v1/oauth/token`,
    api: `${base}/v1`,
  }),
  scopes: [],
  takesScopes: false,
  clientAuthentication: 'basic',
  authorizeParameters: () => ({ owner: 'user' }),
  async identify({ endpoints: { api }, get }) {
    // The token belongs to a bot that acts for the user; a bot of a whole workspace has no user.
    const me = await get(`${api}/users/me`, { 'notion-version': '2021-08-16' })
    const { user } = me.bot.owner
    return {
      sub: user.id,
      emails: onlyEmail(user.person?.email, true),
      claims: { iss: api, ...named(user.name), ...pictured(user.avatar_url) },
    }
  },
}
