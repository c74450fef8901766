import { recordRefusal } from '../../core/audit/sign-in-attempt.ts'
import type { Factor } from '../../core/factors/factors.store.ts'
import { askVerification } from '../../core/hooks/ask-verification.ts'
import { endAllSessions } from '../../core/sessions/end-session.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { FactorRequest } from './require-factor.ts'

/**
 * Shows an attempt at a code to the hook; a signature of a security key cannot be guessed. If the hook rejects it, ends
 * all sessions of the user and throws mfa_verification_rejected.
 */
export async function showFactorAttempt(
  deps: Deps,
  { log, caller: { user } }: FactorRequest,
  { id, factor_type: method }: Factor,
  valid: boolean,
): Promise<void> {
  if (method === 'webauthn') return
  const payload = { user_id: user.id, factor_id: id, factor_type: method, valid }
  const rejection = await askVerification(deps, 'mfa-verification', log, payload)
  if (!rejection) return
  await endAllSessions(deps, log, user, user)
  const refusal = apiError('mfa_verification_rejected', rejection.message ? { message: rejection.message } : {})
  await recordRefusal(deps, log, { method, actor: user }, refusal)
  throw refusal
}
