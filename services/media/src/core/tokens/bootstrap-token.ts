import type { Kysely } from 'kysely'
import type { DB, Scope } from '../../db/tables.ts'
import { hashToken } from './api-token.ts'
import { putBootstrapToken } from './tokens.store.ts'

export const ALL_SCOPES = ['write', 'read', 'delete', 'admin'] as const satisfies readonly Scope[]

/**
 * Stores the token of BOOTSTRAP_TOKEN and expires the one of an earlier start. Its prefix is not stored: it may be
 * short.
 */
export async function ensureBootstrapToken(
  deps: { db: Kysely<DB>; newId: () => string; now: () => Date },
  token: string | undefined,
): Promise<void> {
  const now = deps.now()
  const row = token && { id: deps.newId(), prefix: 'bootstrap', hash: hashToken(token), scopes: [...ALL_SCOPES], now }
  await putBootstrapToken(deps.db, row || undefined, now)
}
