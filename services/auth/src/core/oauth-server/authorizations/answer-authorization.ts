// A user's answer to the request of an application, for the API and the hosted page alike. The rule: the first user who
// sees a request owns it, and one live session of the user's own approves it. Requests: read-request.ts.
import type { Kysely, Transaction } from 'kysely'
import type { Config } from '../../../config.ts'
import type { DB, OAuthAuthorization, OAuthClient } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'
import type { OAuthErrorCode } from '../../../oauth-errors.ts'
import { type AuditDeps, type AuditLog, audit } from '../../audit/audit.ts'
import { type LockedSession, type UserSession, withLockedCaller } from '../../sessions/caller.ts'
import type { User } from '../../users/users.store.ts'
import { findOAuthClient } from '../oauth-clients.store.ts'
import type { ScopeDeps } from '../own-scopes.ts'
import { type AddressDeps, answerAddress } from './answer-address.ts'
import { CODE_SECONDS, codeOf, hashAuthorizationCode } from './authorization-code.ts'
import {
  addConsent,
  approveAuthorization,
  claimAuthorization,
  denyAuthorization,
  findConsent,
  findPending,
  lockAuthorization,
} from './authorizations.store.ts'
import { asksFor, provenAt, requireDemandedProof, requireOwnFactor } from './demanded-proof.ts'

export interface AnswerDeps extends AddressDeps, AuditDeps {
  db: Kysely<DB>
  config: AddressDeps['config'] & AuditDeps['config'] & ScopeDeps['config'] & Pick<Config, 'mfa'>
}

export type Action = 'approve' | 'deny'

/** A request that waits for the user, or where the browser goes because nothing has to be asked. */
export type Viewed = { request: OAuthAuthorization; client: OAuthClient } | { redirectUrl: string }

/**
 * Shows a request to its first user. One that an earlier consent covers is approved at once, and answers the same
 * address until its code is used or expires: pages load twice. Throws oauth_authorization_not_found.
 */
export async function viewAuthorization(
  deps: AnswerDeps,
  log: AuditLog,
  caller: UserSession,
  id: string,
): Promise<Viewed> {
  const { db, now } = deps
  const request = (await claimAuthorization(db, { id, userId: caller.user.id, now: now() })) ?? notFound()
  if (request.status !== 'pending') return { redirectUrl: addressAgain(deps, request) }
  const client = (await findOAuthClient(db, request.client_id)) ?? notFound()
  if (!(await isCovered(db, request, client)) || !isProven(deps, request, caller)) return { request, client }
  return withLockedCaller(deps, caller, async (trx, { user, session }) => {
    const locked = await lockOwn(deps, trx, user, session, id)
    if (locked.status !== 'pending') return { redirectUrl: addressAgain(deps, locked) }
    if (!(await isCovered(trx, locked, client))) return { request: locked, client }
    return { redirectUrl: await approve(deps, trx, log, { user, session, request: locked }) }
  })
}

/** Approves or denies a request that this user has seen; returns where the browser goes. */
export function answerAuthorization(
  deps: AnswerDeps,
  log: AuditLog,
  caller: UserSession,
  id: string,
  action: Action,
): Promise<string> {
  return withLockedCaller(deps, caller, async (trx, { user, session }) => {
    const request = await lockOwn(deps, trx, user, session, id)
    if (request.status !== 'pending') {
      throw apiError('validation_failed', { message: 'authorization request is no longer pending' })
    }
    if (action === 'approve') return approve(deps, trx, log, { user, session, request })
    const traits = { client_id: request.client_id, scope: request.scopes.join(' ') }
    await audit(deps, trx, log, { action: 'oauth_authorization_denied', actor: user, traits })
    return refuse(deps, trx, id, 'access_denied')
  })
}

/** Locks a request, and refuses sessions of applications: none of them agrees to another. */
async function lockOwn(
  { now }: Pick<AnswerDeps, 'now'>,
  trx: Transaction<DB>,
  { id: userId }: Pick<User, 'id'>,
  session: LockedSession,
  id: string,
): Promise<OAuthAuthorization> {
  if (session.oauth_client_id !== null) throw apiError('insufficient_scope')
  return (await lockAuthorization(trx, { id, userId, now: now() })) ?? notFound()
}

async function approve(
  deps: AnswerDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  { user, session, request }: { user: User; session: LockedSession; request: OAuthAuthorization },
): Promise<string> {
  const now = deps.now()
  requireOwnFactor(deps, user, session)
  requireDemandedProof(request, session, now)
  const approved = await approveAuthorization(trx, {
    id: request.id,
    sessionId: session.id,
    authenticatedAt: provenAt(session),
    aal: session.aal,
    codeHash: hashAuthorizationCode(codeOf(deps.oauthCodeKey, request.id)),
    expiresAt: codeExpiry(now),
  })
  const { client_id: clientId, scopes, resources } = request
  await addConsent(trx, { userId: user.id, clientId }, { scopes, resources, now })
  const traits = { client_id: clientId, scope: scopes.join(' ') }
  await audit(deps, trx, log, { action: 'oauth_authorization_approved', actor: user, traits })
  return answerAddress(deps, approved)
}

async function refuse(deps: AnswerDeps, trx: Transaction<DB>, id: string, refusal: OAuthErrorCode): Promise<string> {
  const now = deps.now()
  const denied = (await denyAuthorization(trx, { id, refusal, now, expiresAt: codeExpiry(now) })) ?? notFound()
  return answerAddress(deps, denied)
}

const codeExpiry = (now: Date) => new Date(now.getTime() + CODE_SECONDS * 1000)

/** Whether an earlier consent holds all that is asked for, and the application does not want the user asked again. */
async function isCovered(db: Kysely<DB>, request: OAuthAuthorization, client: OAuthClient): Promise<boolean> {
  const { user_id: userId, client_id: clientId, scopes, resources } = request
  if (
    userId === null ||
    !isAssured(client, request) ||
    asksFor(request, 'consent') ||
    asksFor(request, 'select_account')
  )
    return false
  const consent = await findConsent(db, { userId, clientId })
  const isIn = (given: readonly string[], asked: readonly string[]) => asked.every((each) => given.includes(each))
  return consent !== undefined && isIn(consent.scopes, scopes) && isIn(consent.resources, resources)
}

/**
 * Whether only the client itself can use a code. Any program of a device can receive at the loopback port or scheme of
 * a public client. There the user is asked each time (RFC 8252, section 8.6).
 */
const isAssured = ({ client_type: type }: OAuthClient, { redirect_uri: address }: OAuthAuthorization): boolean =>
  type === 'confidential' || /^https:/i.test(address)

function isProven(deps: AnswerDeps, request: OAuthAuthorization, { user, session }: UserSession): boolean {
  try {
    requireOwnFactor(deps, user, session)
    requireDemandedProof(request, session, deps.now())
    return true
  } catch {
    return false
  }
}

/** Returns the address of an approved request again, while its code can be used. */
function addressAgain(deps: AnswerDeps, request: OAuthAuthorization): string {
  const { status, code_expires_at: expiresAt, given_session_id: givenId } = request
  const isUsable = status === 'approved' && givenId === null && expiresAt !== null && expiresAt > deps.now()
  if (isUsable) return answerAddress(deps, request)
  throw apiError('validation_failed', { message: 'authorization request cannot be processed' })
}

function notFound(): never {
  throw apiError('oauth_authorization_not_found')
}

/**
 * Answers a request of `prompt=none` from the session of our pages, if there is one. Returns where the browser goes,
 * and undefined for a request that may show a page. Throws oauth_authorization_not_found.
 */
export async function answerSilently(
  deps: AnswerDeps,
  log: AuditLog,
  caller: UserSession | undefined,
  id: string,
): Promise<string | undefined> {
  const { db, now } = deps
  const request = (await findPending(db, id, now())) ?? (caller === undefined ? notFound() : undefined)
  if (request && !asksFor(request, 'none')) return undefined
  const viewed = caller && (await viewAuthorization(deps, log, caller, id))
  if (viewed && 'redirectUrl' in viewed) return viewed.redirectUrl
  const mayAgree = viewed === undefined || (await isCovered(db, viewed.request, viewed.client))
  return db.transaction().execute((trx) => refuse(deps, trx, id, mayAgree ? 'login_required' : 'consent_required'))
}
