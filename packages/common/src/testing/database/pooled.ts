// The pooler of a test run, if TEST_POOLER asks for one: `pnpm test:pooler` runs all tests of `test` behind it.
import { inject } from 'vitest'
import type { DatabaseAddress } from '../../database/pooler.ts'

/** Address of a database of the run, behind its pooler if there is one. Another server's or user's stays as it is. */
export function pooledAddress(databaseUrl: string): DatabaseAddress {
  const poolerUrl = inject('poolerUrl')
  const serverUrl = inject('databaseServerUrl')
  const isOf = (server: string) => {
    const [{ port, username }, of] = [new URL(databaseUrl), new URL(server)]
    return port === of.port && username === of.username
  }
  if (!poolerUrl || !(isOf(serverUrl) || isOf(poolerUrl))) return { url: databaseUrl }
  const { pathname } = new URL(databaseUrl)
  const on = (server: string) => Object.assign(new URL(server), { pathname }).href
  return { url: on(poolerUrl), directUrl: on(serverUrl), pooler: 'transaction' }
}

/**
 * Settings of a service whose DATABASE_URL is one of the run's databases, behind its pooler unless they set
 * DATABASE_POOLER.
 */
export function pooledSettings<Settings extends Record<string, string | undefined>>(
  prefix: 'AUTH_' | 'MEDIA_',
  settings: Settings,
): Settings {
  if (settings[`${prefix}DATABASE_POOLER`]) return settings
  const { url, directUrl, pooler } = pooledAddress(settings[`${prefix}DATABASE_URL`] ?? '')
  if (!pooler) return settings
  const address = { DATABASE_URL: url, DATABASE_DIRECT_URL: directUrl, DATABASE_POOLER: pooler }
  return { ...settings, ...Object.fromEntries(Object.entries(address).map(([name, value]) => [prefix + name, value])) }
}
