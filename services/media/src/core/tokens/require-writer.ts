// A request may take an hour, and its token may be revoked meanwhile. So the acceptance of a clip reads the token
// again, in its transaction. Tests: test/revoked-while-adding.test.ts.
import type { Kysely, Transaction } from 'kysely'
import type { DB, Scope, TokenLimits } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { allows } from './scopes.ts'
import { findTokenRights, lockTokenRights } from './tokens.store.ts'

/** Limits of a token that may still add clips. Throws token_missing_or_invalid and insufficient_scope. */
export const requireWriter = async (db: Kysely<DB>, tokenId: string, now: Date): Promise<TokenLimits> =>
  limitsOf(await findTokenRights(db, tokenId, now))

/**
 * Returns and throws the same, and holds the token as it is until the transaction ends. Call it after all that waits,
 * because a revocation, each recorded use of the token and the acceptance of its other clips wait for it.
 */
export const holdWriter = async (trx: Transaction<DB>, tokenId: string, now: Date): Promise<TokenLimits> =>
  limitsOf(await lockTokenRights(trx, tokenId, now))

function limitsOf(token: { scopes: readonly Scope[]; limits: TokenLimits } | undefined): TokenLimits {
  if (!token) throw apiError('token_missing_or_invalid')
  if (!allows(token, 'write')) throw apiError('insufficient_scope', { details: { scope: 'write' } })
  return token.limits
}
