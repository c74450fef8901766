// Stores a report of a visitor, and decides when reports hide a clip: at MEDIA_REPORT_HIDE_AT open reports, if it is
// set (config/moderation.ts).
// Tests: test/reports.test.ts, test/moderation.test.ts.
import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { countReport } from '../../metrics.ts'
import { type EmitDeps, emitToAdmins } from '../webhooks/emit-event.ts'
import type { ReportFields } from './report-fields.ts'
import { monthOf } from './reporter.ts'
import { countOpenReports, insertReport } from './reports.store.ts'

/** Open reports of one clip; a moderator needs no more, so further ones are not stored. */
const MAX_OPEN_PER_CLIP = 100

export interface NewReport {
  clipId: string
  /** Null for an unknown address. */
  reporter: Buffer | null
  fields: ReportFields
}

/**
 * Stores a report of a locked clip, unless the reporter has reported it before or many others have. Returns true if the
 * clip now has open reports of MEDIA_REPORT_HIDE_AT addresses, which hide it. Reports without an address never do.
 */
export async function storeReport(
  deps: EmitDeps & Pick<Deps, 'newId'>,
  trx: Transaction<DB>,
  { clipId, reporter, fields }: NewReport,
): Promise<boolean> {
  const now = deps.now()
  const month = new Date(`${monthOf(now)}-01T00:00:00Z`)
  const before = await countOpenReports(trx, clipId, month)
  if (before.open >= MAX_OPEN_PER_CLIP) return false
  const id = deps.newId()
  const isNew = await insertReport(trx, { id, clip_id: clipId, ...fields, reporter, created_at: now })
  if (!isNew) return false
  const report = { id, reason: fields.reason }
  await emitToAdmins(deps, trx, 'media.reported', [{ id: clipId, report, open_reports: before.open + 1 }])
  countReport(fields.reason)
  const { hideAt } = deps.config.moderation
  // One address counts once: the index excludes a second report, and its hash changes with the month.
  return reporter !== null && hideAt !== undefined && before.reporters + 1 >= hideAt
}
