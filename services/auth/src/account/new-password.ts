import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import type { PasswordTry } from '../limits/password-tries.ts'
import { hashCode, isSameHash, MAX_ATTEMPTS } from '../one-time-tokens/one-time-token.ts'
import { countAttemptOfUser } from '../one-time-tokens/one-time-tokens.store.ts'
import { requireStrongPassword } from '../passwords/require-strong-password.ts'
import type { Caller } from '../sessions/caller.ts'
import { findPasswordHash, type User } from '../users/users.store.ts'

export interface NewPassword {
  password: string
  currentPassword?: string | undefined
  nonce?: string | undefined
  /** An anonymous user may set a password only together with an address. */
  email?: string | undefined
  phone?: string | undefined
  /** The client address a trusted proxy vouches for; misses are counted by it. */
  clientAddress: string | undefined
}

export interface CheckedPassword {
  passwordHash: string
  /** Of the nonce that allowed it; used up with the change itself, so that a later failure does not cost another one. */
  nonceHash: Buffer | undefined
}

/**
 * A session begun by a link or code to an address the user had: they may have forgotten the password. One that began with
 * a change of address is none: whoever stole a session could have attached an address of their own.
 */
const MAILBOX_METHODS = ['otp', 'magiclink', 'recovery']

/** What can be refused by the password alone. */
export async function requireFitPassword(
  deps: Deps,
  password: string,
  email: string | null | undefined,
): Promise<void> {
  if (password === '') throw apiError('weak_password', { details: { weak_password: { reasons: ['length'] } } })
  await requireStrongPassword(deps, password, email)
}

/** Without an address nobody could ever sign in with it. */
export function requireAddressForPassword(user: User, { email, phone }: Pick<NewPassword, 'email' | 'phone'>): void {
  if (!user.is_anonymous || email || phone) return
  throw apiError('validation_failed', {
    status: 422,
    message: 'Updating password of an anonymous user without an email or phone is not allowed',
  })
}

/**
 * Checks nonce, current password and novelty of a fit password, in this order (contract/auth-core.md 11.11). Comes after all
 * else that refuses the request: novelty tells whether a guess is the password in use, so who does not know that one pays
 * for the answer with a try at it.
 */
export async function checkNewPassword(
  deps: Deps,
  { user, session }: Caller,
  { password, currentPassword, nonce, clientAddress }: NewPassword,
): Promise<CheckedPassword> {
  const { config, db, passwords, limits } = deps
  const nonceHash = config.passwords.requireReauthentication ? await checkNonce(deps, user, nonce) : undefined
  const current = await findPasswordHash(db, user.id)
  const mustKnow = mustKnowPassword(deps, session)
  if (current && mustKnow) await requireRightPassword(deps, user, current, { currentPassword, clientAddress })
  if (current) {
    const isSame = () => passwords.verify(current, password)
    const tried = changeTry(user, clientAddress)
    if (await (mustKnow ? isSame() : limits.passwordTry(tried, isSame))) throw apiError('same_password')
  }
  return { passwordHash: await passwords.hash(password), nonceHash }
}

/**
 * Asks for the current password where a new one would need it: whoever stole a session could otherwise attach an address of
 * their own and recover the account by that. Accounts without a password have none to ask for.
 */
export async function checkCurrentPassword(
  deps: Deps,
  { user, session }: Caller,
  given: Pick<NewPassword, 'currentPassword' | 'clientAddress'>,
): Promise<void> {
  if (!mustKnowPassword(deps, session)) return
  const current = await findPasswordHash(deps.db, user.id)
  if (current) await requireRightPassword(deps, user, current, given)
}

const mustKnowPassword = ({ config }: Deps, session: Caller['session']): boolean =>
  config.passwords.requireCurrent && !session?.amr.some(({ method }) => MAILBOX_METHODS.includes(method))

async function requireRightPassword(
  { passwords, limits }: Deps,
  user: User,
  current: string,
  { currentPassword, clientAddress }: Pick<NewPassword, 'currentPassword' | 'clientAddress'>,
): Promise<void> {
  if (!currentPassword) throw apiError('current_password_required')
  const tried = changeTry(user, clientAddress)
  const isRight = await limits.passwordTry(tried, () => passwords.verify(current, currentPassword))
  if (!isRight) throw apiError('current_password_invalid')
}

/**
 * What tries at the current password count against: by the user and so apart from the sign-in, whose strangers would keep
 * an owner from changing the password otherwise. Here nobody tries without a session.
 */
export const changeTry = ({ id }: Pick<User, 'id'>, clientAddress: string | undefined): PasswordTry => ({
  identifier: id,
  address: clientAddress,
})

async function checkNonce(deps: Deps, user: User, nonce: string | undefined): Promise<Buffer> {
  if (!nonce) throw apiError('reauthentication_needed')
  const token = await countAttemptOfUser(deps.db, user.id, 'reauthentication', MAX_ATTEMPTS)
  const matches =
    token?.code_hash && isSameHash(token.code_hash, hashCode(deps.codeKey, token.purpose, token.relates_to, nonce))
  if (!token?.code_hash || !matches || token.expires_at <= deps.now()) throw apiError('reauthentication_not_valid')
  return token.code_hash
}
