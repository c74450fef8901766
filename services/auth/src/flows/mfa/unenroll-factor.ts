import type { Transaction } from 'kysely'
import { audit } from '../../core/audit/audit.ts'
import { removeFactor } from '../../core/factors/remove-factor.ts'
import type { ActName } from '../../core/freshness/acts.ts'
import { performActs } from '../../core/freshness/require-fresh.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { type FactorRequest, requireFactor } from './require-factor.ts'

/** Removes a factor (contract/auth-external.md 4.5). */
export async function unenrollFactor(
  deps: Deps,
  asked: FactorRequest,
  factorId: string,
  acceptLanguage: string | undefined,
): Promise<{ id: string }> {
  const { log, caller } = asked
  const found = await requireFactor(deps.db, caller.user, factorId)
  const find = async (trx: Transaction<DB>) => {
    const factor = await requireFactor(trx, caller.user, found.id)
    // Verified meanwhile: the caller asked to remove an unverified one.
    if (factor.status !== found.status) throw apiError('conflict', { message: 'The factor was proven meanwhile' })
    return factor
  }
  // An unverified factor protects nothing, so its removal needs no proof.
  const acts: ActName[] = found.status === 'verified' ? ['removing a proven factor'] : []
  return performActs(deps, asked, acts, find, async (trx, user, factor) => {
    await removeFactor(deps, trx, user, factor, acceptLanguage)
    const traits = { factor_id: factor.id, factor_type: factor.factor_type, factor_status: factor.status }
    await audit(deps, trx, log, { action: 'factor_unenrolled', actor: user, traits })
    return { id: factor.id }
  })
}
