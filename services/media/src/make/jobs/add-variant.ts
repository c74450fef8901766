// Makes the variants that take longer than a request waits: gif, animated webp and mp4. A job belongs to a claim; if
// that was settled or given up meanwhile, there is nothing to do. Tests: test/variants.test.ts.
import { ApiError } from '@services/common/errors'
import type { QueueJob } from '@services/common/queue/run-job'
import { findSource } from '../../core/sources/sources.store.ts'
import { type Claim, findClaim, releaseClaim, settleVariant } from '../../core/variants/variants.store.ts'
import type { Deps } from '../../deps.ts'
import { isDiskFull } from '../../ffmpeg/machine-faults.ts'
import { countVariant } from '../../metrics.ts'
import { StorageUnavailable } from '../../store/blobs/blob-storage.ts'
import { makeVariant } from '../variants/store-variant.ts'
import { changePoster } from './add-poster.ts'
import { VARIANTS_QUEUE, type VariantJob } from './queues.ts'

export async function makeVariantOfSource(deps: Deps, job: QueueJob<VariantJob>): Promise<void> {
  const { sourceId, name, variant, clipId, request } = job.data
  if (clipId && request) return changePoster(deps, job, { clipId, request })
  const [claim, source] = await Promise.all([findClaim(deps.db, { sourceId, name }), findSource(deps.db, sourceId)])
  if (!claim || source?.state !== 'ready') return
  const { info, bytes } = source
  try {
    await deps.work.withSpace(bytes, () => makeVariant(deps, claim, { info, variant, signal: job.signal }))
  } catch (err) {
    if (job.signal.aborted || job.retryCount < VARIANTS_QUEUE.retryLimit) throw err
    deps.log.error({ err, sourceId, variant: name }, 'variant not made')
    countVariant(variant.ending, 'failed')
    await giveUp(deps, claim, err)
  }
}

/**
 * After a fault of the machine the next request may claim it at once, otherwise only when its failure is an hour old.
 */
export async function giveUp({ db }: Pick<Deps, 'db'>, claim: Claim, err: unknown): Promise<void> {
  const isUnavailable = err instanceof StorageUnavailable || (err instanceof ApiError && err.status === 503)
  if (isUnavailable || isDiskFull(err)) return releaseClaim(db, claim)
  const outcome = { state: 'failed', bytes: 0, sha256: null } as const
  await db.transaction().execute((trx) => settleVariant(trx, claim, outcome))
}
