import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { endSessionsStartedBy } from '../sessions/end-sessions.store.ts'
import type { LockedAccount } from '../users/users.store.ts'
import { deletePasskeyRow, type Passkey } from './passkeys.store.ts'

/** Removes a passkey and ends the sessions that it started, with the user locked; the session `exceptId` stays. */
export async function removePasskey(trx: Transaction<DB>, passkey: Passkey, exceptId?: string): Promise<void> {
  const { id, user_id: userId } = passkey
  await deletePasskeyRow(trx, id)
  await endSessionsStartedBy(trx, { userId, identityId: id, exceptId })
}

/**
 * Throws single_identity_not_deletable where no way in would be left. Ways in are other passkeys, addresses that are
 * confirmed or given by an admin, and accounts at providers. A password alone is none.
 */
export function requireWayInBesides(user: LockedAccount, passkeys: readonly Passkey[]): void {
  const hasAddress = (['email', 'phone'] as const).some(
    (channel) => user[channel] !== null && (user[`${channel}_confirmed_at`] !== null || user[`${channel}_vouched`]),
  )
  const isOwn = (provider: string) => provider === 'email' || provider === 'phone'
  if (passkeys.length > 1 || hasAddress || user.identities.some(({ provider }) => !isOwn(provider))) return
  throw apiError('single_identity_not_deletable', { message: 'The last way to sign in cannot be deleted' })
}
