// Recovery codes, which the reference lacks: paths and shapes are those of mfa.recoveryCodes in auth-js. A set needs a
// verified factor and is deleted with the last one; its codes are shown once, when made.
import { createHash } from 'node:crypto'
import { ApiError } from '@services/common/errors'
import type { Kysely, Transaction } from 'kysely'
import { type Static, Type } from 'typebox'
import { SECOND_METHODS } from '../../core/amr/second-methods.ts'
import { audit } from '../../core/audit/audit.ts'
import { hasVerifiedFactor } from '../../core/factors/assurance.ts'
import { requireShortName } from '../../core/factors/factor-name.ts'
import { listFactors, USUAL_NAME } from '../../core/factors/factors.store.ts'
import {
  deleteRecoveryCodes,
  findRecoveryCodes,
  replaceRecoveryCodes,
  spendRecoveryCode,
} from '../../core/factors/recovery-codes.store.ts'
import type { ActName } from '../../core/freshness/acts.ts'
import { performActs } from '../../core/freshness/require-fresh.ts'
import { withHooks } from '../../core/hooks/questions.ts'
import { typedCode } from '../../core/one-time-tokens/typed-code.ts'
import { notify } from '../../core/outbox/notify.ts'
import { withLockedCaller } from '../../core/sessions/caller.ts'
import { issueTokens, type SessionBody } from '../../core/sessions/issue-tokens.ts'
import { EVERY } from '../../core/trusted-devices/trusted-devices.store.ts'
import type { User } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { countedAttempt, factorAttempt, raise, refuseProof } from './proof.ts'
import type { FactorRequest } from './require-factor.ts'

/** Enough for years of lost phones, few enough to write down. */
const RECOVERY_CODES = 10

/** 80 bits: too many to search, even with a stolen table of hashes. */
const CODE_CHARACTERS = 16

/** Base32 in lower case: without 0, 1, 8 and 9, which are misread as letters. */
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

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
type RecoveryCodesStatus = Static<typeof RecoveryCodesStatus>
type NewRecoveryCodes = Static<typeof NewRecoveryCodes>

async function requireSet(db: Kysely<DB>, user: User) {
  const set = await findRecoveryCodes(db, user.id)
  if (!set) throw apiError('mfa_factor_not_found', { message: 'There are no recovery codes' })
  return set
}

export async function recoveryCodesLeft({ db }: Deps, { caller }: FactorRequest): Promise<RecoveryCodesStatus> {
  const { id, total, remaining } = await requireSet(db, caller.user)
  return { id, type: 'recovery_code', total, remaining }
}

/** Gives a user their first set; undefined if they have one or sets are disabled. */
export async function giveFirstRecoveryCodes(
  deps: Deps,
  trx: Transaction<DB>,
  user: User,
): Promise<string[] | undefined> {
  if (!deps.config.mfa.recoveryCodes || (await findRecoveryCodes(trx, user.id))) return undefined
  const friendly_name = await freeName(trx, user.id)
  return giveRecoveryCodes(deps, trx, { user_id: user.id, set_id: deps.newId(), friendly_name })
}

export function makeRecoveryCodeSet(
  deps: Deps,
  request: FactorRequest,
  friendlyName: string,
): Promise<NewRecoveryCodes> {
  requireShortName(friendlyName)
  return renew(deps, request, 'making recovery codes', async (trx, user) => {
    if (await findRecoveryCodes(trx, user.id)) {
      throw apiError('mfa_verified_factor_exists', {
        message: 'Recovery codes already exist, regenerate them to replace the set',
      })
    }
    if ((await listFactors(trx, user.id)).some(({ friendly_name: name }) => name === friendlyName)) {
      throw apiError('mfa_factor_name_conflict')
    }
    return { user_id: user.id, set_id: deps.newId(), friendly_name: friendlyName }
  })
}

export function replaceRecoveryCodeSet(deps: Deps, request: FactorRequest): Promise<NewRecoveryCodes> {
  return renew(deps, request, 'replacing recovery codes', async (trx, user) => {
    const { id, friendly_name } = await requireSet(trx, user)
    return { user_id: user.id, set_id: id, friendly_name: friendly_name ?? USUAL_NAME }
  })
}

type CodeSet = { user_id: string; set_id: string; friendly_name: string }

async function renew(
  deps: Deps,
  request: FactorRequest,
  act: ActName,
  setOf: (trx: Transaction<DB>, user: User) => Promise<CodeSet>,
): Promise<NewRecoveryCodes> {
  if (!deps.config.mfa.recoveryCodes) throw apiError('mfa_recovery_codes_enroll_not_enabled')
  requireVerifiedFactor(request.caller.user)
  const find = (_: unknown, user: User) => requireVerifiedFactor(user)
  const made = await performActs(deps, request, [act], find, async (trx, user) => {
    const set = await setOf(trx, user)
    await audit(deps, trx, request.log, { action: 'recovery_codes_renewed', actor: user })
    const codes = await giveRecoveryCodes(deps, trx, set)
    const { set_id: id, friendly_name } = set
    return { id, type: 'recovery_code', friendly_name, total: codes.length, codes } as const
  })
  await deps.passwordAttempts.forget(attemptOf(request))
  return made
}

function requireVerifiedFactor(user: User): void {
  if (!hasVerifiedFactor(user)) throw apiError('mfa_recovery_codes_sole_factor')
}

export async function removeRecoveryCodes(deps: Deps, request: FactorRequest): Promise<{ id: string }> {
  await requireSet(deps.db, request.caller.user)
  return performActs(deps, request, ['removing recovery codes'], requireSet, async (trx, user, { id }) => {
    await deleteRecoveryCodes(trx, user.id)
    await audit(deps, trx, request.log, { action: 'recovery_codes_removed', actor: user })
    return { id }
  })
}

/** Uses a code up and raises the session to aal2. */
export async function useRecoveryCode(
  deps: Deps,
  request: FactorRequest,
  code: string,
  acceptLanguage: string | undefined,
): Promise<SessionBody> {
  const { log, caller } = request
  if (!deps.config.mfa.recoveryCodes) throw apiError('mfa_recovery_codes_verify_not_enabled')
  const hash = hashRecoveryCode(caller.user.id, code)
  const raised = await countedAttempt(deps, request.caller.user, attemptOf(request), () =>
    withHooks(deps, log, (asking) =>
      withLockedCaller(deps, caller, async (trx, { user }) => {
        if (!(await spendRecoveryCode(trx, user.id, hash, deps.now()))) return undefined
        const remaining = (await findRecoveryCodes(trx, user.id))?.remaining ?? 0
        await audit(deps, trx, log, { action: 'recovery_code_used', actor: user, traits: { remaining } })
        const details = { Remaining: String(remaining) }
        await notify(deps, trx, user, 'mfa_recovery_code_used_notification', details, { acceptLanguage })
        const method = SECOND_METHODS.recoveryCode
        const raised = await raise(deps, trx, caller, { factorId: null, method }, EVERY)
        return issueTokens(asking, trx, raised.user, raised.session, method)
      }),
    ),
  ).catch(throwAsLocked)
  if (!raised) {
    return refuseProof(deps, request, { method: 'recovery_code', message: 'Invalid recovery code entered' })
  }
  return raised
}

/** 80 bits cannot be guessed; attempts are delayed as for passwords all the same, under the client's error code. */
function throwAsLocked(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== 'over_request_rate_limit') throw error
  throw apiError('mfa_recovery_codes_locked', { retryAfterSeconds: error.retryAfterSeconds ?? 1 })
}

const attemptOf = (request: FactorRequest) => factorAttempt(`recovery codes ${request.caller.user.id}`, request)

/** Stores new codes, with the user locked. Only their hashes are kept. */
async function giveRecoveryCodes(deps: Deps, trx: Transaction<DB>, set: CodeSet): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, () =>
    Array.from(deps.random(CODE_CHARACTERS), (byte) => ALPHABET[byte % ALPHABET.length]).join(''),
  )
  const created_at = deps.now()
  const rows = codes.map((code) => ({ ...set, code_hash: hashRecoveryCode(set.user_id, code), created_at }))
  await replaceRecoveryCodes(trx, set.user_id, rows)
  return codes
}

/** Hashes a code, as typed in any case, with its user: equal codes have different hashes. */
const hashRecoveryCode = (userId: string, code: string): Buffer =>
  createHash('sha256')
    .update(`recovery-code\0${userId}\0${typedCode(code).toLowerCase()}`)
    .digest()

async function freeName(trx: Transaction<DB>, userId: string): Promise<string> {
  const taken = (await listFactors(trx, userId)).map(({ friendly_name: name }) => name)
  const names = [USUAL_NAME, ...taken.map((_, index) => `${USUAL_NAME} ${index + 2}`)]
  return names.find((name) => !taken.includes(name)) ?? USUAL_NAME
}
