import type { Kysely } from 'kysely'
import { recordRefusal } from '../../core/audit/sign-in-attempt.ts'
import type { Factor } from '../../core/factors/factors.store.ts'
import type { Questions } from '../../core/hooks/questions.ts'
import { endAllSessions } from '../../core/sessions/end-session.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import type { FactorRequest } from './require-factor.ts'

const POINT = 'mfa-verification'

/** Rejection by the hook: it ends the transaction, and then all sessions of the user. */
class Rejected extends Error {
  override readonly name = 'Rejected'
}

const payloadOf = ({ caller: { user } }: FactorRequest, { id, factor_type: type }: Factor, valid: boolean) => ({
  user_id: user.id,
  factor_id: id,
  factor_type: type,
  valid,
})

/** A signature of a security key cannot be guessed. */
const isShown = ({ factor_type: type }: Factor) => type !== 'webauthn'

/**
 * Shows a right code, which this transaction has just used up: one that was used before is never shown as valid. Throws
 * if the hook rejects it.
 */
export async function showUsedCode(
  questions: Questions | undefined,
  trx: Kysely<DB>,
  request: FactorRequest,
  factor: Factor,
): Promise<void> {
  if (!questions?.has(POINT) || !isShown(factor)) return
  const { answer } = await questions.ask(trx, POINT, factor.id, payloadOf(request, factor, true))
  if (answer.decision === 'reject') throw new Rejected(answer.message)
}

/** Shows a wrong code. Throws if the hook rejects it. */
export async function showWrongCode(deps: Deps, request: FactorRequest, factor: Factor): Promise<void> {
  if (!deps.hooks.has(POINT) || !isShown(factor)) return
  const answer = await deps.hooks.ask(POINT, request.log, payloadOf(request, factor, false))
  if (answer.decision === 'reject') throw new Rejected(answer.message)
}

/** Runs an attempt. If the hook rejects it, ends all sessions of the user and throws mfa_verification_rejected. */
export async function endingRejected<Result>(
  deps: Deps,
  { log, caller: { user } }: FactorRequest,
  { factor_type: method }: Factor,
  attempt: () => Promise<Result>,
): Promise<Result> {
  try {
    return await attempt()
  } catch (error) {
    if (!(error instanceof Rejected)) throw error
    await endAllSessions(deps, log, user, user)
    const refusal = apiError('mfa_verification_rejected', error.message ? { message: error.message } : {})
    await recordRefusal(deps, log, { method, actor: user }, refusal)
    throw refusal
  }
}
