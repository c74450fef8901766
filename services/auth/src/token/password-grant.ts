import type { FastifyBaseLogger } from 'fastify'
import { auditEntry } from '../audit/audit.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { findWeaknesses, MAX_PASSWORD_BYTES } from '../passwords/password-rules.ts'
import { describeWeaknesses } from '../passwords/require-strong-password.ts'
import type { SessionBody } from '../sessions/session-shape.ts'
import { type Client, startSession } from '../sessions/start-session.ts'
import { findUserByEmail, replaceHash, type UserWithPassword } from '../users/users.store.ts'

export interface PasswordGrantInput {
  email: string
  password: string
  audience: string
  client: Client
}

/**
 * Signs in by e-mail and password. Unknown address, no password and wrong password cost the same time and give one
 * answer; what else could be said of the account (banned, unconfirmed) is said only to who knows the password.
 */
export async function signInWithPassword(
  deps: Deps,
  log: FastifyBaseLogger,
  input: PasswordGrantInput,
): Promise<SessionBody> {
  const email = input.email.toLowerCase()
  const found = await findUserByEmail(deps.db, email, input.audience)
  // A stored hash can only be of an accepted length, so an oversized password is hashed in a shortened form and fails.
  const isOversized = Buffer.byteLength(input.password) > MAX_PASSWORD_BYTES
  const storedHash = isOversized ? null : found?.password_hash
  const matches = await deps.limits.passwordTry(email, () =>
    deps.passwords.verify(storedHash, input.password.slice(0, MAX_PASSWORD_BYTES)),
  )
  if (!found || !matches) throw apiError('invalid_credentials')
  const user = withoutHash(found)
  const now = deps.now()
  if (user.banned_until && user.banned_until > now) throw apiError('user_banned', { status: 400 })
  if (!user.email_confirmed_at) throw apiError('email_not_confirmed')

  const hash = found.password_hash as string
  const entry = auditEntry(deps, log, { action: 'login', actor: user, traits: { provider: 'email' } })
  const session = await startSession(deps, deps.db, user, 'password', input.client, entry, hash)
  if (deps.passwords.needsRehash(hash, input.password)) {
    await replaceHash(deps.db, user.id, hash, await deps.passwords.hash(input.password))
  }
  const reasons = findWeaknesses(input.password, deps.config.passwords)
  if (reasons.length === 0) return session
  return { ...session, weak_password: { message: describeWeaknesses(reasons, deps.config.passwords), reasons } }
}

function withoutHash({ password_hash: _hash, ...user }: UserWithPassword) {
  return user
}
