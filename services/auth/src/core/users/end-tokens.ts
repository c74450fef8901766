import type { Transaction } from 'kysely'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { deleteAuthCodes } from '../one-time-tokens/auth-codes.store.ts'
import { deleteOneTimeTokens } from '../one-time-tokens/one-time-tokens.store.ts'
import { forgetWishes } from './addresses.store.ts'

/** Tokens that agree to a change of address, by what POST /resend and /verify call it. */
export const CHANGE_PURPOSES = {
  email_change: ['email_change_new', 'email_change_current'],
  phone_change: ['phone_change'],
} as const satisfies Record<string, readonly TokenPurpose[]>

type TokenScope = 'all' | 'changes'

/**
 * Ends links and codes of a user, and forgets the changes of address they asked for: whoever is put out must not come back by
 * an address of their own that still waits for its code. With `changes` links and codes to addresses the user has stay good;
 * what a followed PKCE link is exchanged through ends with either.
 */
export async function endTokens(trx: Transaction<DB>, userId: string, scope: TokenScope, now: Date): Promise<void> {
  await deleteOneTimeTokens(trx, userId, scope === 'all' ? undefined : Object.values(CHANGE_PURPOSES).flat())
  await deleteAuthCodes(trx, userId)
  await forgetWishes(trx, userId, now)
}
