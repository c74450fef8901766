import type { AuditLog } from '../../core/audit/audit.ts'
import { askVerification } from '../../core/hooks/ask-verification.ts'
import { endAllSessions } from '../../core/sessions/end-session.ts'
import type { User } from '../../core/users/users.store.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

/**
 * Shows an attempt at a user's password to the hook. Throws invalid_credentials, with its message, if that rejects it.
 * A hook without an answer fails the right password alone: at a wrong one its error would reveal the account.
 */
export async function showPasswordAttempt(deps: Deps, log: AuditLog, user: User, valid: boolean): Promise<void> {
  const asked = askVerification(deps, 'password-verification', log, { user_id: user.id, valid })
  const rejection = await asked.catch((error) => {
    if (valid || (error as { code?: unknown }).code === 'hook_rejected') throw error
    return undefined
  })
  if (!rejection) return
  if (rejection.should_logout_user) await endAllSessions(deps, log, user, user)
  throw apiError('invalid_credentials', {
    message: rejection.message || 'Further password verification attempts will be rejected.',
  })
}
