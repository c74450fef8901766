import type { ExternalProvider, ExternalProviderSettings } from '../config/external-providers.ts'
import type { Config } from '../config.ts'
import { apiError } from '../errors.ts'
import { github } from './github.ts'
import { google } from './google.ts'
import { createIdTokenVerifier, type VerifyIdToken } from './id-token.ts'
import { keycloak } from './keycloak.ts'
import { createOAuth2Client } from './oauth2-client.ts'
import { oidcProvider } from './oidc.ts'
import type { Provider } from './provider.ts'
import type { SignInClient } from './sign-in-client.ts'

/** A new one: copy a file, list it here and name it in EXTERNAL_PROVIDERS (../config/external-providers.ts). */
const PROVIDERS: Partial<Record<ExternalProvider, Provider>> = {
  github,
  google,
  keycloak,
}

export interface ConfiguredProvider {
  name: string
  settings: ExternalProviderSettings
  client: SignInClient
}

export interface Providers {
  /** The provider of this name, in any case. Throws validation_failed for an unknown one and one that is off. */
  find(name: string): ConfiguredProvider
  /** Which are on, by name: the eighteen, and the operator's own where they are on. */
  enabled(): Record<string, boolean>
}

export function createProviders({ providers, ownProviders }: Pick<Config, 'providers' | 'ownProviders'>): Providers {
  const verifyIdToken = createIdTokenVerifier()
  const configured = new Map<string, ConfiguredProvider>()
  const add = (name: string, settings: ExternalProviderSettings, provider: Provider) => {
    if (settings.enabled) configured.set(name, { name, settings, client: clientOf(provider, settings, verifyIdToken) })
  }
  for (const [name, provider] of Object.entries(PROVIDERS)) add(name, providers[name as ExternalProvider], provider)
  for (const [name, settings] of Object.entries(ownProviders)) add(name, settings, oidcProvider(settings))
  const known = new Set([...Object.keys(providers), ...Object.keys(ownProviders)])

  return {
    find: (typed) => {
      const name = typed.toLowerCase()
      const found = configured.get(name)
      if (found) return found
      throw unsupported(
        known.has(name) ? 'provider is not enabled' : `Provider ${typed.slice(0, 50)} could not be found`,
      )
    },
    enabled: () => {
      const all = Object.keys(providers).map((name) => [name, configured.has(name)] as const)
      const own = Object.keys(ownProviders).filter((name) => configured.has(name))
      return Object.fromEntries([...all, ...own.map((name) => [name, true] as const)])
    },
  }
}

const unsupported = (why: string) => apiError('validation_failed', { message: `Unsupported provider: ${why}` })

function clientOf(provider: Provider, settings: ExternalProviderSettings, verifyIdToken: VerifyIdToken): SignInClient {
  const { clientIds, secret, redirectUri, url: base } = settings
  if (provider.protocol === 'oauth1') throw new Error('not there yet')
  return createOAuth2Client(provider, { clientIds, secret, redirectUri, base }, verifyIdToken)
}
