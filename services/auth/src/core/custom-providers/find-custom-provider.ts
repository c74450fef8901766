// Providers that admins add while the service runs (contract/auth-custom-providers.md): their rows and secrets. Their
// protocols are in adapters/oauth, their description in adapters/described-providers, the API in flows/admin.
// The rule: every use reads the row, so all replicas know a change at once; only what was made of a version is kept.
import { withTimeout } from '@services/common/concurrency/with-timeout'
import type { Egress } from '@services/common/egress/egress'
import type { Kysely } from 'kysely'
import { customProvider } from '../../adapters/described-providers/custom-provider.ts'
import type { ConfiguredProvider } from '../../adapters/oauth/configure-provider.ts'
import { guardedFetch, SIGN_IN_WITHIN_MS } from '../../adapters/oauth/upstream.ts'
import type { CustomProviders } from '../../adapters/providers/index.ts'
import type { Config } from '../../config.ts'
import type { CustomProvider, DB, DiscoveryDocument } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { Encryption } from '../keys/encryption.ts'
import { SEALED } from '../keys/sealed-columns.ts'
import { findCustomProvider, listShownProviders, renewDescription } from './custom-providers.store.ts'

export interface CustomProviderDeps {
  config: Pick<Config, 'customProviders' | 'ownProviders'>
  db: Kysely<DB>
  egress: Egress
  encryption: Encryption
  now: () => Date
  log: { warn(fields: object, message: string): void; error(fields: object, message: string): void }
}

/** Providers in use at a time; the least recently used one is made anew. */
const MAX_KEPT = 200

/** Age of the list in GET /settings, which is public and often read. */
const LIST_KEPT_MS = 2_000
const LIST_WITHIN_MS = 1_000

export const isIdentifier = (text: string): boolean => /^custom:[a-z0-9:-]{0,42}[a-z0-9]$/.test(text)

export interface ShownProvider {
  identifier: string
  name: string
}

export function createCustomProviders(
  deps: CustomProviderDeps,
): CustomProviders & { shown(): Promise<ShownProvider[]> } {
  const { enabled, redirectUri } = deps.config.customProviders
  const kept = new Map<string, { version: string; provider: ConfiguredProvider }>()
  let list: { providers: ShownProvider[]; at: number } = { providers: [], at: Number.NEGATIVE_INFINITY }
  let listing: Promise<boolean> | undefined
  const shadowed = new Set<string>()
  /** Whether the last read was late or failed; requests do not wait for the next one. */
  let isLate = false

  const keep = async (row: CustomProvider): Promise<ConfiguredProvider> => {
    const version = `${row.id} ${row.version}`
    const known = kept.get(row.identifier)
    const provider = known?.version === version ? known.provider : await configure(deps, row)
    kept.delete(row.identifier)
    kept.set(row.identifier, { version, provider })
    const [oldest] = kept.keys()
    if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest)
    return provider
  }
  /** A provider of the settings answers to `custom:<name>`, too, and wins. */
  const isReached = ({ identifier }: ShownProvider) => {
    if (!Object.hasOwn(deps.config.ownProviders, identifier.slice('custom:'.length))) return true
    if (!shadowed.has(identifier)) deps.log.warn({ provider: identifier }, 'provider shadowed by one of the settings')
    shadowed.add(identifier)
    return false
  }
  const readList = async () => {
    const at = deps.now().getTime()
    const providers = await listShownProviders(deps.db).catch(() => undefined)
    if (providers) list = { at, providers: providers.filter(isReached) }
    listing = undefined
    return providers !== undefined
  }
  const refresh = async () => {
    listing ??= readList()
    isLate = (await withTimeout(LIST_WITHIN_MS, listing)) !== true
  }

  return {
    isEnabled: enabled,
    redirectUri,
    async find(identifier) {
      const row = enabled && isIdentifier(identifier) ? await findCustomProvider(deps.db, identifier) : undefined
      if (row) return keep(row)
      kept.delete(identifier)
      return undefined
    },
    /**
     * Never fails: without the database it is the last known list. Only the first request of an outage waits, and only
     * for a moment; after it the list is read behind the answers.
     */
    async shown() {
      if (!enabled) return []
      if (deps.now().getTime() - list.at < LIST_KEPT_MS) return list.providers
      const refreshed = refresh()
      if (!isLate) await refreshed
      return list.providers
    },
  }
}

async function configure(deps: CustomProviderDeps, row: CustomProvider): Promise<ConfiguredProvider> {
  const { config, egress, now, log } = deps
  const { redirectUri, discoveryKeptSeconds } = config.customProviders
  const { createConfigure } = await import('../../adapters/oauth/configure-provider.ts')
  const configureOne = createConfigure(undefined, SIGN_IN_WITHIN_MS, guardedFetch(egress))
  const settings = {
    enabled: row.enabled,
    clientIds: [row.client_id, ...row.acceptable_client_ids],
    secret: '',
    redirectUri,
    url: undefined,
    emailOptional: row.email_optional,
    skipNonceCheck: row.skip_nonce_check,
    linking: row.linking,
  }
  const keep = (found: DiscoveryDocument) =>
    renewDescription(deps.db, row, found, now()).catch((err: unknown) => {
      log.warn({ err, provider: row.identifier }, 'renewed description of a provider could not be stored')
    })
  const provider = customProvider({ egress, now, keptMs: discoveryKeptSeconds * 1000, log, keep }, row)
  return { ...configureOne(row.identifier, settings, provider, () => openSecret(deps, row)), label: row.name }
}

/** '' for a public client. A failure is the operator's, so its answer is the general one. */
function openSecret({ encryption, log }: CustomProviderDeps, row: CustomProvider): string {
  if (row.sealed_secret === null) return ''
  try {
    return encryption.open(SEALED.clientSecret, row)
  } catch (err) {
    log.error({ err, provider: row.identifier }, 'client secret of a provider cannot be decrypted')
    throw apiError('unexpected_failure', { cause: err })
  }
}
