import { randomInt } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { DB, Scope, TokenLimits } from '../../db/tables.ts'
import { hashToken, makeToken, prefixOf } from './api-token.ts'
import { type ApiToken, insertToken } from './tokens.store.ts'

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
    limits: input.limits ?? {},
    expiresAt: input.expiresAt ?? null,
    now: deps.now(),
  })
  return { ...row, token }
}
