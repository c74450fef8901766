import { randomInt } from 'node:crypto'
import { jsonb } from '@services/common/database/pool'
import type { Scope, TokenLimits } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { ALL_SCOPES } from './scopes.ts'
import { hashToken, makeToken, prefixOf } from './token-format.ts'
import { type ApiToken, insertToken, putBootstrapToken } from './tokens.store.ts'

type TokenDeps = Pick<Deps, 'db' | 'newId' | 'now'>

/** Creates a token; `token` is in this answer and nowhere else. */
export async function createToken(
  deps: TokenDeps,
  input: { name: string; scopes: Scope[]; limits?: TokenLimits; expiresAt?: Date | null },
): Promise<ApiToken & { token: string }> {
  const { name, scopes, limits = {}, expiresAt: expires_at } = input
  const token = makeToken(randomInt)
  const made = { id: deps.newId(), prefix: prefixOf(token), hash: hashToken(token), created_at: deps.now() }
  const row = await insertToken(deps.db, { ...made, name, scopes, limits: jsonb(limits), expires_at })
  return { ...row, token }
}

/** Stores the token of BOOTSTRAP_TOKEN and expires the one of an earlier start. Stores no part of the token itself. */
export async function ensureBootstrapToken(deps: TokenDeps, token: string | undefined): Promise<void> {
  const row = token && { id: deps.newId(), prefix: 'bootstrap', hash: hashToken(token), scopes: [...ALL_SCOPES] }
  await putBootstrapToken(deps.db, row || undefined, deps.now())
}
