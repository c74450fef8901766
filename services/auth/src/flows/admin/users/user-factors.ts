import type { Transaction } from 'kysely'
import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { deleteChallengesOf } from '../../../core/factors/challenges.store.ts'
import { requireShortName } from '../../../core/factors/factor-name.ts'
import { changeFactor, type Factor, type FactorChanges, listFactors } from '../../../core/factors/factors.store.ts'
import { deleteRecoveryCodes } from '../../../core/factors/recovery-codes.store.ts'
import { removeFactor } from '../../../core/factors/remove-factor.ts'
import type { NotifyDeps } from '../../../core/outbox/notify.ts'
import { endDevices } from '../../../core/trusted-devices/trusted-devices.store.ts'
import { parsePhone } from '../../../core/users/phone-number.ts'
import { type FactorBody, toFactorBody } from '../../../core/users/user-shape.ts'
import { lockAndReadUser, type User } from '../../../core/users/users.store.ts'
import type { DB } from '../../../db/tables.ts'
import { UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'

type FactorDeps = NotifyDeps & Pick<Deps, 'db' | 'newRowId' | 'config'>

interface FactorUpdate {
  userId: string
  factorId: string
  friendlyName: string | undefined
  phone: string | undefined
}

/**
 * Removes a factor or the recovery codes, proven or not. Throws validation_failed or mfa_factor_not_found, both 404.
 */
export function deleteUserFactor(
  deps: FactorDeps,
  log: AuditLog,
  actor: Actor,
  userId: string,
  factorId: string,
): Promise<FactorBody> {
  return withUser(deps, userId, factorId, async (trx, user, id) => {
    const shown = shownFactor(user, id)
    if (shown.factor_type === 'recovery_code') await deleteRecoveryCodes(trx, user.id)
    else await removeFactor(deps, trx, user, await requireRow(trx, user.id, id), undefined)
    const traits = { factor_id: id, factor_type: shown.factor_type }
    await audit(deps, trx, log, { action: 'factor_deleted', actor, target: user, traits })
    return shown
  })
}

export function updateUserFactor(deps: Deps, log: AuditLog, actor: Actor, update: FactorUpdate): Promise<FactorBody> {
  const { userId, factorId, friendlyName = '' } = update
  requireShortName(friendlyName)
  const phone = update.phone ? parsePhone(update.phone) : undefined
  return withUser(deps, userId, factorId, async (trx, user, id) => {
    const factor = await requireRow(trx, user.id, id)
    const changes: FactorChanges = {}
    if (friendlyName) changes.friendly_name = friendlyName
    if (phone && factor.factor_type === 'phone') changes.phone = phone
    requireFree(await listFactors(trx, userId), factor, changes)
    if (changes.phone) {
      await deleteChallengesOf(trx, factor.id)
      if (factor.status === 'verified') await endDevices(trx, user.id)
    }
    await changeFactor(trx, factor, changes, deps.now())
    const traits = { factor_id: factor.id, factor_type: factor.factor_type }
    await audit(deps, trx, log, { action: 'factor_updated', actor, target: user, traits })
    return shownFactor((await lockAndReadUser(trx, userId)) as User, factor.id)
  })
}

/** Refuses a name or number of another factor. The lock on the user keeps both free. */
function requireFree(factors: Factor[], changed: Factor, { friendly_name: name, phone }: FactorChanges): void {
  const others = factors.filter(({ id }) => id !== changed.id)
  if (name !== undefined && others.some((factor) => factor.friendly_name === name)) {
    throw apiError('mfa_factor_name_conflict')
  }
  if (phone !== undefined && others.some((factor) => factor.phone === phone)) {
    throw apiError('mfa_verified_factor_exists', { message: 'Another factor of the user has this number' })
  }
}

/** Excludes recovery codes, which are no row of factors. */
async function requireRow(trx: Transaction<DB>, userId: string, id: string): Promise<Factor> {
  const factor = (await listFactors(trx, userId)).find((row) => row.id === id)
  if (!factor) throw apiError('mfa_factor_not_found')
  return factor
}

type Work = (trx: Transaction<DB>, user: User, factorId: string) => Promise<FactorBody>

/** Runs `work` with the user locked and the id in the stored case. */
function withUser({ db }: Pick<Deps, 'db'>, userId: string, factorId: string, work: Work): Promise<FactorBody> {
  if (!UUID.test(factorId)) {
    throw apiError('validation_failed', { status: 404, message: 'factor_id must be an UUID' })
  }
  return db.transaction().execute(async (trx) => {
    const user = await lockAndReadUser(trx, userId)
    if (!user) throw apiError('user_not_found', { status: 404, message: 'User not found' })
    return work(trx, user, factorId.toLowerCase())
  })
}

function shownFactor(user: User, id: string): FactorBody {
  const shown = user.factors?.find((factor) => factor.id === id)
  if (!shown) throw apiError('mfa_factor_not_found')
  return toFactorBody(shown)
}
