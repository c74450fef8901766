import { type AuditLog, audit } from '../audit/audit.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { removeFactor } from '../factors/remove-factor.ts'
import type { LiveCaller } from '../sessions/caller.ts'
import { requireFactor } from './find-factor.ts'
import { withLockedCaller } from './locked-caller.ts'

/** Takes a factor away from its user (contract/auth-external.md 4.5). */
export async function unenrollFactor(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  { factorId, ip, acceptLanguage }: { factorId: string; ip: string | null; acceptLanguage: string | undefined },
): Promise<{ id: string }> {
  const { id } = await requireFactor(deps.db, caller.user, factorId)
  return withLockedCaller(deps, caller, async (trx, { user, session }) => {
    const factor = await requireFactor(trx, user, id)
    if (factor.status === 'verified' && session.aal === 'aal1') {
      throw apiError('insufficient_aal', { status: 422, message: 'AAL2 required to unenroll verified factor' })
    }
    await removeFactor(deps, trx, user, factor, acceptLanguage)
    const traits = { factor_id: factor.id, factor_type: factor.factor_type, factor_status: factor.status }
    await audit(deps, trx, log, { action: 'factor_unenrolled', actor: user, traits, ip })
    return { id: factor.id }
  })
}
