// The two ways to delete a clip: softly leaves a tombstone, hard leaves no row. Files outlive both, until their last
// clip is deleted and housekeeping runs. Tests: test/clip-life.test.ts.
import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { isExpired } from '../clips/access.ts'
import { lockClip } from '../clips/clips.store.ts'
import { hasBlocked } from '../reports/blocked-bytes.store.ts'
import { deleteFailedSource } from '../sources/source-clips.store.ts'
import { type EmitDeps, emitEvent } from '../webhooks/emit-event.ts'
import { hardDeleteClipRow, softDeleteClipRow, softDeleteClipRows, softDeleteExpiredRows } from './delete-clip.store.ts'

/**
 * Makes the clip's URLs answer 410 from now on. False when it was deleted before. With the reason `expired` it stays if
 * a visit or its owner has extended its lifetime.
 */
export async function softDeleteClip(
  deps: Pick<Deps, 'db'> & EmitDeps,
  id: string,
  {
    reason,
    alongside,
  }: { reason?: 'expired'; alongside?: ((trx: Transaction<DB>) => Promise<unknown>) | undefined } = {},
): Promise<boolean> {
  const { db, now } = deps
  return db.transaction().execute(async (trx) => {
    const clip = await lockClip(trx, id)
    if (!clip || (reason && !isExpired({ expiresAt: clip.expires_at }, now()))) return false
    await alongside?.(trx)
    return softDeleteIn(deps, trx, id, reason)
  })
}

/** The same in a transaction that has locked the clip. */
export async function softDeleteIn(
  deps: EmitDeps,
  trx: Transaction<DB>,
  id: string,
  reason?: 'expired' | 'removed',
): Promise<boolean> {
  await emitEvent(deps, trx, 'media.deleted', { clipIds: [id], reason })
  return (await softDeleteClipRow(trx, id, deps.now())) !== undefined
}

/** The same for many clips that the transaction has locked. */
export async function softDeleteClips(
  deps: EmitDeps,
  trx: Transaction<DB>,
  clips: readonly { id: string; sourceId: string | null }[],
): Promise<void> {
  await emitEvent(deps, trx, 'media.deleted', { clipIds: clips.map(({ id }) => id) })
  await softDeleteClipRows(trx, clips, deps.now())
}

/** Deletes expired clips without a token, many at once: they have no webhooks. */
export async function softDeleteExpired({ db, now }: Pick<Deps, 'db' | 'now'>, ids: readonly string[]): Promise<void> {
  await db.transaction().execute((trx) => softDeleteExpiredRows(trx, ids, now()))
}

/**
 * Deletes a failed clip. Its client got the failure as the answer, or had a week to read it. A tombstone stays if bytes
 * were blocked with the clip.
 */
export async function hardDeleteClip({ db, now }: Pick<Deps, 'db' | 'now'>, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockClip(trx, id)
    const isNeeded = await hasBlocked(trx, id)
    const sourceId = await (isNeeded ? softDeleteClipRow : hardDeleteClipRow)(trx, id, now())
    if (sourceId) await deleteFailedSource(trx, sourceId)
  })
}
