import { named, type OAuth2Provider } from '../oauth/provider.ts'

/** https://docs.github.com/en/apps/oauth-apps; a GitHub Enterprise Server has its API below /api/v3. */
export const github: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://github.com'}/login/oauth/authorize`,
    token: `${base ?? 'https://github.com'}/login/oauth/access_token`,
    api: base ? `${base}/api/v3` : 'https://api.github.com',
  }),
  scopes: ['user:email'],
  clientAuthentication: 'post',
  pkce: true,
  async identify({ endpoints: { api }, get }) {
    const user = await get(`${api}/user`)
    // Only this list has private addresses.
    const emails = await get(`${api}/user/emails`)
    return {
      sub: user.id,
      emails,
      claims: {
        iss: api,
        ...named(user.name),
        preferred_username: user.login,
        user_name: user.login,
        avatar_url: user.avatar_url,
      },
    }
  },
}
