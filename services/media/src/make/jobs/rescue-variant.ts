import { type Claim, findClaim, releaseClaim, type VariantKey } from '../../core/variants/variants.store.ts'
import type { Deps } from '../../deps.ts'
import { VARIANTS_QUEUE } from './queues.ts'

/** Gives up the claim of a killed request, or of a job that was lost: the next request makes the variant. */
export async function rescueVariant({ db, queue, log }: Pick<Deps, 'db' | 'queue' | 'log'>, key: VariantKey) {
  const { sourceId, name } = key
  const isReleased = await db.transaction().execute(async (trx) => {
    const claim: Claim | undefined = await findClaim(trx, key)
    if (!claim || (await queue.has(trx, VARIANTS_QUEUE.name, { sourceId, name }))) return false
    await releaseClaim(trx, claim)
    return true
  })
  if (isReleased) log.warn({ sourceId, variant: name }, 'variant given up: its request or job was lost')
}
