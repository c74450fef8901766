import { buryClip, eraseClip, lockClip } from './core/clips/clips.store.ts'
import { deleteFailedSource, detachFromSource } from './core/clips/sources.store.ts'
import { type EmitDeps, emitEvent } from './core/webhooks/emit-event.ts'
import type { Deps } from './deps.ts'

/**
 * Deletes a clip: its addresses answer 410 from now on. The files go once the last clip of the same bytes is deleted,
 * some minutes later. False when it was deleted before.
 */
export async function deleteClip(deps: Pick<Deps, 'db'> & EmitDeps, id: string): Promise<boolean> {
  const { db, now } = deps
  return db.transaction().execute(async (trx) => {
    if (!(await lockClip(trx, id))) return false
    await emitEvent(deps, trx, 'media.deleted', { clipId: id })
    const sourceId = await buryClip(trx, id, now())
    if (sourceId) await detachFromSource(trx, sourceId, now())
    return sourceId !== undefined
  })
}

/** Takes a failed clip back without a tombstone: its caller is told, or has had days to ask. */
export async function forgetClip({ db, now }: Pick<Deps, 'db' | 'now'>, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const sourceId = await eraseClip(trx, id)
    if (!sourceId) return
    await detachFromSource(trx, sourceId, now())
    await deleteFailedSource(trx, sourceId)
  })
}
