import { ApiError } from '@services/common/errors'
import { findShownClip } from '../../core/clip-access/find-public-clip.ts'
import type { LinkQuery } from '../../core/clip-access/share-links.ts'
import { lockClip } from '../../core/clips/clips.store.ts'
import { afterDecision, hideAndNotify, record } from '../../core/lifecycle/moderate.ts'
import { MAX_OPEN_PER_CLIP, type ReportFields } from '../../core/reports/report.ts'
import { monthOf } from '../../core/reports/reporter.ts'
import { countOpenReports, insertReport } from '../../core/reports/reports.store.ts'
import { emitToAdmins } from '../../core/webhooks/emit-event.ts'
import type { Deps } from '../../deps.ts'
import { countReport } from '../../metrics.ts'

interface NewReport {
  clipId: string
  query: LinkQuery
  /** Null for an unknown address. */
  reporter: Buffer | null
  fields: ReportFields
}

/** Stores a report of a clip that the visitor may see, unless the reporter has reported it before or many others have. */
export async function fileReport(deps: Deps, { clipId, query, reporter, fields }: NewReport): Promise<void> {
  const isShown = await findShownClip(deps, clipId, { target: 'page', query }).then(
    () => true,
    (error) => {
      if (error instanceof ApiError && error.status < 500) return false
      throw error
    },
  )
  if (!isShown) return
  const isHidden = await deps.db.transaction().execute((trx) => storeReport(deps, trx, { clipId, reporter, fields }))
  if (isHidden) afterDecision(deps, [clipId], BY_REPORTS)
}

const BY_REPORTS = { action: 'hide', origin: 'reports', reason: 'reports', note: null, tokenId: null } as const

/** Returns true if this report hides the clip. */
async function storeReport(
  deps: Deps,
  trx: Parameters<typeof lockClip>[0],
  { clipId, reporter, fields }: Omit<NewReport, 'query'>,
): Promise<boolean> {
  // Reports of one clip take turns, so that the counts are exact.
  const clip = await lockClip(trx, clipId)
  if (!clip || clip.hidden_at) return false
  const now = deps.now()
  const month = new Date(`${monthOf(now)}-01T00:00:00Z`)
  const before = await countOpenReports(trx, clipId, month)
  if (before.open >= MAX_OPEN_PER_CLIP) return false
  const id = deps.newId()
  const isNew = await insertReport(trx, { id, clip_id: clipId, ...fields, reporter, created_at: now })
  if (!isNew) return false
  const open = before.open + 1
  await emitToAdmins(deps, trx, 'media.reported', [
    { id: clipId, report: { id, reason: fields.reason }, open_reports: open },
  ])
  countReport(fields.reason)
  const { hideAt } = deps.config.moderation
  // One address counts once: the index excludes a second report, and its hash changes with the month.
  const reporters = before.reporters + (reporter ? 1 : 0)
  if (!reporter || hideAt === undefined || reporters < hideAt) return false
  await hideAndNotify(deps, trx, [clipId], BY_REPORTS)
  await record(deps, trx, [clipId], BY_REPORTS)
  return true
}
