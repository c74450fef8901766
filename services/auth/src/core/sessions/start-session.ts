// Sessions: how they start, refresh, gain a second factor and end. A session is one row, live until deleted or past a
// limit (session-limits.ts), and no token is stored. Tests: ../../flows/token, account and mfa.
import { afterCommit } from '@services/common/database/after-commit'
import type { Kysely, Transaction } from 'kysely'
import type { Aal, AmrEntry, DB } from '../../db/tables.ts'
import { announceEvents, isFollowed, noteChange, wantsEvent } from '../../db/watched-users.ts'
import { apiError } from '../../errors.ts'
import { TRUSTED_DEVICE } from '../amr/second-methods.ts'
import { type AuditDeps, type AuditLog, audit, type Origin, type PendingAudit } from '../audit/audit.ts'
import type { Asking } from '../hooks/questions.ts'
import type { TrustedDevice } from '../trusted-devices/trusted-devices.store.ts'
import { type DeviceDeps, type PresentedDevice, provenFactorIds, useDevice } from '../trusted-devices/use-device.ts'
import { isBanned } from '../users/is-banned.ts'
import { isPending } from '../users/proven-addresses.ts'
import { lockUser, type User } from '../users/users.store.ts'
import type { TokenSession } from './access-token.ts'
import type { LiveCaller } from './caller.ts'
import { issueTokens, type SessionBody, type SessionDeps } from './issue-tokens.ts'
import { type HeldProof, insertCopy, insertSession, type NewSession, type SignInEvent } from './sessions.store.ts'
import { registeredBody } from './user-answers.ts'

/** Client of a sign-in, with the trusted device that it presents. */
export interface Client extends Origin {
  device?: PresentedDevice
}

interface SignInProof extends HeldProof {
  /** Identity at a provider, or passkey, that the sign-in used. */
  identityId?: string | undefined
  /** aal2: the proof had two factors. */
  aal?: Aal
}

/**
 * Signs a user in: creates a session and its tokens; `audited` is stored with it. A trusted device makes it one of
 * aal2. Throws invalid_credentials when the user was deleted or banned since it was read, the password changed or the
 * passkey is used up. Throws email_not_confirmed or phone_not_confirmed for a pending account.
 */
export async function startSession(
  deps: Asking<SessionDeps & DeviceDeps>,
  db: Kysely<DB>,
  user: User,
  method: string,
  { device: presented, ...client }: Client,
  audited: PendingAudit | null = null,
  { identityId, aal = 'aal1', ...held }: SignInProof = {},
): Promise<SessionBody> {
  if (isPending(user)) throw apiError(user.email ? 'email_not_confirmed' : 'phone_not_confirmed')
  const id = deps.newRowId()
  const now = deps.now()
  const signedIn = { ...user, last_sign_in_at: now, updated_at: now }
  const shared = (device?: TrustedDevice) => {
    const timestamp = Math.floor(now.getTime() / 1000)
    const amr: AmrEntry[] = [method, ...(device ? [TRUSTED_DEVICE] : [])].map((each) => ({ method: each, timestamp }))
    return { id, aal: device ? 'aal2' : aal, amr, refresh_counter: 0 } as const
  }
  const open = async (
    handle: Kysely<DB>,
    device?: TrustedDevice,
  ): Promise<TokenSession & { refresh_counter: number }> => {
    const { refresh_counter: _c, ...own } = shared(device)
    const session = { ...own, userId: user.id, ...client, identityId: identityId ?? null, device, now }
    const isTold = wantsEvent(handle, 'session.created')
    const event = isTold && !isFollowed(handle, user.id) ? await userEvent(deps, handle, user, session) : undefined
    if (!(await insertSession(handle, session, audited?.entry ?? null, held, event))) {
      if (!event) throw apiError('invalid_credentials')
      // The user of the event has changed since it was read, or the sign-in is refused.
      return inTransaction(handle, async (trx) => {
        await lockUser(trx, user.id)
        return open(trx, device)
      })
    }
    if (audited) await afterCommit(handle, audited.log)
    if (event) await afterCommit(handle, () => announceEvents(handle))
    if (isTold && isFollowed(handle, user.id)) {
      await noteChange(handle, { userId: user.id, newSession: shownSession(session) })
    }
    return shared(device)
  }
  const lacksFactor = aal === 'aal1' && provenFactorIds(user.factors).length > 0
  if (presented && lacksFactor) {
    const session = await inTransaction(db, async (trx) =>
      open(trx, await useDevice(deps, trx, { id, userId: user.id }, presented, client)),
    )
    return issueTokens(deps, db, signedIn, session, method)
  }
  if (!deps.questions?.stopsAt('customize-access-token')) {
    return issueTokens(deps, db, signedIn, await open(db), method)
  }
  const body = await issueTokens(deps, db, signedIn, shared(), method)
  await open(db)
  return body
}

/**
 * Starts a session of a signed-in user for a further application, with the same proofs. Their times and its
 * end stay, so that nothing counts as proven anew. Throws session_not_found when the first one has ended.
 */
export async function copySession(
  deps: Asking<SessionDeps & AuditDeps & { newRowId: () => string }>,
  trx: Transaction<DB>,
  log: AuditLog,
  { user, session }: Pick<LiveCaller, 'user' | 'session'>,
  client: Origin,
): Promise<SessionBody> {
  const locked = await lockUser(trx, user.id)
  if (!locked || isBanned(locked, deps.now())) throw apiError('session_not_found')
  const now = deps.now()
  const named = { id: deps.newRowId(), of: session.id, userId: user.id, ...client, now }
  const copy = await insertCopy(trx, named, deps.config.sessions)
  if (!copy) throw apiError('session_not_found')
  await audit(deps, trx, log, { action: 'login', actor: user, traits: { provider_type: 'session' } })
  if (wantsEvent(trx, 'session.created')) {
    await noteChange(trx, { userId: user.id, newSession: shownSession({ ...copy, ...client, now }) })
  }
  return issueTokens(deps, trx, user, { ...copy, refresh_counter: 0 }, copy.amr[0]?.method ?? '')
}

const inTransaction = <Result>(db: Kysely<DB>, work: (trx: Transaction<DB>) => Promise<Result>): Promise<Result> =>
  db.isTransaction ? work(db as Transaction<DB>) : db.transaction().execute(work)

/** Event of a sign-in that changes nothing else of the user (core/webhooks). */
async function userEvent(
  deps: SessionDeps & { newRowId: () => string },
  db: Kysely<DB>,
  user: User,
  session: NewSession,
): Promise<SignInEvent> {
  const signedIn = { ...user, last_sign_in_at: session.now, updated_at: session.now }
  const data = { user: await registeredBody(deps, db, signedIn), session: shownSession(session) }
  const { updated_at: updatedAt, factors } = user
  return { id: deps.newRowId(), event: 'session.created', data: JSON.stringify(data), asRead: { updatedAt, factors } }
}

/** A session as events show it. */
export const shownSession = ({
  id,
  aal,
  amr,
  userAgent,
  ip,
  now,
}: Pick<NewSession, 'id' | 'aal' | 'amr' | 'userAgent' | 'ip' | 'now'>) => ({
  ...{ id, created_at: now.toISOString(), aal, methods: amr.map(({ method }) => method) },
  ...{ user_agent: userAgent, ip },
})
