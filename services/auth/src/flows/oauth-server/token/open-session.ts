// An approved request becomes a session of its application: for codes of browsers and of devices alike.
import type { Kysely, Transaction } from 'kysely'
import { type AuditLog, audit, logAudit } from '../../../core/audit/audit.ts'
import { type Asking, withHooksIn } from '../../../core/hooks/questions.ts'
import { touchClient } from '../../../core/oauth-server/oauth-clients.store.ts'
import { issueClientTokens, type TokenAnswer } from '../../../core/oauth-server/tokens/issue-client-tokens.ts'
import {
  type CodeKind,
  findUserOfCode,
  methodOf,
  type OpenedSession,
} from '../../../core/oauth-server/tokens/open-client-session.store.ts'
import { endSessionAndDevices } from '../../../core/sessions/end-sessions.store.ts'
import { shownSession } from '../../../core/sessions/start-session.ts'
import { isBanned } from '../../../core/users/is-banned.ts'
import { findUserById, lockUser } from '../../../core/users/users.store.ts'
import type { DB } from '../../../db/tables.ts'
import { noteChange, wantsEvent } from '../../../db/watched-users.ts'
import type { Deps } from '../../../deps.ts'
import { countReuseDetected } from '../../../metrics.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { boundKey, type GrantRequest, narrowedResources } from './grant.ts'

export interface ApprovedCode {
  kind: CodeKind
  hash: Buffer
  /** Resources of the request at the token endpoint; none: all granted ones. */
  resources: readonly string[]
  /** Challenge of the presented verifier; null for devices. */
  challenge: string | null
  /** Address that the client names again; null: none. */
  redirectUri: string | null
}

/** Uses up an approved code; undefined if another request did, or if nothing may come of it any more. */
export async function openSession(request: GrantRequest, code: ApprovedCode): Promise<TokenAnswer | undefined> {
  const { deps, log, client, thumbprint } = request
  const answer = await withHooksIn(deps, log, async (asking, trx) => {
    const opened = await open(asking, trx ?? deps.db, request, code)
    if (!opened) return undefined
    const { user, authenticatedAt, nonce, scopes, resources: granted, ...session } = opened
    const body = await issueClientTokens(asking, trx ?? deps.db, {
      ...{ user, session, client, scopes, granted: scopes, thumbprint, method: methodOf(code.kind) },
      resources: narrowedResources(granted, code.resources),
      signIn: { authenticatedAt, nonce },
    })
    return { user, body }
  })
  if (!answer) return undefined
  const traits = { provider_type: 'oauth_server', client_id: client.id }
  logAudit(log, { action: 'login', actor: answer.user, traits })
  await touchClient(deps.db, client, deps.now())
  return answer.body
}

/** Starts the session: by one statement, or where a receiver wants its event, in a transaction. */
async function open(
  deps: Asking<Deps>,
  db: Kysely<DB>,
  request: GrantRequest,
  { kind, hash, ...presented }: ApprovedCode,
): Promise<OpenedSession | undefined> {
  const { userAgent, ip } = request.origin
  const opening = {
    ...{ ...presented, codeHash: hash, clientId: request.client.id, id: deps.newRowId() },
    ...{ userAgent, ip, thumbprint: boundKey(request), provenKey: request.thumbprint },
    auditId: deps.config.auditInDatabase ? deps.newRowId() : null,
  }
  const within = db.isTransaction ? (db as Transaction<DB>) : undefined
  if (!wantsEvent(db, 'session.created')) return deps.openClientSession(kind, opening, within)
  const announced = async (trx: Transaction<DB>) => {
    const userId = await findUserOfCode(trx, kind, hash)
    if (userId === null) return undefined
    await lockUser(trx, userId)
    const opened = await deps.openClientSession(kind, opening, trx)
    if (opened) await noteChange(trx, { userId, newSession: shownSession({ ...opened, userAgent, ip }) })
    return opened
  }
  return within ? announced(within) : db.transaction().execute(announced)
}

/**
 * Finds why a code gave nothing. Where it gave a session before, that ends: one of the two uses was a thief's. The end
 * is committed although the request fails.
 */
export async function refuseUsed(
  { deps, log, client }: GrantRequest,
  code: { user_id: string | null; given_session_id: string | null } | undefined,
) {
  if (!code?.user_id) return unusable()
  const { user_id: userId, given_session_id: sessionId } = code
  if (sessionId !== null) {
    await endGivenSession(deps, log, { userId, sessionId, clientId: client.id })
    return unusable()
  }
  const user = await findUserById(deps.db, userId)
  return user && isBanned(user, deps.now()) ? oauthError('access_denied', { message: 'User is banned' }) : unusable()
}

export const unusable = () => oauthError('invalid_grant', { message: 'The code is unknown, expired or used' })

async function endGivenSession(
  deps: Deps,
  log: AuditLog,
  { userId, sessionId, clientId }: { userId: string; sessionId: string; clientId: string },
): Promise<void> {
  const hasEnded = await deps.db.transaction().execute(async (trx) => {
    await lockUser(trx, userId)
    const actor = await findUserById(trx, userId)
    if (!actor || !(await endSessionAndDevices(trx, deps.config.sessions, userId, sessionId))) return false
    const traits = { session_id: sessionId, client_id: clientId }
    await audit(deps, trx, log, { action: 'token_reuse_detected', actor, traits })
    return true
  })
  if (hasEnded) countReuseDetected()
}
