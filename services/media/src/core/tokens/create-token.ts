import { randomInt } from 'node:crypto'
import { jsonb } from '@services/common/database'
import type { Kysely } from 'kysely'
import type { DB, Scope, TokenLimits } from '../../db/tables.ts'
import { hashToken, makeToken, prefixOf } from './api-token.ts'
import { type ApiToken, insertToken, putBootstrapToken } from './tokens.store.ts'

/** Scopes of a token that names none. */
export const USUAL_SCOPES: Scope[] = ['write', 'read', 'delete']

/** Creates a token; `token` is in this answer and nowhere else. */
export async function createToken(
  deps: { db: Kysely<DB>; newId: () => string; now: () => Date },
  input: { name: string; scopes: Scope[]; limits?: TokenLimits | undefined; expiresAt?: Date | null },
): Promise<ApiToken & { token: string }> {
  const token = makeToken(randomInt)
  const row = await insertToken(deps.db, {
    id: deps.newId(),
    name: input.name,
    prefix: prefixOf(token),
    hash: hashToken(token),
    scopes: input.scopes,
    limits: jsonb(input.limits ?? {}),
    created_at: deps.now(),
    expires_at: input.expiresAt,
  })
  return { ...row, token }
}

export const ALL_SCOPES = ['write', 'read', 'delete', 'admin'] as const satisfies readonly Scope[]

/** Stores the token of BOOTSTRAP_TOKEN and expires the one of an earlier start. Stores no part of the token itself. */
export async function ensureBootstrapToken(
  deps: { db: Kysely<DB>; newId: () => string; now: () => Date },
  token: string | undefined,
): Promise<void> {
  const now = deps.now()
  const row = token && { id: deps.newId(), prefix: 'bootstrap', hash: hashToken(token), scopes: [...ALL_SCOPES], now }
  await putBootstrapToken(deps.db, row || undefined, now)
}
