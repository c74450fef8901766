import type { Kysely } from 'kysely'
import { providerSettingName } from '../../../config/external-providers.ts'
import { settingFaults } from '../../../config/faults.ts'
import type { Config } from '../../../config.ts'
import { listCustomProviders } from '../../../core/custom-providers/custom-providers.store.ts'
import type { DB } from '../../../db/tables.ts'
import { MAX_PER_PAGE } from '../../../http/bodies/paging.ts'

export interface ShownProvidersDeps {
  config: Config
  providers: { enabled(): Record<string, boolean> }
  now: () => Date
}

/** Lists the built-in providers and those of the settings, with the settings that they still lack. */
export function providersOfSettings({ config, providers, now }: ShownProvidersDeps) {
  const usable = providers.enabled()
  const faults = settingFaults(config, now())
  const listed = (origin: 'built_in' | 'settings', [name, settings]: [string, ProviderSettings]) => ({
    ...{ provider: name, origin, enabled: settings.enabled, usable: usable[name] === true },
    redirect_uri: settings.redirectUri || `${config.server.externalUrl}/callback`,
    setting: providerSettingName(name, 'ENABLED'),
    missing: missingVariables(name, settings).map((variable) => providerSettingName(name, variable)),
    problems: faults.filter((fault) => fault.startsWith(providerSettingName(name, ''))),
  })
  return [
    ...Object.entries(config.providers).map((entry) => listed('built_in', entry)),
    ...Object.entries(config.ownProviders).map((entry) => listed('settings', entry)),
  ]
}

/** Lists the providers of the API, newest first. */
export async function providersOfApi(db: Kysely<DB>, { customProviders }: Pick<Config, 'customProviders'>) {
  const { rows } = await listCustomProviders(db, undefined, { limit: MAX_PER_PAGE, offset: 0 })
  return rows.map(({ identifier, name, enabled }) => ({
    ...{
      provider: identifier,
      name,
      origin: 'admin_api' as const,
      enabled,
      usable: enabled && customProviders.enabled,
    },
    ...{ redirect_uri: customProviders.redirectUri, missing: [], problems: [] },
  }))
}

type ProviderSettings = Config['providers']['google'] & { issuer?: string }

function missingVariables(name: string, { clientIds, secret, redirectUri, url, issuer }: ProviderSettings): string[] {
  return [
    ...(clientIds.length === 0 ? ['CLIENT_ID'] : []),
    ...(secret === '' ? ['SECRET'] : []),
    ...(redirectUri === '' ? ['REDIRECT_URI'] : []),
    // The issuer of an operator's own provider goes by the same name.
    ...((name === 'keycloak' && url === undefined) || issuer === '' ? ['URL'] : []),
  ]
}
