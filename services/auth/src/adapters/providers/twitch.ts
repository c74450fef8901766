import { named, type OAuth2Provider, onlyEmail, pictured } from '../oauth/provider.ts'

/** https://dev.twitch.tv/docs/authentication; the API returns an address only once it is verified. */
export const twitch: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://id.twitch.tv'}/oauth2/authorize`,
    token: `${base ?? 'https://id.twitch.tv'}/oauth2/token`,
    api: `${base ?? 'https://api.twitch.tv'}/helix`,
  }),
  scopes: ['user:read:email'],
  clientAuthentication: 'post',
  async identify({ endpoints: { api }, client, get }) {
    const { data } = await get(`${api}/users`, { 'client-id': client.id })
    const [user] = data
    const { broadcaster_type, description, type, offline_image_url, view_count } = user
    return {
      sub: user.id,
      emails: onlyEmail(user.email, true),
      claims: {
        iss: api,
        ...named(user.login),
        nickname: user.display_name,
        slug: user.display_name,
        ...pictured(user.profile_image_url),
        custom_claims: { broadcaster_type, description, type, offline_image_url, view_count },
      },
    }
  },
}
