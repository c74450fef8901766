// Providers that data describes alone: those of the operator's settings (../providers/oidc.ts) and those of the admin
// API (custom-provider.ts). One description serves both. Their protocols are in ../oauth.
import type { Discovered, Endpoints, OAuth2Provider } from '../oauth/provider.ts'
import { accountOfClaims, type ClaimMapping } from './account-of-claims.ts'

export interface ProviderDescription
  extends Pick<
    OAuth2Provider,
    | 'scopes'
    | 'replacesScopes'
    | 'pkce'
    | 'idToken'
    | 'clientAuthentication'
    | 'furtherAudiences'
    | 'binding'
    | 'reportTooLarge'
  > {
  endpoints: Endpoints | Discovered
  mapping: ClaimMapping
  /** Parameters of every authorization request. */
  parameters?: Readonly<Record<string, string>>
}

export function describedProvider({ endpoints, mapping, parameters, ...rest }: ProviderDescription): OAuth2Provider {
  return {
    ...rest,
    protocol: 'oauth2',
    endpoints: () => endpoints,
    isProfileProof: true,
    ...(parameters && { authorizeParameters: () => ({ ...parameters }) }),
    async identify({ endpoints: { api }, idToken, get }) {
      const profile = api ? await get(api) : {}
      return accountOfClaims({ ...(idToken && { idToken }), profile }, mapping)
    },
    ...(rest.idToken && { accountOfIdToken: (idToken) => accountOfClaims({ idToken }, mapping) }),
  }
}
