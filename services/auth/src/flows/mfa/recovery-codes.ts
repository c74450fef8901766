// Recovery codes, which the reference lacks: paths and shapes are those of mfa.recoveryCodes in auth-js. A set needs a verified
// factor and is deleted with the last one; its codes are shown once, when made.
import { ApiError } from '@services/common/errors'
import type { Transaction } from 'kysely'
import { type Static, Type } from 'typebox'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import { type RefusalLog, recordRefusal } from '../../core/audit/sign-in-attempt.ts'
import { hasVerifiedFactor, SECOND_METHODS } from '../../core/factors/assurance.ts'
import { requireShortName } from '../../core/factors/factor-name.ts'
import { listFactors, USUAL_NAME } from '../../core/factors/factors.store.ts'
import {
  deleteRecoveryCodes,
  findRecoveryCodes,
  type NewRecoveryCodeSet,
  replaceRecoveryCodes,
  spendRecoveryCode,
} from '../../core/factors/recovery-codes.store.ts'
import { hashRecoveryCode, makeRecoveryCodes } from '../../core/factors/recovery-codes.ts'
import type { ActName } from '../../core/freshness/acts.ts'
import { type GivenProof, requireFresh, requireSecondFactor, spendNonce } from '../../core/freshness/require-fresh.ts'
import type { PasswordAttempt } from '../../core/limits/password-attempts.ts'
import { notify } from '../../core/outbox/notify.ts'
import type { SessionBody } from '../../core/sessions/answer-session.ts'
import { answerSession } from '../../core/sessions/answer-session.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import { withLockedCaller } from '../../core/sessions/caller.ts'
import type { User } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { factorAttempt } from './proof.ts'
import { type RaisedSession, raise } from './raise.ts'

const SetFields = { id: Type.String({ format: 'uuid' }), type: Type.Literal('recovery_code') }
export const RecoveryCodesStatus = Type.Object({ ...SetFields, total: Type.Integer(), remaining: Type.Integer() })
export const NewRecoveryCodes = Type.Object(
  {
    ...SetFields,
    friendly_name: Type.String(),
    total: Type.Integer(),
    codes: Type.Array(Type.String(), { description: 'Recovery codes; shown once.' }),
  },
  { title: 'RecoveryCodes' },
)
type NewRecoveryCodes = Static<typeof NewRecoveryCodes>

export async function recoveryCodesLeft(
  { db }: Deps,
  { user }: LiveCaller,
): Promise<Static<typeof RecoveryCodesStatus>> {
  const set = await findRecoveryCodes(db, user.id)
  if (!set) throw noCodes()
  return { id: set.id, type: 'recovery_code', total: set.total, remaining: set.remaining }
}

/** Gives a user their first set; undefined if they have one or sets are disabled. */
export async function giveFirstRecoveryCodes(
  deps: Deps,
  trx: Transaction<DB>,
  user: Pick<User, 'id'>,
): Promise<string[] | undefined> {
  if (!deps.config.mfa.recoveryCodes || (await findRecoveryCodes(trx, user.id))) return undefined
  const friendlyName = await freeName(trx, user.id)
  return giveRecoveryCodes(deps, trx, { id: deps.newId(), userId: user.id, friendlyName })
}

export function makeRecoveryCodeSet(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  proof: GivenProof,
  givenName: string,
): Promise<NewRecoveryCodes> {
  const friendlyName = givenName || USUAL_NAME
  requireShortName(friendlyName)
  return renew(deps, log, caller, proof, 'making recovery codes', async (trx, user) => {
    if (await findRecoveryCodes(trx, user.id)) {
      throw apiError('mfa_verified_factor_exists', {
        message: 'Recovery codes already exist, regenerate them to replace the set',
      })
    }
    if ((await listFactors(trx, user.id)).some(({ friendly_name: name }) => name === friendlyName)) {
      throw apiError('mfa_factor_name_conflict')
    }
    return { id: deps.newId(), userId: user.id, friendlyName }
  })
}

export function replaceRecoveryCodeSet(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  proof: GivenProof,
): Promise<NewRecoveryCodes> {
  return renew(deps, log, caller, proof, 'replacing recovery codes', async (trx, user) => {
    const set = await findRecoveryCodes(trx, user.id)
    if (!set) throw noCodes()
    return { id: set.id, userId: user.id, friendlyName: set.friendly_name ?? USUAL_NAME }
  })
}

type CodeSet = Pick<NewRecoveryCodeSet, 'id' | 'userId' | 'friendlyName'>

async function renew(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  proof: GivenProof,
  act: ActName,
  setOf: (trx: Transaction<DB>, user: User) => Promise<CodeSet>,
): Promise<NewRecoveryCodes> {
  if (!deps.config.mfa.recoveryCodes) throw apiError('mfa_recovery_codes_enroll_not_enabled')
  if (!hasVerifiedFactor(caller.user)) throw apiError('mfa_recovery_codes_sole_factor')
  requireSecondFactor(deps.config, [act], caller.user, caller.session)
  const freshness = await requireFresh(deps, caller, [act], proof)
  const made = await withLockedCaller(deps, caller, async (trx, { user, session }) => {
    if (!hasVerifiedFactor(user)) throw apiError('mfa_recovery_codes_sole_factor')
    requireSecondFactor(deps.config, [act], user, session)
    await spendNonce(trx, user.id, freshness)
    const set = await setOf(trx, user)
    await audit(deps, trx, log, { action: 'recovery_codes_renewed', actor: user })
    return { ...set, codes: await giveRecoveryCodes(deps, trx, set) }
  })
  await deps.limits.resetPasswordAttempts(tryOf(caller, proof.clientAddress))
  const { id, friendlyName, codes } = made
  return { id, type: 'recovery_code', friendly_name: friendlyName, total: codes.length, codes }
}

export async function removeRecoveryCodes(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  proof: GivenProof,
): Promise<{ id: string }> {
  const acts = ['removing recovery codes'] as const
  if (!(await findRecoveryCodes(deps.db, caller.user.id))) throw noCodes()
  requireSecondFactor(deps.config, acts, caller.user, caller.session)
  const freshness = await requireFresh(deps, caller, acts, proof)
  return withLockedCaller(deps, caller, async (trx, { user, session }) => {
    const set = await findRecoveryCodes(trx, user.id)
    if (!set) throw noCodes()
    requireSecondFactor(deps.config, acts, user, session)
    await spendNonce(trx, user.id, freshness)
    await deleteRecoveryCodes(trx, user.id)
    await audit(deps, trx, log, { action: 'recovery_codes_removed', actor: user })
    return { id: set.id }
  })
}

/** Uses a code up and raises the session to aal2. */
export async function useRecoveryCode(
  deps: Deps,
  log: RefusalLog,
  caller: LiveCaller,
  given: { code: string; clientAddress: string | undefined; acceptLanguage: string | undefined },
): Promise<SessionBody> {
  if (!deps.config.mfa.recoveryCodes) throw apiError('mfa_recovery_codes_verify_not_enabled')
  const hash = hashRecoveryCode(caller.user.id, given.code)
  let raised: RaisedSession | undefined
  const isRight = await countedAttempt(deps, tryOf(caller, given.clientAddress), async () => {
    raised = await withLockedCaller(deps, caller, async (trx, { user, session }) => {
      if (!(await spendRecoveryCode(trx, user.id, hash, deps.now()))) return undefined
      const remaining = (await findRecoveryCodes(trx, user.id))?.remaining ?? 0
      const event = { action: 'recovery_code_used', actor: user, traits: { remaining } } as const
      await audit(deps, trx, log, event)
      const details = { Remaining: String(remaining) }
      await notify(deps, trx, user, 'mfa_recovery_code_used_notification', details, given)
      const ids = { userId: user.id, sessionId: session.id, factorId: null }
      return raise(deps, trx, ids, SECOND_METHODS.recoveryCode)
    })
    return raised !== undefined
  })
  if (!isRight || !raised) {
    const refusal = apiError('mfa_verification_failed', { message: 'Invalid recovery code entered' })
    await recordRefusal(deps, log, { method: 'recovery_code', actor: caller.user }, refusal)
    throw refusal
  }
  return answerSession(deps, raised.user, raised.session)
}

/** Stores new codes, with the user locked. Only their hashes are kept. */
async function giveRecoveryCodes(deps: Deps, trx: Transaction<DB>, set: CodeSet): Promise<string[]> {
  const codes = makeRecoveryCodes(deps.random)
  const hashes = codes.map((code) => hashRecoveryCode(set.userId, code))
  await replaceRecoveryCodes(trx, { ...set, hashes, now: deps.now() })
  return codes
}

async function freeName(trx: Transaction<DB>, userId: string): Promise<string> {
  const taken = (await listFactors(trx, userId)).map(({ friendly_name: name }) => name)
  const names = [USUAL_NAME, ...taken.map((_, index) => `${USUAL_NAME} ${index + 2}`)]
  return names.find((name) => !taken.includes(name)) ?? USUAL_NAME
}

const noCodes = () => apiError('mfa_factor_not_found', { message: 'There are no recovery codes' })

const tryOf = ({ user, session }: LiveCaller, address: string | undefined): PasswordAttempt =>
  factorAttempt(`recovery codes ${user.id}`, session, address)

/** 80 bits cannot be guessed; attempts are still delayed as for passwords, under the client's error code. */
async function countedAttempt(
  { limits }: Deps,
  subject: PasswordAttempt,
  attempt: () => Promise<boolean>,
): Promise<boolean> {
  try {
    return await limits.attemptPassword(subject, attempt)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'over_request_rate_limit') throw error
    throw apiError('mfa_recovery_codes_locked', { retryAfterSeconds: error.retryAfterSeconds ?? 1 })
  }
}
