import { changeAttempt, type Freshness } from '../../core/freshness/require-fresh.ts'
import { requireStrongPassword } from '../../core/passwords/require-strong-password.ts'
import { findPasswordHash, type User } from '../../core/users/users.store.ts'
import { reportLock } from '../../core/webhooks/locked-out.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

export async function requireFitPassword(deps: Deps, password: string, email: string | null): Promise<void> {
  if (password === '') throw apiError('weak_password', { details: { weak_password: { reasons: ['length'] } } })
  await requireStrongPassword(deps, password, email)
}

/** Requires an anonymous user to set an address with the password, which could not be used without one. */
export function requireAddressForPassword(user: User, address: string | undefined): void {
  if (!user.is_anonymous || address) return
  throw apiError('validation_failed', {
    status: 422,
    message: 'Updating password of an anonymous user without an email or phone is not allowed',
  })
}

/**
 * Hashes a password that differs from the current one. `same_password` reveals the current password, so this must be
 * the last check of a request. It counts as an attempt, unless the caller supplied the current one.
 */
export async function hashNewPassword(
  deps: Deps,
  user: User,
  { password, clientAddress }: { password?: string | undefined; clientAddress: string | undefined },
  { knowsPassword }: Freshness,
): Promise<string | undefined> {
  const { db, passwords, passwordAttempts } = deps
  if (password === undefined) return undefined
  const current = await findPasswordHash(db, user.id)
  if (current) {
    const isSame = () => passwords.verify(current, password)
    const attempt = changeAttempt(user, clientAddress)
    const isCountedSame = () => reportLock(deps, user.id, 'password', () => passwordAttempts.run(attempt, isSame))
    if (await (knowsPassword ? isSame() : isCountedSame())) throw apiError('same_password')
  }
  return passwords.hash(password)
}
