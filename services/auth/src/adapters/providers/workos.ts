import {
  type GrantedSignIn,
  joinName,
  named,
  type OAuth2Provider,
  onlyEmail,
  type ProviderJson,
} from '../oauth/provider.ts'

/** https://workos.com/docs/reference/sso; needs `connection`, `organization` or `workos_provider`. */
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
    // `provider` is our own parameter.
    ...(workos_provider && { provider: workos_provider }),
  }),
  async identify(signIn) {
    const { api } = signIn.endpoints
    const { profile } = signIn.answer
    const name = joinName([profile.first_name, profile.last_name])
    const { connection_id, organization_id } = profile
    return {
      sub: profile.id,
      emails: onlyEmail(profile.email, await isOfItsOrganization(signIn)),
      claims: { iss: api, ...named(name), custom_claims: { connection_id, organization_id } },
    }
  },
}

/**
 * Whether the address is in a domain that WorkOS has verified for the organization. An admin of any directory can put
 * any address into it (https://workos.com/docs/sso/domains). The secret is an API key.
 */
async function isOfItsOrganization({ endpoints: { api }, answer, client, get }: GrantedSignIn): Promise<boolean> {
  const { organization_id, email } = answer.profile
  if (!organization_id) return false
  const url = `${api}/organizations/${encodeURIComponent(String(organization_id))}`
  const organization: ProviderJson = await get(url, {}, client.secret).catch(() => ({}))
  const domains: ProviderJson[] = Array.isArray(organization.domains) ? organization.domains : []
  const domain = String(email).split('@').at(-1)?.toLowerCase()
  return domains.some((known) => VERIFIED.includes(known?.state) && String(known.domain).toLowerCase() === domain)
}

const VERIFIED = ['verified', 'legacy_verified']
