// Second factors: enrolling, challenging, verifying, removing, and recovery codes. A factor counts once it is verified,
// and each proof is used up in the transaction that raises the session to aal2. Tests: here and ../../core/freshness/.
//
// Factor      | next
// unverified  | verified by its first proof; deleted when stale, replaced or another factor of its type is verified
// verified    | raises a session by each further proof; removed by its owner at aal2 or by an admin
import type { Transaction } from 'kysely'
import { SECOND_METHODS } from '../../core/amr/second-methods.ts'
import { audit } from '../../core/audit/audit.ts'
import {
  type Challenge,
  deleteChallenge,
  findChallenge,
  refundAttempt,
  takeChallenge,
} from '../../core/factors/challenges.store.ts'
import { changeFactor, deleteUnverified, type Factor } from '../../core/factors/factors.store.ts'
import { requireFresh, spendNonce } from '../../core/freshness/require-fresh.ts'
import { givingBack } from '../../core/hooks/give-back.ts'
import { type Asking, withHooks } from '../../core/hooks/questions.ts'
import { refundAttempt as refundCode } from '../../core/one-time-tokens/one-time-tokens.store.ts'
import { notify } from '../../core/outbox/notify.ts'
import { isRequesterAccepted } from '../../core/sessions/accepted-session.ts'
import { withLockedCaller } from '../../core/sessions/caller.ts'
import { issueTokens, type SessionBody } from '../../core/sessions/issue-tokens.ts'
import { EVERY, NONE } from '../../core/trusted-devices/trusted-devices.store.ts'
import { endTokens } from '../../core/users/end-tokens.ts'
import type { User } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { endingRejected, showUsedCode, showWrongCode } from './mfa-verification.ts'
import { proofOf, raise, refuseProof, type Verification } from './proof.ts'
import { giveFirstRecoveryCodes } from './recovery-codes.ts'
import {
  actsOfProof,
  type FactorRequest,
  requireCapacity,
  requireEnabled,
  requireFactor,
  requireMayProve,
} from './require-factor.ts'

/** Includes recovery codes with the user's first verified factor. */
export type VerifiedSession = SessionBody & { recovery_codes?: string[] }

/** Verifies a factor and raises the session to aal2 (contract/auth-external.md 4.4). */
export async function verifyFactor(deps: Deps, request: FactorRequest, given: Verification): Promise<VerifiedSession> {
  const { log, caller } = request
  const factor = await requireFactor(deps.db, caller.user, given.factorId)
  requireEnabled(deps.config.mfa, factor.factor_type, 'verify')
  const proof = proofOf(deps, request, factor, given)
  await deps.limits.countFactorAttempt(factor.id, caller.session.id)
  requireMayProve(deps, caller.user, caller.session, factor)
  const freshness = await requireFresh(deps, caller, actsOfProof(factor), request.proof)
  const challenge = await requireOpenChallenge(deps, factor, given)
  // Only codes can be guessed: each wrong one lengthens the wait, in all replicas.
  let cause: unknown
  const verify = () =>
    proof.counted(async () => {
      const checked = await proof.check(challenge)
      if ('refused' in checked) {
        cause = checked.refused
        return undefined
      }
      const raiseNow = (asking: Asking<Deps>) =>
        withLockedCaller(deps, caller, async (trx, { user, session }) => {
          const current = await requireFactor(trx, user, factor.id)
          requireMayProve(deps, user, session, current)
          await requireStillBegun(deps, trx, session, current, challenge)
          await spendNonce(trx, user.id, freshness)
          if (!(await checked.spend(trx))) return undefined
          if (!(await takeChallenge(trx, challenge.id, deps.now()))) throw addressMismatch()
          await showUsedCode(asking.questions, trx, request, current)
          const raised = await complete(deps, trx, request, { user, factor: current, challenge, given })
          const method = SECOND_METHODS[current.factor_type]
          return { ...raised, body: await issueTokens(asking, trx, raised.user, raised.session, method) }
        })
      return givingBack(
        () => withHooks(deps, log, raiseNow),
        async () => {
          await refundAttempt(deps.db, challenge.id)
          if (freshness.nonceHash) await refundCode(deps.db, caller.user.id, [freshness.nonceHash])
        },
      )
    })
  const verified = await endingRejected(deps, request, factor, async () => {
    const result = await verify()
    if (!result) await showWrongCode(deps, request, factor)
    return result
  })
  if (!verified) {
    return refuseProof(deps, request, { method: factor.factor_type, message: proof.refusal, cause })
  }
  const { body, recoveryCodes } = verified
  return recoveryCodes ? { ...body, recovery_codes: recoveryCodes } : body
}

async function requireOpenChallenge({ db, now }: Deps, factor: Factor, { challengeId = '', ip }: Verification) {
  const challenge = UUID.test(challengeId) ? await findChallenge(db, factor.id, challengeId, ip) : undefined
  if (!challenge) throw unknownChallenge()
  if (challenge.verified_at || !challenge.is_from_here) throw addressMismatch()
  if (challenge.expires_at > now()) return challenge
  await deleteChallenge(db, challenge.id)
  throw apiError('mfa_challenge_expired', {
    message: `MFA challenge ${challenge.id} has expired, verify against another challenge or create a new challenge.`,
  })
}

const unknownChallenge = () =>
  apiError('mfa_factor_not_found', { status: 422, message: 'MFA factor with the provided challenge ID not found' })

/** Refuses a challenge, and the first proof of a factor, that another session began which has ended since. */
async function requireStillBegun(
  deps: Deps,
  trx: Transaction<DB>,
  { id: own }: { id: string },
  { user_id: userId, status, session_id: enrolledBy }: Factor,
  { session_id: openedBy }: Challenge,
) {
  const isOver = async (sessionId: string) =>
    sessionId !== own && !(await isRequesterAccepted(deps, trx, { userId, sessionId }))
  if (status === 'unverified' && (await isOver(enrolledBy))) throw apiError('mfa_factor_not_found')
  if (await isOver(openedBy)) throw unknownChallenge()
}

const addressMismatch = () => apiError('mfa_ip_address_mismatch')

async function complete(
  deps: Deps,
  trx: Transaction<DB>,
  { log, caller }: FactorRequest,
  { user, factor, challenge, given }: { user: User; factor: Factor; challenge: Challenge; given: Verification },
) {
  const isFirst = factor.status === 'unverified'
  if (isFirst) {
    // Checked again: several may have been enrolled while one was allowed.
    requireCapacity(deps.config, user.factors ?? [])
    await changeFactor(trx, factor, { status: 'verified' }, deps.now())
    // A change of address requested before had less proof than is required from now on.
    await endTokens(trx, user.id, 'changes', deps.now())
    const details = { FactorType: factor.factor_type }
    await notify(deps, trx, user, 'mfa_factor_enrolled_notification', details, given)
  }
  await deleteUnverified(trx, user.id, factor.factor_type)
  const traits = { factor_id: factor.id, factor_type: factor.factor_type, challenge_id: challenge.id }
  await audit(deps, trx, log, { action: 'verification_attempted', actor: user, traits })
  const recoveryCodes = isFirst ? await giveFirstRecoveryCodes(deps, trx, user) : undefined
  const proof = { factorId: factor.id, method: SECOND_METHODS[factor.factor_type] }
  const raised = await raise(deps, trx, caller, proof, isFirst ? EVERY : NONE)
  return { ...raised, recoveryCodes }
}
