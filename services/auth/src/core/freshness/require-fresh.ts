import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely, Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { Aal, AmrEntry, DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { beganWithDevice, hasVerifiedFactor, isSecondProof } from '../factors/assurance.ts'
import { countAttemptOfUser, takeByCodeHash } from '../one-time-tokens/one-time-tokens.store.ts'
import { isRightCode, type RightCodeDeps } from '../one-time-tokens/right-code.ts'
import type { Passwords } from '../passwords/hash-password.ts'
import type { PasswordAttempt, PasswordAttempts } from '../passwords/password-attempts.ts'
import { isRequesterAccepted } from '../sessions/accepted-session.ts'
import { type LiveCaller, withLockedCaller } from '../sessions/caller.ts'
import { MAILBOX_METHODS } from '../sessions/methods.ts'
import { isAdministrator } from '../users/is-administrator.ts'
import { findPasswordHash, type LockedAccount, type User } from '../users/users.store.ts'
import { reportLock } from '../webhooks/locked-out.ts'
import { ACTS, type Act, type ActName } from './acts.ts'
import { isRecent } from './recent.ts'

interface FreshnessDeps extends RightCodeDeps {
  log: Pick<Logger, 'warn'>
  config: Pick<Config, 'mail' | 'passwords' | 'sessions' | 'sms'>
  db: Kysely<DB>
  passwords: Pick<Passwords, 'verify'>
  passwordAttempts: Pick<PasswordAttempts, 'run'>
}

export interface GivenProof {
  currentPassword: string | undefined
  nonce: string | undefined
  /** Client address from a trusted proxy; failed attempts are counted by it. */
  clientAddress: string | undefined
}

export interface Freshness {
  /** Hash of the nonce that allowed the act; spent with the act, so that a failure before does not use it up. */
  nonceHash?: Buffer | undefined
  knowsPassword: boolean
}

export interface SecondFactorDeps {
  config: Pick<Config, 'jwt' | 'mfa'>
  now: () => Date
}

/** Reports whether AUTH_MFA_REQUIRED_FOR demands a second factor of the user. Anonymous users cannot have one. */
export function isSecondFactorDemanded(
  { mfa, jwt }: Pick<Config, 'jwt' | 'mfa'>,
  user: Pick<User, 'app_metadata' | 'is_anonymous' | 'role'>,
): boolean {
  if (user.is_anonymous || mfa.requiredFor === 'nobody') return false
  return mfa.requiredFor === 'everybody' || isAdministrator(jwt, user) || user.role === jwt.adminGroup
}

/**
 * Throws insufficient_aal for a session without the second factor that its user has, or that is demanded. One that a
 * trusted device began needs a proof of the last 15 minutes.
 */
export function requireSecondFactor(
  deps: SecondFactorDeps,
  acts: readonly ActName[],
  user: Pick<User, 'app_metadata' | 'factors' | 'is_anonymous' | 'role'>,
  session: { aal: Aal; amr: readonly AmrEntry[] },
): void {
  requireMoreThanDevice(deps, acts, session)
  if (session.aal !== 'aal1') return
  const isDemanded = isSecondFactorDemanded(deps.config, user)
  for (const act of acts) {
    const { leadsToFactor, refusal }: Act = ACTS[act]
    if (hasVerifiedFactor(user) || (isDemanded && !leadsToFactor)) throw apiError('insufficient_aal', refusal)
  }
}

/** The refusals keep the statuses that clients know, and say that another proof in this session is enough. */
function requireMoreThanDevice(
  deps: SecondFactorDeps,
  [act]: readonly ActName[],
  session: { amr: readonly AmrEntry[] },
): void {
  if (!act || !beganWithDevice(session) || isRecent(deps, session, isSecondProof)) return
  throw apiError('insufficient_aal', {
    status: ACTS[act].refusal.status,
    message: 'A trusted device is not enough for this: prove the second factor again',
  })
}

/**
 * Demands the current password or a nonce, as the settings and the acts say. If an act demands neither by name, a
 * sign-in of the last 15 minutes or either of them will do. A sign-in by mail that recent replaces the current
 * password, in a session of two factors together with the second one. Reveals whether a guess is the password, so every
 * other check comes first. Throws current_password_required, current_password_invalid, reauthentication_needed and
 * reauthentication_not_valid.
 */
export async function requireFresh(
  deps: FreshnessDeps,
  { user, session }: LiveCaller,
  acts: readonly ActName[],
  given: GivenProof,
): Promise<Freshness> {
  const { requireCurrent, requireReauthentication } = deps.config.passwords
  const demands: Act[] = acts.map((act) => ACTS[act])
  const isDemanded = requireCurrent || requireReauthentication || demands.some((act) => act.always)
  if (acts.length === 0 || !isDemanded) return { knowsPassword: false }
  const needsNonce = requireReauthentication && demands.some((act) => act.needsNonce)
  const nonceHash = needsNonce ? await checkNonce(deps, user, given.nonce) : undefined
  const current = await findPasswordHash(deps.db, user.id)
  const needsPassword = requireCurrent && demands.some((act) => act.needsPassword)
  if (current && needsPassword && !replacesPassword(deps, session)) {
    await requireRightPassword(deps, user, current, given)
    return { nonceHash, knowsPassword: true }
  }
  // An anonymous user cannot sign in again: the session is the account.
  const isSignedInNow = user.is_anonymous || isRecent(deps, session, (method) => method !== 'anonymous')
  if (nonceHash || isSignedInNow) return { nonceHash, knowsPassword: false }
  if (given.nonce) return { nonceHash: await checkNonce(deps, user, given.nonce), knowsPassword: false }
  if (!current || !given.currentPassword) throw mustSignInAgain(demands)
  await requireRightPassword(deps, user, current, given)
  return { knowsPassword: true }
}

/** Whether a sign-in by mail was recent; a session of two factors needs the second one of that time, too. */
const replacesPassword = (deps: FreshnessDeps, session: LiveCaller['session']): boolean =>
  isRecent(deps, session, (method) => MAILBOX_METHODS.includes(method)) &&
  (session.aal === 'aal1' || isRecent(deps, session, isSecondProof))

/** Spends the nonce that allowed the act, with the user locked. Throws reauthentication_not_valid if it is spent. */
export async function spendNonce(trx: Transaction<DB>, userId: string, { nonceHash }: Freshness): Promise<void> {
  if (nonceHash && !(await takeByCodeHash(trx, userId, 'reauthentication', nonceHash))) {
    throw apiError('reauthentication_not_valid')
  }
}

/**
 * Performs acts with second factor and freshness required. The session may change while the password is verified. The
 * caller is therefore locked and checked again once `find` has found the target. Then the nonce is spent.
 */
export async function performActs<Target, Result>(
  deps: FreshnessDeps & { config: Pick<Config, 'jwt' | 'mfa'> },
  { caller, proof }: { caller: LiveCaller; proof: GivenProof },
  acts: readonly ActName[],
  find: (trx: Transaction<DB>, user: LockedAccount) => Target | Promise<Target>,
  perform: (trx: Transaction<DB>, user: LockedAccount, target: Target) => Promise<Result>,
): Promise<Result> {
  requireSecondFactor(deps, acts, caller.user, caller.session)
  const freshness = await requireFresh(deps, caller, acts, proof)
  return withLockedCaller(deps, caller, async (trx, { user, session }) => {
    const target = await find(trx, user)
    requireSecondFactor(deps, acts, user, session)
    await spendNonce(trx, user.id, freshness)
    return perform(trx, user, target)
  })
}

function mustSignInAgain(acts: Act[]) {
  const others = acts.some((act) => act.signInOnly) ? '' : ', the current password or a nonce'
  const message = `This needs a sign-in of the last 15 minutes${others}: sign in again`
  return apiError('reauthentication_needed', { message })
}

async function requireRightPassword(
  deps: FreshnessDeps,
  user: User,
  current: string,
  { currentPassword, clientAddress }: GivenProof,
): Promise<void> {
  if (!currentPassword) throw apiError('current_password_required')
  const isRight = await reportLock(deps, user.id, 'password', () =>
    deps.passwordAttempts.run(changeAttempt(user, clientAddress), () =>
      deps.passwords.verify(current, currentPassword),
    ),
  )
  if (!isRight) throw apiError('current_password_invalid')
}

/**
 * Counter of attempts at the current password: by user. Shared with sign-ins, it would let strangers block an owner.
 */
export const changeAttempt = ({ id }: Pick<User, 'id'>, clientAddress: string | undefined): PasswordAttempt => ({
  identifier: id,
  address: clientAddress,
})

async function checkNonce(deps: FreshnessDeps, user: User, nonce: string | undefined): Promise<Buffer> {
  const { db, now } = deps
  if (!nonce) throw apiError('reauthentication_needed')
  const token = await countAttemptOfUser(db, user.id, 'reauthentication')
  const matches = token && (await isRightCode(deps, token, nonce))
  const isValid = matches && token.code_expires_at && token.code_expires_at > now()
  if (!token?.code_hash || !isValid) throw apiError('reauthentication_not_valid')
  const begun = { userId: user.id, sessionId: token.session_id }
  if (!(await isRequesterAccepted(deps, db, begun))) throw apiError('reauthentication_not_valid')
  return token.code_hash
}
