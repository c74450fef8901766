import { type OAuth2Provider, onlyEmail } from '../../oauth/provider.ts'

/** https://fly.io/docs/reference/extensions_api/#single-sign-on-flow, for Fly's partners. */
export const fly: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://api.fly.io') => ({
    authorize: `${base}/oauth/authorize`,
    token: `${base}/oauth/token`,
    api: base,
  }),
  scopes: ['read'],
  clientAuthentication: 'post',
  async identify({ endpoints: { api }, get }) {
    const user = await get(`${api}/oauth/token/info`)
    const { resource_owner_id, organizations, application, scope, created_at } = user
    return {
      sub: user.user_id,
      // Mostly an alias at Fly; "emails can be assumed to be confirmed" (the same page).
      emails: onlyEmail(user.email, true),
      claims: {
        iss: api,
        full_name: user.user_name,
        custom_claims: { resource_owner_id, organizations, application, scope, created_at },
      },
    }
  },
}
