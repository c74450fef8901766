import { deleteRenditions } from '../../core/clips/renditions.store.ts'
import { deleteAbandonedSource } from '../../core/sources/source-clips.store.ts'
import { lockProcessing, originalOf, type SourceRow } from '../../core/sources/sources.store.ts'
import type { Deps } from '../../deps.ts'
import { dropReferences } from '../../store/blobs/blobs.store.ts'
import { deleteIfUnreferenced } from '../../store/blobs/keep-files.ts'

/**
 * Deletes a source without a clip. False when a new clip has attached to it first; a later one waits for this
 * transaction.
 */
export async function dropAbandoned(deps: Deps, source: SourceRow): Promise<boolean> {
  const { id } = source
  const original = originalOf(source)
  const isDropped = await deps.db.transaction().execute(async (trx) => {
    const isAbandoned = (await lockProcessing(trx, id))?.clip_count === 0
    if (!isAbandoned) return false
    const first = await deleteRenditions(trx, id)
    await deleteAbandonedSource(trx, id)
    await dropReferences(trx, [...first, original], deps.now())
    return true
  })
  if (!isDropped) return false
  await deleteIfUnreferenced(deps, original)
  deps.log.info({ sourceId: id }, 'transcode skipped: clip deleted')
  return true
}
