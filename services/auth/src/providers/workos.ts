import { type OAuth2Provider, onlyEmail } from './provider.ts'

/**
 * https://workos.com/docs/reference/sso; GET /authorize needs `connection`, `organization` or `workos_provider`, which says
 * at whom WorkOS lets the user sign in.
 */
export const workos: OAuth2Provider = {
  protocol: 'oauth2',
  endpoints: (base = 'https://api.workos.com') => ({
    authorize: `${base}/sso/authorize`,
    token: `${base}/sso/token`,
    api: base,
  }),
  scopes: [],
  takesScopes: false,
  takesParameters: false,
  clientAuthentication: 'post',
  authorizeParameters: ({ workos_provider, ...others }) => ({
    ...others,
    // `provider` is what we are asked for ourselves.
    ...(workos_provider && { provider: workos_provider }),
  }),
  identify({ endpoints: { api }, answer: { profile } }) {
    const name = [profile.first_name, profile.last_name].filter(Boolean).join(' ')
    const { connection_id, organization_id } = profile
    return {
      sub: profile.id,
      emails: onlyEmail(profile.email, true),
      claims: { iss: api, name, full_name: name, custom_claims: { connection_id, organization_id } },
    }
  },
}
