import type { OidcProviderSettings } from '../../config/external-providers.ts'
import { describedProvider } from '../described-providers/described-provider.ts'
import type { OAuth2Provider } from '../oauth/provider.ts'

/** A provider with OpenID Connect that the operator describes (EXTERNAL_OIDC_<NAME>_…). */
export const oidcProvider = ({ issuer, scopes, claims, clientAuthentication }: OidcProviderSettings): OAuth2Provider =>
  describedProvider({
    endpoints: { discover: issuer },
    scopes,
    clientAuthentication,
    pkce: true,
    idToken: 'always',
    mapping: { issuer, attributes: claims, customClaims: [], keepsStandard: false, reportMisfit: () => {} },
  })
