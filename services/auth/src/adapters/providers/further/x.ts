import { isText, named, type OAuth2Provider, onlyEmail, pictured } from '../../oauth/provider.ts'

const FIELDS = 'id,name,username,confirmed_email,profile_image_url,url,created_at'

/**
 * https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code; `twitter` is the same service by OAuth
 * 1.0a. PKCE is mandatory. The profile has an address only where the application may request addresses from users.
 */
export const x: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://x.com'}/i/oauth2/authorize`,
    token: `${base ?? 'https://api.x.com'}/2/oauth2/token`,
    api: `${base ?? 'https://api.x.com'}/2`,
  }),
  // Without `tweet.read` the profile is refused; `offline.access` yields a refresh token.
  scopes: ['users.email', 'tweet.read', 'users.read', 'offline.access'],
  clientAuthentication: 'basic',
  pkce: true,
  async identify({ endpoints: { api }, get }) {
    const { data: user } = await get(`${api}/users/me?user.fields=${FIELDS}`)
    return {
      sub: user.id,
      emails: onlyEmail(user.confirmed_email, true),
      claims: {
        iss: api,
        ...named(user.name),
        preferred_username: user.username,
        user_name: user.username,
        ...pictured(user.profile_image_url),
        profile: isText(user.username) ? `https://x.com/${user.username}` : undefined,
        website: user.url,
        custom_claims: { created_at: user.created_at },
      },
    }
  },
}
