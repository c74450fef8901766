// Whether a caller may add or remove a way in or a second factor. The one rule: a stolen session is not enough where a switch
// (AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_*) or a second factor says so, whichever door it tries. What each act demands: acts.ts.
import type { KeyObject } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { Aal, DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { hasVerifiedFactor } from '../factors/assurance.ts'
import type { PasswordAttempt, PasswordAttempts } from '../limits/password-attempts.ts'
import { hashCode, isSameHash, MAX_ATTEMPTS } from '../one-time-tokens/one-time-token.ts'
import { countAttemptOfUser, takeByCodeHash } from '../one-time-tokens/one-time-tokens.store.ts'
import type { Passwords } from '../passwords/hash-password.ts'
import type { LiveCaller } from '../sessions/caller.ts'
import { MAILBOX_METHODS } from '../sessions/methods.ts'
import { findPasswordHash, type User } from '../users/users.store.ts'
import { ACTS, type Act, type ActName } from './acts.ts'
import { isSecondFactorDemanded } from './demanded-factor.ts'

interface FreshnessDeps {
  config: Pick<Config, 'passwords'>
  db: Kysely<DB>
  passwords: Pick<Passwords, 'verify'>
  limits: { passwordTry: PasswordAttempts['run'] }
  codeKey: KeyObject
  now: () => Date
}

/** What a request gives to show that its caller is the owner. */
export interface GivenProof {
  currentPassword: string | undefined
  nonce: string | undefined
  /** The client address a trusted proxy vouches for; wrong passwords are counted by it. */
  clientAddress: string | undefined
}

export interface Freshness {
  /** Hash of the nonce that allowed the act; spent with the act itself, so that a later failure costs no other one. */
  nonceHash?: Buffer | undefined
  /** Whether the caller has given the current password. */
  knowsPassword: boolean
}

/**
 * Age up to which a sign-in stands for a proof. Long enough to scan a code, read a mail and come back from a provider; short
 * enough that a session taken from a device or a log is usually older.
 */
const RECENT_MS = 15 * 60_000

/** Throws insufficient_aal for a session without the second factor that its user has, or is made to have by a switch. */
export function requireSecondFactor(
  config: Pick<Config, 'jwt' | 'mfa'>,
  acts: readonly ActName[],
  user: Pick<User, 'factors' | 'role' | 'is_anonymous'>,
  session: { aal: Aal },
): void {
  if (session.aal !== 'aal1') return
  const isDemanded = isSecondFactorDemanded(config, user)
  for (const act of acts) {
    const { leadsToFactor, refusal }: Act = ACTS[act]
    if (hasVerifiedFactor(user) || (isDemanded && !leadsToFactor)) throw apiError('insufficient_aal', refusal)
  }
}

/**
 * Demands the current password or a nonce, as the switches and the acts say. Where neither is demanded by name a sign-in of
 * the last 15 minutes is as good, and so is either of them: clients have no parameters for them but in PUT /user. A sign-in by
 * mail that recent replaces the current password. Throws current_password_required, current_password_invalid,
 * reauthentication_needed and reauthentication_not_valid. Tells a guess at the password from the password, so comes last of
 * all that may refuse.
 */
export async function requireFresh(
  deps: FreshnessDeps,
  { user, session }: LiveCaller,
  acts: readonly ActName[],
  given: GivenProof,
): Promise<Freshness> {
  const { requireCurrent, requireReauthentication } = deps.config.passwords
  if (acts.length === 0 || !(requireCurrent || requireReauthentication)) return { knowsPassword: false }
  const demands: Act[] = acts.map((act) => ACTS[act])
  const needsNonce = requireReauthentication && demands.some((act) => act.needsNonce)
  const nonceHash = needsNonce ? await checkNonce(deps, user, given.nonce) : undefined
  const current = await findPasswordHash(deps.db, user.id)
  const needsPassword = requireCurrent && demands.some((act) => act.needsPassword)
  if (current && needsPassword && !isRecent(deps, session, (method) => MAILBOX_METHODS.includes(method))) {
    await requireRightPassword(deps, user, current, given)
    return { nonceHash, knowsPassword: true }
  }
  // An anonymous user has nothing to sign in with again: the session is the account.
  const isSignedInNow = user.is_anonymous || isRecent(deps, session, (method) => method !== 'anonymous')
  if (nonceHash || isSignedInNow) return { nonceHash, knowsPassword: false }
  if (given.nonce) return { nonceHash: await checkNonce(deps, user, given.nonce), knowsPassword: false }
  if (!current || !given.currentPassword) throw mustSignInAgain()
  await requireRightPassword(deps, user, current, given)
  return { knowsPassword: true }
}

/** Uses up the nonce that allowed the act, with the user locked. Throws reauthentication_not_valid if another act was first. */
export async function spendNonce(trx: Transaction<DB>, userId: string, { nonceHash }: Freshness): Promise<void> {
  if (nonceHash && !(await takeByCodeHash(trx, userId, 'reauthentication', nonceHash))) {
    throw apiError('reauthentication_not_valid')
  }
}

/** Refreshing keeps the times of `amr`, proving a factor renews its own. */
const isRecent = (
  { now }: Pick<FreshnessDeps, 'now'>,
  { amr }: LiveCaller['session'],
  counts: (method: string) => boolean,
): boolean => amr.some(({ method, timestamp }) => counts(method) && timestamp * 1000 > now().getTime() - RECENT_MS)

const mustSignInAgain = () =>
  apiError('reauthentication_needed', {
    message: 'This change needs a sign-in of the last 15 minutes, the current password or a nonce: sign in again',
  })

async function requireRightPassword(
  { passwords, limits }: FreshnessDeps,
  user: User,
  current: string,
  { currentPassword, clientAddress }: GivenProof,
): Promise<void> {
  if (!currentPassword) throw apiError('current_password_required')
  const tried = changeTry(user, clientAddress)
  const isRight = await limits.passwordTry(tried, () => passwords.verify(current, currentPassword))
  if (!isRight) throw apiError('current_password_invalid')
}

/**
 * What attempts at the current password count against: by the user and so apart from the sign-in, whose strangers would keep
 * an owner from changing the password otherwise. Here every attempt has a session.
 */
export const changeTry = ({ id }: Pick<User, 'id'>, clientAddress: string | undefined): PasswordAttempt => ({
  identifier: id,
  address: clientAddress,
})

async function checkNonce({ db, codeKey, now }: FreshnessDeps, user: User, nonce: string | undefined): Promise<Buffer> {
  if (!nonce) throw apiError('reauthentication_needed')
  const token = await countAttemptOfUser(db, user.id, 'reauthentication', MAX_ATTEMPTS)
  const matches =
    token?.code_hash && isSameHash(token.code_hash, hashCode(codeKey, token.purpose, token.relates_to, nonce))
  if (!token?.code_hash || !matches || token.expires_at <= now()) throw apiError('reauthentication_not_valid')
  return token.code_hash
}
