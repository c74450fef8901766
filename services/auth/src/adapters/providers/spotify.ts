import { named, type OAuth2Provider, onlyEmail, type ProviderJson, pictured } from '../oauth/provider.ts'

/** https://developer.spotify.com/documentation/web-api/tutorials/code-flow */
export const spotify: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://accounts.spotify.com'}/authorize`,
    token: `${base ?? 'https://accounts.spotify.com'}/api/token`,
    api: `${base ?? 'https://api.spotify.com'}/v1`,
  }),
  scopes: ['user-read-email'],
  clientAuthentication: 'basic',
  async identify({ endpoints: { api }, get }) {
    const user = await get(`${api}/me`)
    const picture = largest(user.images ?? [])
    return {
      sub: user.id,
      // Documented as unverified: the account's holder typed it.
      emails: onlyEmail(user.email, false),
      claims: { iss: api, ...named(user.display_name), ...pictured(picture) },
    }
  },
}

const largest = (images: ProviderJson[]) =>
  images.toSorted((one, other) => other.height * other.width - one.height * one.width)[0]?.url
