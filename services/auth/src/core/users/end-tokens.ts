import type { Transaction } from 'kysely'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { deleteAuthCodes } from '../one-time-tokens/auth-codes.store.ts'
import { deleteOneTimeTokens } from '../one-time-tokens/one-time-tokens.store.ts'
import { cancelAddressChanges } from './addresses.store.ts'

/** Purposes of tokens that confirm a change of address, by the type in POST /resend and /verify. */
export const CHANGE_PURPOSES = {
  email_change: ['email_change_new', 'email_change_current'],
  phone_change: ['phone_change'],
} as const satisfies Record<string, readonly TokenPurpose[]>

type TokenScope = 'all' | 'changes'

/** Ends an ejected intruder's ways back: address changes, PKCE codes and, unless `changes`, other links and codes. */
export async function endTokens(trx: Transaction<DB>, userId: string, scope: TokenScope, now: Date): Promise<void> {
  await deleteOneTimeTokens(trx, userId, scope === 'all' ? undefined : Object.values(CHANGE_PURPOSES).flat())
  await deleteAuthCodes(trx, userId)
  await cancelAddressChanges(trx, userId, now)
}
