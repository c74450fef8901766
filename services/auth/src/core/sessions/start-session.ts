// Sessions: how they start, refresh, gain a second factor and end. A session is one row, live until deleted or past a
// limit (session-limits.ts), and no token is stored. Tests: ../../flows/token, account and mfa.
import { afterCommit } from '@services/common/database/after-commit'
import type { Kysely, Transaction } from 'kysely'
import type { EventRow } from '../../db/events.store.ts'
import type { Aal, AmrEntry, DB } from '../../db/tables.ts'
import { announceEvents, isUnseen } from '../../db/watched-users.ts'
import { apiError } from '../../errors.ts'
import { TRUSTED_DEVICE } from '../amr/second-methods.ts'
import type { Origin, PendingAudit } from '../audit/audit.ts'
import type { Asking } from '../hooks/questions.ts'
import type { TrustedDevice } from '../trusted-devices/trusted-devices.store.ts'
import { type DeviceDeps, type PresentedDevice, provenFactorIds, useDevice } from '../trusted-devices/use-device.ts'
import { isPending } from '../users/proven-addresses.ts'
import type { User } from '../users/users.store.ts'
import { issueTokens, type SessionBody, type SessionDeps } from './issue-tokens.ts'
import { insertSession, type NewSession } from './sessions.store.ts'
import { registeredBody } from './user-answers.ts'

/** Client of a sign-in, with the trusted device that it presents. */
export interface Client extends Origin {
  device?: PresentedDevice
}

interface SignInProof {
  /** Hash of the verified password; the user must still have it. */
  verifiedHash?: string
  /** Identity at a provider, or passkey, that the sign-in used. */
  identityId?: string | undefined
  /** aal2: the proof had two factors. */
  aal?: Aal
}

/**
 * Signs a user in: creates a session and its tokens; `audited` is stored with it. A trusted device makes it one of
 * aal2. Throws invalid_credentials when the user was deleted or the password changed, and email_not_confirmed or
 * phone_not_confirmed for a pending account.
 */
export async function startSession(
  deps: Asking<SessionDeps & DeviceDeps>,
  db: Kysely<DB>,
  user: User,
  method: string,
  { device: presented, ...client }: Client,
  audited: PendingAudit | null = null,
  { verifiedHash, identityId, aal = 'aal1' }: SignInProof = {},
): Promise<SessionBody> {
  if (isPending(user)) throw apiError(user.email ? 'email_not_confirmed' : 'phone_not_confirmed')
  const id = deps.newRowId()
  const now = deps.now()
  const signedIn = { ...user, last_sign_in_at: now, updated_at: now }
  const open = async (handle: Kysely<DB>, device?: TrustedDevice) => {
    const timestamp = Math.floor(now.getTime() / 1000)
    const amr: AmrEntry[] = [method, ...(device ? [TRUSTED_DEVICE] : [])].map((each) => ({ method: each, timestamp }))
    const shared = { id, aal: device ? 'aal2' : aal, amr } as const
    const session = { ...shared, userId: user.id, ...client, identityId: identityId ?? null, device, now }
    const event = isUnseen(handle, user.id) ? await sessionEvent(deps, handle, signedIn, session) : undefined
    if (!(await insertSession(handle, session, audited?.entry ?? null, verifiedHash, event))) {
      throw apiError('invalid_credentials')
    }
    if (audited) await afterCommit(handle, audited.log)
    if (event) await afterCommit(handle, () => announceEvents(handle))
    return { ...shared, refresh_counter: 0 }
  }
  const lacksFactor = aal === 'aal1' && provenFactorIds(user.factors).length > 0
  const session =
    presented && lacksFactor
      ? await inTransaction(db, async (trx) =>
          open(trx, await useDevice(deps, trx, { id, userId: user.id }, presented, client)),
        )
      : await open(db)
  return issueTokens(deps, db, signedIn, session, method)
}

const inTransaction = <Result>(db: Kysely<DB>, work: (trx: Transaction<DB>) => Promise<Result>): Promise<Result> =>
  db.isTransaction ? work(db as Transaction<DB>) : db.transaction().execute(work)

/** Event of a sign-in that changes nothing else of the user (core/webhooks). */
async function sessionEvent(
  deps: SessionDeps & { newRowId: () => string },
  db: Kysely<DB>,
  user: User,
  { id, aal, amr, userAgent, ip, now }: NewSession,
): Promise<EventRow> {
  const session = {
    ...{ id, created_at: now.toISOString(), aal, methods: amr.map(({ method }) => method) },
    ...{ user_agent: userAgent, ip },
  }
  const data = { user: await registeredBody(deps, db, user), session }
  return { id: deps.newRowId(), userId: user.id, event: 'session.created', data: JSON.stringify(data) }
}
