import type { ExternalProviderSettings } from '../../config/external-providers.ts'
import { createEndpoints } from './endpoints.ts'
import { createIdTokenVerifier } from './id-token.ts'
import { createOAuth1Client } from './oauth1-client.ts'
import { createOAuth2Client } from './oauth2-client.ts'
import type { Provider } from './provider.ts'
import { createIdTokenReader } from './read-id-token.ts'
import type { SignInClient } from './sign-in-client.ts'
import { boundedFetch, type OpenFetch } from './upstream.ts'

export interface ConfiguredProvider {
  name: string
  /** Name for people, where it has one. */
  label?: string
  settings: ExternalProviderSettings
  client: SignInClient
  idTokens: ReturnType<typeof createIdTokenReader>
}

/** Sets up providers, which share the keys of id_tokens. `withinMs` bounds the requests of one step. */
export function createConfigure(
  iosBundleId: string | undefined,
  withinMs: number,
  openFetch: OpenFetch = boundedFetch,
) {
  const verifyIdToken = createIdTokenVerifier(withinMs, openFetch)
  /** `openSecret` replaces the secret of the settings; it is called for the exchange of a code alone. */
  return (
    name: string,
    settings: ExternalProviderSettings,
    provider: Provider,
    openSecret = () => settings.secret,
  ): ConfiguredProvider => {
    const clientSettings = { ...settings, openSecret, withinMs, openFetch }
    if (provider.protocol === 'oauth1') {
      const client = createOAuth1Client(provider, clientSettings)
      return { name, settings, client, idTokens: undefined }
    }
    const endpointsOf = createEndpoints(provider, settings.url, withinMs)
    const audiences = [...settings.clientIds, ...(name === 'apple' && iosBundleId ? [iosBundleId] : [])]
    // Facebook's applications get tokens without a nonce.
    const skipNonceCheck = settings.skipNonceCheck || name === 'facebook'
    return {
      name,
      settings,
      client: createOAuth2Client(provider, clientSettings, endpointsOf, verifyIdToken),
      idTokens: createIdTokenReader(provider, { audiences, skipNonceCheck }, endpointsOf, verifyIdToken),
    }
  }
}
