import { ApiError } from '@services/common/errors'
import { findShownClip } from '../../core/clip-access/find-public-clip.ts'
import type { LinkQuery } from '../../core/clip-access/share-links.ts'
import { lockClip } from '../../core/clips/clips.store.ts'
import { afterDecision, hideAndNotify, record } from '../../core/lifecycle/moderate.ts'
import { type NewReport, storeReport } from '../../core/reports/store-report.ts'
import type { Deps } from '../../deps.ts'

/** Stores a report of a clip that the visitor may see; enough of them hide it. */
export async function fileReport(deps: Deps, { query, ...report }: NewReport & { query: LinkQuery }): Promise<void> {
  const { clipId } = report
  const isShown = await findShownClip(deps, clipId, { target: 'page', query }).then(
    () => true,
    (error) => {
      if (error instanceof ApiError && error.status < 500) return false
      throw error
    },
  )
  if (!isShown) return
  const isHidden = await deps.db.transaction().execute(async (trx) => {
    // Reports of one clip take turns, so that the counts are exact.
    const clip = await lockClip(trx, clipId)
    if (!clip || clip.hidden_at || !(await storeReport(deps, trx, report))) return false
    await hideAndNotify(deps, trx, [clipId], BY_REPORTS)
    await record(deps, trx, [clipId], BY_REPORTS)
    return true
  })
  if (isHidden) afterDecision(deps, [clipId], BY_REPORTS)
}

const BY_REPORTS = { action: 'hide', origin: 'reports', reason: 'reports', note: null, tokenId: null } as const
