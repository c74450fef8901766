import type { OidcProviderSettings } from '../../config/external-providers.ts'
import { type ExternalAccount, type OAuth2Provider, onlyEmail, type ProviderJson } from '../oauth/provider.ts'

/** Claims of OpenID Connect Core 5.1 that identities keep under the same name. */
const STANDARD = [
  'name',
  'family_name',
  'given_name',
  'middle_name',
  'nickname',
  'preferred_username',
  'profile',
  'picture',
  'website',
  'gender',
  'birthdate',
  'zoneinfo',
  'locale',
]

/** A provider with OpenID Connect that the operator describes (EXTERNAL_OIDC_<NAME>_…). */
export function oidcProvider({ issuer, scopes, claims, clientAuthentication }: OidcProviderSettings): OAuth2Provider {
  function accountOf(user: ProviderJson): ExternalAccount {
    const read = (member: string) => user[claims[member] ?? member]
    const standard = Object.fromEntries(STANDARD.map((member) => [member, read(member)]))
    return {
      sub: user.sub,
      emails: onlyEmail(read('email'), read('email_verified') === true),
      claims: {
        ...standard,
        iss: issuer,
        full_name: claims.full_name ? user[claims.full_name] : read('name'),
        avatar_url: claims.avatar_url ? user[claims.avatar_url] : read('picture'),
        user_name: claims.user_name ? user[claims.user_name] : undefined,
      },
    }
  }
  return {
    protocol: 'oauth2',
    endpoints: () => ({ discover: issuer }),
    scopes,
    clientAuthentication,
    pkce: true,
    idToken: 'always',
    isProfileProof: true,
    async identify({ endpoints: { api }, idToken, get }) {
      const profile = api ? await get(api) : {}
      return accountOf({ ...idToken, ...profile, sub: idToken?.sub })
    },
    accountOfIdToken: accountOf,
  }
}
