import type { AuditLog } from '../../core/audit/audit.ts'
import { isRefusal } from '../../core/hooks/hooks.ts'
import type { HookAnswers } from '../../core/hooks/payloads.ts'
import { endAllSessions } from '../../core/sessions/end-session.ts'
import type { User } from '../../core/users/users.store.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

const POINT = 'password-verification'

/**
 * Shows an attempt at a user's password to the hook. Throws invalid_credentials, with its message, if that rejects it.
 * A hook without an answer fails the right password alone: at a wrong one its error would reveal the account.
 */
export async function showPasswordAttempt(deps: Deps, log: AuditLog, user: User, valid: boolean): Promise<void> {
  if (!deps.hooks.has(POINT)) return
  const answer = await deps.hooks
    .ask(POINT, log, { user_id: user.id, valid })
    .catch((error): HookAnswers[typeof POINT] => {
      if (valid || isRefusal(error)) throw error
      return {}
    })
  if (answer.decision !== 'reject') return
  if (answer.should_logout_user) await endAllSessions(deps, log, user, user)
  throw apiError('invalid_credentials', {
    message: answer.message || 'Further password verification attempts will be rejected.',
  })
}

/** Takes the time of a question, for an account that is unknown or has no password, about a made-up user. */
export const hidePasswordAttempt = (deps: Deps, log: AuditLog): Promise<void> =>
  deps.hooks.hide(POINT, log, { user_id: deps.newId(), valid: false }).catch(() => {})
