import { named, type OAuth2Provider, onlyEmail, type ProviderJson, pictured } from '../oauth/provider.ts'

/** https://docs.gitlab.com/api/oauth2; EXTERNAL_GITLAB_URL is the address of a self-managed one. */
export const gitlab: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://gitlab.com') => ({
    authorize: `${base}/oauth/authorize`,
    token: `${base}/oauth/token`,
    api: `${base}/api/v4`,
  }),
  scopes: ['read_user'],
  clientAuthentication: 'post',
  pkce: true,
  async identify({ endpoints: { api }, get }) {
    const user = await get(`${api}/user`)
    const others = await get(`${api}/user/emails`)
    return {
      sub: user.id,
      emails: [
        ...others.map(({ email }: ProviderJson) => ({ email, verified: false, primary: false })),
        ...onlyEmail(user.email, Boolean(user.confirmed_at)),
      ],
      claims: { iss: api, ...named(user.name), ...pictured(user.avatar_url) },
    }
  },
}
