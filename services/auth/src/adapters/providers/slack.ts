import type { Metadata } from '../../db/tables.ts'
import { named, type OAuth2Provider, onlyEmail, type ProviderJson, pictured } from '../oauth/provider.ts'

/** Claim with the id of the account. */
export const USER_ID = 'https://slack.com/user_id'
const TEAM_ID = 'https://slack.com/team_id'

/** https://api.slack.com/legacy/oauth, with the profile of https://api.slack.com/methods/openid.connect.userInfo */
export const slack: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://slack.com') => ({
    authorize: `${base}/oauth/authorize`,
    token: `${base}/api/oauth.access`,
    api: `${base}/api`,
  }),
  scopes: ['profile', 'email', 'openid'],
  clientAuthentication: 'basic',
  async identify({ endpoints: { api }, get }) {
    const user = await get(`${api}/openid.connect.userInfo`)
    return {
      sub: user[USER_ID],
      emails: onlyEmail(user.email, user.email_verified === true),
      claims: { iss: api, ...claimsOf(user) },
    }
  },
}

/** Claims of a profile, the same for both ways to sign in. */
export const claimsOf = (user: ProviderJson): Metadata => ({
  ...named(user.name),
  ...pictured(user.picture),
  custom_claims: { [TEAM_ID]: user[TEAM_ID] },
})
