import { randomInt } from 'node:crypto'
import { jsonb } from '@services/common/database/pool'
import type { Transaction } from 'kysely'
import type { DB, Scope, TokenLimits } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { type Actor, recordAct } from '../audit/audit.ts'
import { answerOnce } from '../idempotency/answer-once.ts'
import type { KeyedRequest } from '../idempotency/idempotency.store.ts'
import { endSessionsOf, endSessionsOfBootstrap, endSessionsOfExpired } from './browser-sessions.store.ts'
import { ALL_SCOPES } from './scopes.ts'
import { hashToken, makeToken, prefixOf } from './token-format.ts'
import {
  type ApiToken,
  insertToken,
  lockToken,
  putBootstrapToken,
  revokeToken,
  type TokenChanges,
  updateToken,
} from './tokens.store.ts'

type TokenDeps = Pick<Deps, 'db' | 'newId' | 'now'>

type Named = { name: string; scopes: Scope[]; limits?: TokenLimits; expiresAt?: Date | null }

/** Creates a token for an admin or a command, and records it. */
export const createTokenAs = (deps: TokenDeps, by: Actor, input: Named): Promise<ApiToken & { token: string }> =>
  deps.db.transaction().execute((trx) => createRecorded(deps, trx, by, input))

/** Creates a token once for a key. A repetition gets undefined: the secret is stored nowhere. */
export const createTokenOnce = (
  deps: TokenDeps,
  by: Actor,
  input: Named,
  keyed: KeyedRequest | undefined,
): Promise<string | undefined> =>
  deps.db.transaction().execute(async (trx) => {
    let secret: string | undefined
    await answerOnce(trx, keyed, deps.now(), async () => {
      const { id, token } = await createRecorded(deps, trx, by, input)
      secret = token
      return { id }
    })
    return secret
  })

async function createRecorded(deps: TokenDeps, trx: Transaction<DB>, by: Actor, input: Named) {
  const created = await createToken({ ...deps, db: trx }, input)
  const { id: target, name, scopes, limits, expires_at } = created
  const details = { name, scopes, limits, expires_at }
  await recordAct(deps, trx, by, { action: 'token_created', target, details })
  return created
}

/**
 * Changes a token and records it. Undefined for one that is unknown or revoked, or that `isExpected` refuses, which
 * sees the locked row.
 */
export const changeTokenAs = (
  deps: TokenDeps,
  by: Actor,
  id: string,
  changes: TokenChanges,
  isExpected: (current: ApiToken) => boolean = () => true,
): Promise<ApiToken | undefined> =>
  deps.db.transaction().execute(async (trx) => {
    await endSessionsOfExpired(trx, id, deps.now())
    const current = await lockToken(trx, id)
    if (!current || !isExpected(current)) return undefined
    const changed = await updateToken(trx, id, changes)
    const { expiresAt: expires_at, ...others } = changes
    const details = { ...others, expires_at }
    if (changed) await recordAct(deps, trx, by, { action: 'token_changed', target: id, details })
    return changed
  })

/**
 * Revokes a token, ends the sessions of browsers that stand for it, and records it. Undefined for a token that is
 * unknown or was revoked before.
 */
export const revokeTokenAs = (
  deps: TokenDeps,
  by: Actor,
  id: string,
): Promise<(ApiToken & { sessions_ended: number }) | undefined> =>
  deps.db.transaction().execute(async (trx) => {
    const revoked = await revokeToken(trx, id, deps.now())
    if (!revoked) return undefined
    const sessions_ended = await endSessionsOf(trx, id)
    await recordAct(deps, trx, by, {
      ...{ action: 'token_revoked', target: id },
      details: { name: revoked.name, sessions_ended },
    })
    return { ...revoked, sessions_ended }
  })

/** Ends the sessions of browsers of a token, which stays good, and records it. Returns how many there were. */
export const endSessionsAs = (deps: TokenDeps, by: Actor, id: string): Promise<number> =>
  deps.db.transaction().execute(async (trx) => {
    const sessions_ended = await endSessionsOf(trx, id)
    await recordAct(deps, trx, by, { action: 'sessions_ended', target: id, details: { sessions_ended } })
    return sessions_ended
  })

/** Creates a token; `token` is in this answer and nowhere else. */
export async function createToken(deps: TokenDeps, input: Named): Promise<ApiToken & { token: string }> {
  const { name, scopes, limits = {}, expiresAt: expires_at } = input
  const token = makeToken(randomInt)
  const made = { id: deps.newId(), prefix: prefixOf(token), hash: hashToken(token), created_at: deps.now() }
  const row = await insertToken(deps.db, { ...made, name, scopes, limits: jsonb(limits), expires_at })
  return { ...row, token }
}

/** Stores the token of BOOTSTRAP_TOKEN and expires the one of an earlier start. Stores no part of the token itself. */
export async function ensureBootstrapToken(deps: TokenDeps, token: string | undefined): Promise<void> {
  const row = token && { id: deps.newId(), prefix: 'bootstrap', hash: hashToken(token), scopes: [...ALL_SCOPES] }
  await endSessionsOfBootstrap(deps.db, row ? row.hash : undefined)
  await putBootstrapToken(deps.db, row || undefined, deps.now())
}
