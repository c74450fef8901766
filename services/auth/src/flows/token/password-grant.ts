import { ApiError } from '@services/common/errors'
import { type AuditLog, pendingAudit } from '../../core/audit/audit.ts'
import { withHooksIn } from '../../core/hooks/questions.ts'
import { MAX_PASSWORD_BYTES } from '../../core/passwords/password-rules.ts'
import { reportWeaknesses } from '../../core/passwords/require-strong-password.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import type { Address } from '../../core/users/address.ts'
import { isClaimedPassword } from '../../core/users/address-claims.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import { readAgain } from '../../core/users/read-again.ts'
import { findPasswordHash, findUserByAddress, replaceHash, type User } from '../../core/users/users.store.ts'
import { reportLock } from '../../core/webhooks/locked-out.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { hidePasswordAttempt, showPasswordAttempt } from './password-verification.ts'

export interface PasswordGrantInput {
  address: Address
  password: string
  audience: string
  client: Client
  /** Client address from a trusted proxy; failed attempts are counted by it. */
  clientAddress: string | undefined
}

/**
 * Signs in by e-mail or phone and password. Unknown address, no password and wrong password take the same time and get
 * the same answer. Only the right password reveals that the account is banned. A pending account has no password of its
 * own, unless an admin vouches for it: any stranger may have registered it. Its `email_not_confirmed` comes from the
 * claim of the sign-up, which known and unknown addresses have alike, and counts as a failed attempt.
 */
export async function signInWithPassword(deps: Deps, log: AuditLog, input: PasswordGrantInput): Promise<SessionBody> {
  const { channel, value } = input.address
  const found = await findUserByAddress(deps.db, input.address, input.audience)
  // No stored hash is of an oversized password: one is hashed in a shortened form, for the time, and fails.
  const isOversized = Buffer.byteLength(input.password) > MAX_PASSWORD_BYTES
  const isOwn = found?.[`${channel}_confirmed_at`] || found?.isVouched
  const storedHash = isOversized || !isOwn ? null : found?.password_hash
  // Keyed by the typed address, which does not reveal that two addresses are of one account. Keyed by audience too,
  // because a sign-up in another audience would otherwise reset failed attempts.
  const attempt = { identifier: `${input.audience}\0${value}`, address: input.clientAddress }
  const right = await reportLock(deps, found?.id, 'password', () =>
    deps.passwordAttempts.runSignIn(attempt, () =>
      deps.passwords.verify(storedHash, input.password.slice(0, MAX_PASSWORD_BYTES)),
    ),
  )
  if (found && isOwn && found.password_hash !== null && !isBanned(found, deps.now())) {
    await showPasswordAttempt(deps, log, found, right !== undefined)
  } else await hidePasswordAttempt(deps, log)
  if (!found || !right) {
    const isClaimed = !isOversized && (await isClaimedPassword(deps, input.address, input.password))
    throw apiError(isClaimed ? `${channel}_not_confirmed` : 'invalid_credentials')
  }
  const { password_hash, isAssumed, isVouched, ...user } = found
  requireMaySignIn(deps, user, channel)

  const hash = password_hash as string
  const audited = pendingAudit(deps, log, { action: 'login', actor: user, traits: { provider: channel } })
  const currentUser = readAgain(user, (current) => requireMaySignIn(deps, current, channel))
  const start = (verifiedHash: string) =>
    withHooksIn(
      deps,
      log,
      async (asking, trx) => {
        const current = await currentUser(trx ?? deps.db)
        return startSession(asking, trx ?? deps.db, current, 'password', input.client, audited, { verifiedHash })
      },
      { writesOnce: input.client.device === undefined },
    )
  const [session, weakness] = await Promise.all([
    startWithCurrentHash(deps, user.id, { hash, password: input.password }, start),
    reportWeaknesses(deps, input.password, user.email),
  ])
  await right.markClientKnown({ isProven: !isAssumed })
  if (deps.passwords.needsRehash(hash, input.password)) await strengthenHash(deps, user.id, hash, input.password)
  return weakness ? { ...session, weak_password: weakness } : session
}

function requireMaySignIn({ now }: Deps, user: User, channel: Address['channel']): void {
  if (isBanned(user, now())) throw apiError('user_banned', { status: 400 })
  if (!user[`${channel}_confirmed_at`]) throw apiError(`${channel}_not_confirmed`)
}

/**
 * Starts with the verified hash. After a refusal starts again with the present one, if it is of the same password. Then
 * a parallel sign-in has replaced the hash, or the user was banned, which the next reading shows.
 */
async function startWithCurrentHash(
  { db, passwords }: Deps,
  userId: string,
  { hash, password }: { hash: string; password: string },
  start: (hash: string) => Promise<SessionBody>,
): Promise<SessionBody> {
  try {
    return await start(hash)
  } catch (refusal) {
    // Another failure, a hook's for one, says nothing of the hash, and reading it takes a connection.
    if (!(refusal instanceof ApiError && refusal.code === 'invalid_credentials')) throw refusal
    const current = await findPasswordHash(db, userId)
    if (current !== hash && !(await passwords.verify(current, password))) throw refusal
    return start(current as string)
  }
}

/** Leaves a weak hash to the next sign-in when the hash queue is full: this one has its session already. */
async function strengthenHash({ db, passwords }: Deps, userId: string, hash: string, password: string): Promise<void> {
  try {
    await replaceHash(db, userId, hash, await passwords.hash(password))
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'over_capacity')) throw error
  }
}
