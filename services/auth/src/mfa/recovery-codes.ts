// Codes for whoever lost their second factor; the reference has none. The one rule: a set belongs to proven factors and goes
// with the last of them; its codes are shown once, when it is made. Paths and shapes: as auth-js calls mfa.recoveryCodes.
import { ApiError } from '@services/common/errors'
import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../audit/audit.ts'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { hasVerifiedFactor, SECOND_METHODS } from '../factors/assurance.ts'
import {
  deleteRecoveryCodes,
  findRecoveryCodes,
  replaceRecoveryCodes,
  spendRecoveryCode,
} from '../factors/recovery-codes.store.ts'
import { hashRecoveryCode, makeRecoveryCodes } from '../factors/recovery-codes.ts'
import type { PasswordTry } from '../limits/password-tries.ts'
import { notify } from '../mail/notify.ts'
import { answerSession } from '../sessions/answer-session.ts'
import type { LiveCaller } from '../sessions/caller.ts'
import type { SessionBody } from '../sessions/session-shape.ts'
import type { User } from '../users/users.store.ts'
import { withLockedCaller } from './locked-caller.ts'
import { type RaisedSession, raise } from './raise.ts'

export interface RecoveryCodesStatus {
  id: string
  type: 'recovery_code'
  total: number
  remaining: number
}

export interface NewRecoveryCodes {
  id: string
  type: 'recovery_code'
  total: number
  codes: string[]
}

/** How many are left; never the codes. */
export async function recoveryCodesLeft({ db }: Deps, { user }: LiveCaller): Promise<RecoveryCodesStatus> {
  const set = await findRecoveryCodes(db, user.id)
  if (!set) throw noCodes()
  return { id: set.id, type: 'recovery_code', total: set.total, remaining: set.remaining }
}

/** For a user who has none yet; undefined: they have, or there are to be none. */
export async function giveFirstRecoveryCodes(
  deps: Deps,
  trx: Transaction<DB>,
  user: Pick<User, 'id'>,
): Promise<string[] | undefined> {
  if (!deps.config.mfa.recoveryCodes || (await findRecoveryCodes(trx, user.id))) return undefined
  return (await giveRecoveryCodes(deps, trx, user)).codes
}

/** A new set instead of what there was; `mustExist` for who wants no first one. */
export async function renewRecoveryCodes(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  { ip, clientAddress, mustExist }: { ip: string | null; clientAddress: string | undefined; mustExist: boolean },
): Promise<NewRecoveryCodes> {
  if (!deps.config.mfa.recoveryCodes) throw apiError('mfa_recovery_codes_enroll_not_enabled')
  const made = await withLockedCaller(deps, caller, async (trx, { user, session }) => {
    if (!hasVerifiedFactor(user)) throw apiError('mfa_recovery_codes_sole_factor')
    if (session.aal === 'aal1') throw apiError('insufficient_aal')
    if (mustExist && !(await findRecoveryCodes(trx, user.id))) throw noCodes()
    await audit(deps, trx, log, { action: 'recovery_codes_renewed', actor: user, ip })
    return giveRecoveryCodes(deps, trx, user)
  })
  await deps.limits.forgetPasswordTries(tryOf(caller.user, clientAddress))
  return { id: made.id, type: 'recovery_code', total: made.codes.length, codes: made.codes }
}

export function removeRecoveryCodes(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  ip: string | null,
): Promise<{ id: string }> {
  return withLockedCaller(deps, caller, async (trx, { user, session }) => {
    const set = await findRecoveryCodes(trx, user.id)
    if (!set) throw noCodes()
    if (session.aal === 'aal1') throw apiError('insufficient_aal')
    await deleteRecoveryCodes(trx, user.id)
    await audit(deps, trx, log, { action: 'recovery_codes_removed', actor: user, ip })
    return { id: set.id }
  })
}

/** Uses up a code: the same session is aal2 afterwards, as after a factor. */
export async function useRecoveryCode(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  given: { code: string; ip: string | null; clientAddress: string | undefined; acceptLanguage: string | undefined },
): Promise<SessionBody> {
  if (!deps.config.mfa.recoveryCodes) throw apiError('mfa_recovery_codes_verify_not_enabled')
  const hash = hashRecoveryCode(caller.user.id, given.code)
  let raised: RaisedSession | undefined
  const isRight = await countedTry(deps, tryOf(caller.user, given.clientAddress), async () => {
    raised = await withLockedCaller(deps, caller, async (trx, { user, session }) => {
      if (!(await spendRecoveryCode(trx, user.id, hash, deps.now()))) return undefined
      const remaining = (await findRecoveryCodes(trx, user.id))?.remaining ?? 0
      const event = { action: 'recovery_code_used', actor: user, traits: { remaining }, ip: given.ip } as const
      await audit(deps, trx, log, event)
      const details = { Remaining: String(remaining) }
      await notify(deps, trx, user, 'mfa_recovery_code_used_notification', details, given)
      const ids = { userId: user.id, sessionId: session.id, factorId: null }
      return raise(deps, trx, ids, SECOND_METHODS.recoveryCode)
    })
    return raised !== undefined
  })
  if (!isRight || !raised) throw apiError('mfa_verification_failed', { message: 'Invalid recovery code entered' })
  return answerSession(deps, raised.user, raised.session)
}

/** A new set, with the user locked; this is the only time that its codes can be read. */
async function giveRecoveryCodes(deps: Deps, trx: Transaction<DB>, user: Pick<User, 'id'>) {
  const id = deps.newId()
  const codes = makeRecoveryCodes(deps.random)
  const hashes = codes.map((code) => hashRecoveryCode(user.id, code))
  await replaceRecoveryCodes(trx, { id, userId: user.id, hashes, now: deps.now() })
  return { id, codes }
}

const noCodes = () => apiError('mfa_factor_not_found', { message: 'There are no recovery codes' })

const tryOf = ({ id }: Pick<User, 'id'>, address: string | undefined): PasswordTry => ({
  identifier: `recovery codes ${id}`,
  address,
})

/** Nobody guesses 80 bits; who tries all the same waits as for passwords, and is told so in the client's words. */
async function countedTry({ limits }: Deps, subject: PasswordTry, look: () => Promise<boolean>): Promise<boolean> {
  try {
    return await limits.passwordTry(subject, look)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'over_request_rate_limit') throw error
    throw apiError('mfa_recovery_codes_locked', { retryAfterSeconds: error.retryAfterSeconds ?? 1 })
  }
}
