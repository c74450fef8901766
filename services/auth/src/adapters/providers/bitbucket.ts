import { named, type OAuth2Provider, type ProviderJson, pictured } from '../oauth/provider.ts'

/** https://developer.atlassian.com/cloud/bitbucket/oauth-2 */
export const bitbucket: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base) => ({
    authorize: `${base ?? 'https://bitbucket.org'}/site/oauth2/authorize`,
    token: `${base ?? 'https://bitbucket.org'}/site/oauth2/access_token`,
    api: `${base ?? 'https://api.bitbucket.org'}/2.0`,
  }),
  scopes: ['account', 'email'],
  takesScopes: false,
  clientAuthentication: 'basic',
  async identify({ endpoints: { api }, get }) {
    const user = await get(`${api}/user`)
    const { values } = await get(`${api}/user/emails`)
    return {
      sub: user.uuid,
      emails: values.map(({ email, is_confirmed, is_primary }: ProviderJson) => ({
        email,
        verified: is_confirmed,
        primary: is_primary,
      })),
      claims: { iss: api, ...named(user.display_name), ...pictured(user.links?.avatar?.href) },
    }
  },
}
