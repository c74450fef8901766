// External providers: one file each, data plus one mapping. The protocols are in adapters/oauth.
import {
  type ExternalProvider,
  type ExternalProviderSettings,
  SPECIFIED_PROVIDERS,
} from '../../config/external-providers.ts'
import type { Config } from '../../config.ts'
import { apiError } from '../../errors.ts'
import type { ConfiguredProvider } from '../oauth/configure-provider.ts'
import type { Provider } from '../oauth/provider.ts'
import { readUnverified } from '../oauth/readable-id-token.ts'
import { SIGN_IN_WITHIN_MS } from '../oauth/upstream.ts'
import { apple } from './apple.ts'
import { azure } from './azure.ts'
import { bitbucket } from './bitbucket.ts'
import { discord } from './discord.ts'
import { facebook } from './facebook.ts'
import { figma } from './figma.ts'
import { FURTHER } from './further/index.ts'
import { github } from './github.ts'
import { gitlab } from './gitlab.ts'
import { google } from './google.ts'
import { keycloak } from './keycloak.ts'
import { linkedin } from './linkedin.ts'
import { notion } from './notion.ts'
import { oidcProvider } from './oidc.ts'
import { slack } from './slack.ts'
import { snapchat } from './snapchat.ts'
import { spotify } from './spotify.ts'
import { twitch } from './twitch.ts'
import { twitter } from './twitter.ts'
import { workos } from './workos.ts'

/**
 * The one list of providers. The rule: a provider is data plus a mapping of its profile; the protocol is in
 * oauth2-client.ts, oauth1-client.ts and id-token.ts. A new one: copy a file into further/, list it there and
 * in FURTHER_PROVIDERS (config/external-providers.ts). Tests: beside it, with examples in test/upstreams/.
 */
export const PROVIDERS: Record<ExternalProvider, Provider> = {
  apple,
  azure,
  bitbucket,
  discord,
  facebook,
  figma,
  github,
  gitlab,
  google,
  keycloak,
  linkedin,
  notion,
  slack,
  snapchat,
  spotify,
  twitch,
  twitter,
  workos,
  ...FURTHER,
}

const CUSTOM = 'custom:'

/** Providers of the admin API, as `custom:<name>`. */
export interface CustomProviders {
  isEnabled: boolean
  redirectUri: string
  find(identifier: string): Promise<ConfiguredProvider | undefined>
}

const NO_CUSTOM: CustomProviders = { isEnabled: false, redirectUri: '', find: async () => undefined }

/** Sets up enabled providers. Without one the protocol code is never loaded: 2 MiB of an idle service (measured). */
export async function createProviders(
  { providers, ownProviders, external }: Pick<Config, 'providers' | 'ownProviders' | 'external'>,
  withinMs = SIGN_IN_WITHIN_MS,
  custom = NO_CUSTOM,
) {
  const known = new Map<string, readonly [ExternalProviderSettings, Provider]>([
    ...Object.entries(PROVIDERS).map(([name, provider]) => {
      return [name, [providers[name as ExternalProvider], provider]] as const
    }),
    ...Object.entries(ownProviders).map(([name, settings]) => [name, [settings, oidcProvider(settings)]] as const),
  ])
  const enabled = [...known].filter(([name, [settings]]) => settings.enabled && !lackingAtAll(name, settings))
  const configured = new Map<string, ConfiguredProvider>()
  if (enabled.length > 0) {
    const { createConfigure } = await import('../oauth/configure-provider.ts')
    const configure = createConfigure(external.iosBundleId, withinMs)
    for (const [name, [settings, provider]] of enabled) configured.set(name, configure(name, settings, provider))
  }

  /** The client's types write providers beyond the built-in ones as `custom:<name>`. */
  const nameIn = (typed: string) => {
    const name = typed.toLowerCase()
    const own = name.startsWith(CUSTOM) ? name.slice(CUSTOM.length) : ''
    return Object.hasOwn(ownProviders, own) ? own : name
  }

  return {
    /** Finds a provider, the operator's own also as `custom:<name>`; throws validation_failed if disabled. */
    async find(typed: string): Promise<ConfiguredProvider> {
      const name = nameIn(typed)
      if (custom.isEnabled && name.startsWith(CUSTOM)) {
        const found = await custom.find(name)
        if (found?.settings.enabled) return found
        throw unsupported(found ? 'provider is not enabled' : `Provider ${typed.slice(0, 50)} could not be found`)
      }
      const [settings] = known.get(name) ?? []
      if (!settings) throw unsupported(`Provider ${typed.slice(0, 50)} could not be found`)
      const found = configured.get(name)
      const what = lacking(name, settings)
      if (!found || what) throw unsupported(what ?? 'provider is not enabled')
      return found
    },
    /** Address of the callback; '' for an unknown provider. */
    redirectUriOf(typed: string): string {
      const name = nameIn(typed)
      return name.startsWith(CUSTOM) ? custom.redirectUri : (known.get(name)?.[0].redirectUri ?? '')
    },
    /** Finds by name, or issuer and client. Throws for a token no key could make valid, before asking a provider. */
    async findByIdToken(token: { name: string; issuer: string; clientId: string; idToken: string; now: Date }) {
      const { name: typed, issuer, clientId, idToken, now } = token
      const name = nameIn(typed)
      if (name.startsWith(CUSTOM)) return custom.isEnabled ? requireOpenId(name, await custom.find(name)) : undefined
      if (name !== '' && !name.includes(':')) {
        if (known.has(name) && !configured.has(name)) throw disabled(name)
        return configured.get(name)
      }
      readUnverified(idToken, now)
      for (const provider of configured.values()) {
        const isMeant = typed !== '' || provider.settings.clientIds.includes(clientId)
        if (isMeant && (await provider.idTokens?.isIssuer(typed || issuer).catch(() => false))) return provider
      }
      return undefined
    },
    /** Providers that browsers can be sent to: the specification's, and any other if enabled. */
    enabled(): Record<string, boolean> {
      const usable = Object.entries({ ...providers, ...ownProviders } as Record<string, Settings>).map(
        ([name, settings]) => [name, !lacking(name, settings)] as const,
      )
      return Object.fromEntries(usable.filter(([name, isUsable]) => isUsable || isSpecified(name)))
    },
  }
}

function requireOpenId(name: string, found: ConfiguredProvider | undefined): ConfiguredProvider {
  const shown = `"${name.slice(0, 100)}"`
  if (!found) throw apiError('validation_failed', { message: `Custom provider ${shown} not found` })
  if (!found.settings.enabled) {
    throw apiError('provider_disabled', { message: `Provider ${shown} is not enabled` })
  }
  if (found.idTokens) return found
  throw apiError('validation_failed', { message: `Provider ${shown} is not an OIDC provider` })
}

const isSpecified = (name: string) => SPECIFIED_PROVIDERS.some((specified) => specified === name)

/** Names the issuer, as the reference does; providers without a fixed one go by their name. */
function disabled(name: string) {
  const provider = PROVIDERS[name as ExternalProvider]
  const endpoints = provider?.protocol === 'oauth2' ? provider.endpoints(undefined) : undefined
  const issuer = endpoints && ('discover' in endpoints ? endpoints.discover : endpoints.issuer)
  return apiError('provider_disabled', {
    message: issuer ? `Provider (issuer "${issuer}") is not enabled` : `Provider "${name}" is not enabled`,
  })
}

type Settings = ExternalProviderSettings & { issuer?: string }

/** Reason why no id_token can be verified; native applications need nothing else of a provider. */
function lackingAtAll(name: string, { clientIds, url, issuer }: Settings): string | undefined {
  if (clientIds.length === 0) return 'missing OAuth client ID'
  if (name === 'keycloak' && url === undefined) return 'unable to find URL for the Keycloak provider'
  return issuer === '' ? 'missing issuer' : undefined
}

/** Reason why no browser can be sent to the provider. */
function lacking(name: string, settings: Settings): string | undefined {
  if (!settings.enabled) return 'provider is not enabled'
  const what = lackingAtAll(name, settings)
  if (what) return what
  if (settings.secret === '') return 'missing OAuth secret'
  return settings.redirectUri === '' ? 'missing redirect URI' : undefined
}

const unsupported = (why: string) => apiError('validation_failed', { message: `Unsupported provider: ${why}` })
