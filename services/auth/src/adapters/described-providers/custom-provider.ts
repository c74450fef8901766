import type { Egress } from '@services/common/egress/egress'
import type { CustomProvider, DiscoveryDocument } from '../../db/tables.ts'
import type { OAuth2Provider } from '../oauth/provider.ts'
import { describedProvider } from './described-provider.ts'
import { discoveryAddress, endpointsOf, readDiscovery } from './discovery.ts'

export interface CustomProviderDeps {
  egress: Egress
  now: () => Date
  /** Lifetime of a discovered description. */
  keptMs: number
  log: { warn(fields: object, message: string): void }
  /** Stores a renewed description, so that other processes begin with it. */
  keep(found: DiscoveryDocument): Promise<void>
}

/** A provider of the admin API (contract/auth-custom-providers.md). */
export function customProvider(deps: CustomProviderDeps, row: CustomProvider): OAuth2Provider {
  const isOpenId = row.provider_type === 'oidc'
  const { identifier } = row
  return describedProvider({
    endpoints: isOpenId ? discovered(deps, row) : fixedEndpoints(row),
    scopes: row.scopes,
    replacesScopes: true,
    pkce: row.pkce_enabled,
    clientAuthentication: row.sealed_secret === null ? 'none' : 'either',
    furtherAudiences: row.acceptable_client_ids,
    binding: JSON.stringify([row.id, row.client_id, row.issuer]),
    parameters: row.authorization_params,
    ...(isOpenId && { idToken: 'usually' }),
    reportTooLarge: (claims) => deps.log.warn({ provider: identifier, claims }, 'claims left out: too large'),
    mapping: {
      issuer: issuerOf(row),
      attributes: row.attribute_mapping,
      customClaims: row.custom_claims_allowlist,
      keepsStandard: true,
      reportMisfit: (member) =>
        deps.log.warn({ provider: identifier, member }, 'attribute mapping ignored: the value has the wrong type'),
    },
  })
}

/** `iss` in the accounts of the provider. */
export const issuerOf = ({ issuer, userinfo_url: profile }: Pick<CustomProvider, 'issuer' | 'userinfo_url'>): string =>
  issuer ?? profile ?? ''

const fixedEndpoints = (row: CustomProvider) => ({
  authorize: row.authorization_url ?? '',
  token: row.token_url ?? '',
  api: row.userinfo_url ?? '',
})

/** The stored description serves until it is too old, and where a new one cannot be had. */
function discovered({ egress, now, keptMs, log, keep }: CustomProviderDeps, row: CustomProvider) {
  const { issuer, discovery_url: url, discovery_document: saved, discovered_at: savedAt } = row
  const address = url ?? discoveryAddress(issuer ?? '')
  return {
    async discover(withinMs: number) {
      try {
        const found = await readDiscovery(egress, { address, issuer: issuer ?? '', withinMs })
        await keep(found)
        return endpointsOf(found)
      } catch (err) {
        log.warn({ err, provider: row.identifier }, 'description of a provider could not be fetched')
        throw err
      }
    },
    keptMs,
    now: () => now().getTime(),
    ...(saved && savedAt && { known: { endpoints: endpointsOf(saved), at: savedAt.getTime() } }),
  }
}
