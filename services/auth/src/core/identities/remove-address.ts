// Taking an address off an account, by its user or an admin. It goes with its identity and the sessions that a link or
// code began. As with every way in that is removed, all links, codes, pending changes and the claim of the account end.
// Without an address only the channel's pending change is cancelled. Tests: flows/account/remove-address.test.ts.
import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { deleteOneTimeTokens } from '../one-time-tokens/one-time-tokens.store.ts'
import { endSessionsOfIdentity } from '../sessions/end-sessions.store.ts'
import type { Address } from '../users/address.ts'
import { changeUser, noRequest } from '../users/change-user.store.ts'
import { CHANGE_PURPOSES, endTokens } from '../users/end-tokens.ts'
import { dropAddress } from '../users/registrants.store.ts'
import type { LockedAccount } from '../users/users.store.ts'
import { hasWayInBesides, type WaysInDeps } from './ways-in.ts'

export type Channel = Address['channel']

/** The channels of those to remove in which the account has an address; elsewhere at most a request is cancelled. */
export const heldAmong = (user: Pick<LockedAccount, Channel>, channels: readonly Channel[]): Channel[] =>
  channels.filter((channel) => user[channel] !== null)

/** Trait of the audit entry: the channels whose address is removed. */
export function removalTraits(user: Pick<LockedAccount, Channel>, channels: readonly Channel[]) {
  const removed = heldAmong(user, channels)
  return removed.length > 0 ? { traits: { removed } } : {}
}

/**
 * Throws single_identity_not_deletable where no way in would be left (ways-in.ts). `added` are addresses that the same
 * request gives the account.
 */
export async function requireOtherWayIn(
  deps: WaysInDeps,
  trx: Transaction<DB>,
  user: LockedAccount,
  removed: readonly Channel[],
  added: readonly Channel[] = [],
): Promise<void> {
  if (heldAmong(user, removed).length === 0 || added.length > 0) return
  if (await hasWayInBesides(deps, trx, user, { channels: removed })) return
  throw apiError('single_identity_not_deletable', {
    message: 'The last address of a user without an account at a provider cannot be removed',
  })
}

/** Removes the addresses of these channels, or cancels their pending changes; the session `exceptId` stays. */
export async function removeAddresses(
  trx: Transaction<DB>,
  user: LockedAccount,
  channels: readonly Channel[],
  { exceptId, now }: { exceptId: string; now: Date },
): Promise<void> {
  for (const channel of channels) {
    const value = user[channel]
    if (value === null) {
      await changeUser(trx, user.id, noRequest(channel), now)
      await deleteOneTimeTokens(trx, user.id, CHANGE_PURPOSES[`${channel}_change`])
      continue
    }
    await changeUser(trx, user.id, { claim: null }, now)
    await dropAddress(trx, user.id, { channel, value }, now)
    await endSessionsOfIdentity(trx, { userId: user.id, identity: { id: user.id, provider: channel }, exceptId })
  }
  if (heldAmong(user, channels).length > 0) await endTokens(trx, user.id, 'all', now)
}
