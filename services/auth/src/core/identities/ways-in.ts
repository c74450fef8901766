// Ways in: whether an account could sign in once one of them is removed. Only those that the settings accept count, so
// an address whose sign-in is disabled is none. Tests: flows/passkeys/passkeys.test.ts, flows/account/.
import type { Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { listPasskeys } from '../passkeys/passkeys.store.ts'
import type { Address } from '../users/address.ts'
import type { LockedAccount } from '../users/users.store.ts'

export interface WaysInDeps {
  config: Pick<Config, 'signup' | 'passkeys' | 'web3' | 'providers' | 'ownProviders' | 'customProviders'>
}

/** Parts of an account that are about to be removed. */
export interface Removal {
  channels?: readonly Address['channel'][]
  identityId?: string
  passkeyId?: string
}

/**
 * Reports whether the locked user keeps a way in. Ways in are addresses that are confirmed or given by an admin,
 * accounts at providers and wallets, and passkeys. A password alone is none.
 */
export async function hasWayInBesides(
  deps: WaysInDeps,
  trx: Transaction<DB>,
  user: LockedAccount,
  { channels = [], identityId, passkeyId }: Removal,
): Promise<boolean> {
  const keepsAddress = (['email', 'phone'] as const).some(
    (channel) =>
      deps.config.signup[channel] &&
      !channels.includes(channel) &&
      user[channel] !== null &&
      (user[`${channel}_confirmed_at`] !== null || user[`${channel}_vouched`]),
  )
  const keepsIdentity = user.identities.some(({ id, provider }) => id !== identityId && isUsable(deps, provider))
  return keepsAddress || keepsIdentity || hasPasskeyBesides(deps, trx, user, passkeyId)
}

/** Reports whether another passkey signs the user in. */
export const hasPasskeyBesides = async (
  { config }: WaysInDeps,
  trx: Transaction<DB>,
  user: Pick<LockedAccount, 'id'>,
  exceptId?: string,
): Promise<boolean> => config.passkeys.enabled && (await listPasskeys(trx, user.id)).some(({ id }) => id !== exceptId)

function isUsable({ config }: WaysInDeps, provider: string): boolean {
  const { web3, customProviders } = config
  if (provider === 'web3') return web3.ethereum.enabled || web3.solana.enabled
  // Providers that admins add are rows, which an admin may enable again.
  if (provider.startsWith('custom:')) return customProviders.enabled
  const configured: Record<string, { enabled: boolean }> = { ...config.providers, ...config.ownProviders }
  return Object.hasOwn(configured, provider) && configured[provider]?.enabled === true
}
