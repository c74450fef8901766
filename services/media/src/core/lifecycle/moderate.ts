// Decisions about clips: of a moderator, of the number of reports, of the scanner. A decision is one transaction, so
// that a killed process leaves all of it or nothing. Locks: bytes, clips, sources, files. Tests:
// test/moderation.test.ts.
import type { Transaction } from 'kysely'
import type { DB, HiddenReason } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { countModeration } from '../../metrics.ts'
import { recordAct } from '../audit/audit.ts'
import { lockClip } from '../clips/clips.store.ts'
import {
  deleteBlocked,
  findFileHash,
  hashesOfFiles,
  insertBlocked,
  lockDescendants,
} from '../reports/blocked-bytes.store.ts'
import { insertModerations, type Moderation } from '../reports/moderations.store.ts'
import { closeReports, findReport } from '../reports/reports.store.ts'
import { lockSources, overruleVerdict } from '../sources/sources.store.ts'
import { type EmitDeps, emitEvent, emitToAdmins } from '../webhooks/emit-event.ts'
import { softDeleteClipRows } from './delete-clip.store.ts'
import { softDeleteIn } from './delete-clip.ts'
import { failSourceIn } from './fail-source.ts'
import { hideClips, lockClipsOf, markNsfw, unhideClip } from './moderate.store.ts'

type Evicting = { knownFiles: Pick<Deps['knownFiles'], 'evict'> }
export type ModerateDeps = Pick<Deps, 'db' | 'announcements'> & EmitDeps & Evicting

export type Decision = Pick<Moderation, 'action' | 'origin' | 'note'> & {
  tokenId: string | null
  /** Account of the machine whose command decides. */
  operator?: string | null
  /** Address of the moderator's client. */
  address?: string | null
  /** Reason class of a clip that is hidden; the report's own if absent. */
  reason?: HiddenReason | undefined
}

/**
 * Decides about one clip, and answers its open reports; `dismiss` answers one report alone. Throws gone for a deleted
 * clip, whose bytes can still be blocked and allowed. Throws not_found and already_decided for a report, and not_found
 * if `unblock` finds no bytes.
 */
export async function moderate(
  deps: ModerateDeps,
  { clipId, reportId }: { clipId: string; reportId?: string },
  decision: Decision,
): Promise<void> {
  const ids = await deps.db.transaction().execute(async (trx) => {
    const bytes = decision.action === 'block' ? await lockBytesOfClip(trx, clipId) : undefined
    const isThere = (await lockClip(trx, clipId)) !== undefined
    if (!isThere && !bytes && decision.action !== 'unblock') throw apiError('gone')
    const reason = decision.reason ?? (reportId ? await requireOpen(trx, reportId) : undefined)
    const ids = bytes
      ? await blockBytes(deps, trx, { ...bytes, clipId })
      : await apply(deps, trx, clipId, { ...decision, reason })
    const which = reportId && decision.action === 'dismiss' ? { id: reportId } : { clipIds: ids }
    await record(deps, trx, ids, { ...decision, reason, answers: which })
    await auditDecision(deps, trx, { clipId, reportId, clips: ids.length }, { ...decision, reason })
    return ids
  })
  afterDecision(deps, ids, decision)
}

/**
 * Records a decision of an admin or a command in the audit log, too. Neither record can replace the other. That of each
 * clip has the note, and is deleted with the clip. The entry has no texts, outlives the clip, and may end before it.
 * The scanner and the number of reports have no entry.
 */
async function auditDecision(
  deps: Pick<Deps, 'now' | 'newId'>,
  trx: Transaction<DB>,
  { clipId, reportId, clips }: { clipId: string; reportId: string | undefined; clips: number },
  { action: decision, reason, tokenId, operator, address = null }: Decision,
): Promise<void> {
  const by = tokenId
    ? { origin: 'admin' as const, tokenId, address }
    : operator
      ? { origin: 'cli' as const, operator }
      : undefined
  if (!by) return
  const details = { decision, clips, ...(reason && { reason }), ...(reportId && { report: reportId }) }
  await recordAct(deps, trx, by, { action: 'clip_moderated', target: clipId, details })
}

/** Lets caches forget the clips; call it after the commit. */
export function afterDecision(
  deps: Evicting,
  ids: readonly string[],
  { action, origin }: Pick<Decision, 'action' | 'origin'>,
): void {
  for (const id of ids) deps.knownFiles.evict(id)
  countModeration(action, origin)
}

async function lockBytesOfClip(trx: Transaction<DB>, clipId: string) {
  const sha256 = await findFileHash(trx, clipId)
  if (!sha256) throw apiError('gone')
  return lockDescendants(trx, sha256)
}

/** Returns the reason of the report. */
async function requireOpen(trx: Transaction<DB>, id: string): Promise<HiddenReason> {
  const report = await findReport(trx, id)
  if (!report) throw apiError('not_found')
  if (report.state !== 'open') throw apiError('already_decided')
  return report.reason
}

/** Returns the clips that the decision is about. */
async function apply(
  deps: ModerateDeps,
  trx: Transaction<DB>,
  id: string,
  { action, reason = 'other', origin }: Pick<Decision, 'action' | 'reason' | 'origin'>,
): Promise<string[]> {
  if (action === 'hide') await hideAndNotify(deps, trx, [id], { reason, origin })
  if (action === 'unhide' && (await unhideClip(trx, id))) {
    await overruleVerdict(trx, id, 'hide')
    await emitToAdmins(deps, trx, 'media.unhidden', [{ id, state: 'unhidden' }])
  }
  if (action === 'nsfw') await markNsfw(trx, [id], true)
  if (action === 'safe') {
    await markNsfw(trx, [id], false)
    await overruleVerdict(trx, id, 'nsfw')
  }
  if (action === 'delete') await softDeleteIn(deps, trx, id, 'removed')
  if (action === 'unblock' && !(await deleteBlocked(trx, id))) {
    throw apiError('not_found', { message: 'No bytes are blocked with this clip.' })
  }
  return [id]
}

/** Hides locked clips. */
export async function hideAndNotify(
  deps: EmitDeps,
  trx: Transaction<DB>,
  ids: readonly string[],
  { reason, origin }: { reason: HiddenReason; origin: Moderation['origin'] },
): Promise<void> {
  const hidden = await hideClips(trx, ids, { reason, now: deps.now() })
  const events = hidden.map((id) => ({ id, state: 'hidden', reason, origin }))
  await emitToAdmins(deps, trx, 'media.hidden', events)
}

/**
 * Refuses these files from now on, and ends their clips: ready ones are deleted, processing ones fail with
 * blocked_content. The caller holds the locks of the bytes, so that no further clip joins. Returns the clips, first
 * `clipId`, which may be deleted.
 */
export async function blockBytes(
  deps: ModerateDeps,
  trx: Transaction<DB>,
  { hashes, sourceIds, clipId }: { hashes: readonly string[]; sourceIds: readonly string[]; clipId: string },
): Promise<string[]> {
  const now = deps.now()
  const clips = await lockClipsOf(trx, sourceIds)
  const sources = await lockSources(trx, sourceIds)
  // Files that a worker has stored meanwhile.
  const made = await hashesOfFiles(trx, sourceIds)
  await insertBlocked(trx, [...new Set([...hashes, ...made])], { clipId, now })
  for (const { id, state } of sources) {
    if (state === 'processing') await failSourceIn(deps, trx, id, { code: 'blocked_content', details: undefined })
    if (state === 'ready') await emitEvent(deps, trx, 'media.deleted', { sourceId: id, reason: 'blocked' })
  }
  const ready = new Set(sources.flatMap(({ id, state }) => (state === 'ready' ? id : [])))
  const ended = clips.filter(({ sourceId }) => ready.has(sourceId))
  await softDeleteClipRows(trx, ended, now)
  // The named clip is not among them if it is deleted or its source failed.
  return [...new Set([clipId, ...clips.map(({ id }) => id)])]
}

/** Records the decision for each clip, and closes the reports that it answers. */
export async function record(
  deps: Pick<Deps, 'now' | 'newId'>,
  trx: Transaction<DB>,
  clipIds: readonly string[],
  {
    action,
    origin,
    reason,
    note,
    tokenId,
    operator = null,
    answers,
  }: Decision & { answers?: Parameters<typeof closeReports>[1] | undefined },
): Promise<void> {
  const common = { action, origin, reason: reason ?? null, note, token_id: tokenId, operator, created_at: deps.now() }
  const rows = clipIds.map((clipId) => ({ ...common, id: deps.newId(), clip_id: clipId }))
  await insertModerations(trx, rows)
  if (answers && rows[0]) await closeReports(trx, answers, rows[0].id)
}
