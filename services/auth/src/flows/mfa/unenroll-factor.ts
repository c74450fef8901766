import { type AuditLog, audit } from '../../core/audit/audit.ts'
import type { Factor } from '../../core/factors/factors.store.ts'
import { removeFactor } from '../../core/factors/remove-factor.ts'
import type { ActName } from '../../core/freshness/acts.ts'
import { type GivenProof, requireFresh, requireSecondFactor, spendNonce } from '../../core/freshness/require-fresh.ts'
import { type LiveCaller, withLockedCaller } from '../../core/sessions/caller.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { requireFactor } from './require-factor.ts'

/** Removes a factor (contract/auth-external.md 4.5). */
export async function unenrollFactor(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  { factorId, acceptLanguage }: { factorId: string; acceptLanguage: string | undefined },
  given: GivenProof,
): Promise<{ id: string }> {
  const found = await requireFactor(deps.db, caller.user, factorId)
  requireSecondFactor(deps.config, actsOfRemoval(found), caller.user, caller.session)
  const freshness = await requireFresh(deps, caller, actsOfRemoval(found), given)
  return withLockedCaller(deps, caller, async (trx, { user, session }) => {
    const factor = await requireFactor(trx, user, found.id)
    // Verified meanwhile: the caller asked to remove an unverified one.
    if (factor.status !== found.status) throw apiError('conflict', { message: 'The factor was proven meanwhile' })
    requireSecondFactor(deps.config, actsOfRemoval(factor), user, session)
    await spendNonce(trx, user.id, freshness)
    await removeFactor(deps, trx, user, factor, acceptLanguage)
    const traits = { factor_id: factor.id, factor_type: factor.factor_type, factor_status: factor.status }
    await audit(deps, trx, log, { action: 'factor_unenrolled', actor: user, traits })
    return { id: factor.id }
  })
}

/** An unverified factor protects nothing, so its removal needs no proof. */
const actsOfRemoval = ({ status }: Pick<Factor, 'status'>): ActName[] =>
  status === 'verified' ? ['removing a proven factor'] : []
