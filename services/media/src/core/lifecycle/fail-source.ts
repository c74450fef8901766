import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import type { ErrorCode } from '../../errors.ts'
import { countClip, type Way } from '../../metrics.ts'
import type { BlobName } from '../../store/blobs/blob-storage.ts'
import { dropReferences } from '../../store/blobs/blobs.store.ts'
import { deleteIfUnreferenced } from '../../store/blobs/keep-files.ts'
import { deleteRenditions } from '../clips/renditions.store.ts'
import { markFailed } from '../sources/sources.store.ts'
import { type EmitDeps, emitEvent } from '../webhooks/emit-event.ts'

/**
 * Fails a source in `processing`: stores the reason, wakes waiting requests, and deletes the original and its first
 * files.
 */
export async function failSource(
  deps: Pick<Deps, 'db' | 'blobs' | 'announcements'> & EmitDeps,
  id: string,
  { code, details, way }: { code: ErrorCode; details: Record<string, unknown> | undefined; way?: Way | undefined },
): Promise<void> {
  const original = await deps.db.transaction().execute((trx) => failSourceIn(deps, trx, id, { code, details }))
  if (!original) return
  countClip(way ?? 'unknown', code)
  await deleteIfUnreferenced(deps, original)
}

/** Returns the name of the original, whose file may go after the commit; undefined if the source was decided before. */
export async function failSourceIn(
  deps: Pick<Deps, 'announcements'> & EmitDeps,
  trx: Transaction<DB>,
  id: string,
  { code, details }: { code: ErrorCode; details: Record<string, unknown> | undefined },
): Promise<BlobName | undefined> {
  const now = deps.now()
  const failed = await markFailed(trx, { id, code, details, now })
  if (!failed) return undefined
  const first = await deleteRenditions(trx, id)
  await dropReferences(trx, [...first, failed], now)
  await deps.announcements.send(trx, id)
  await emitEvent(deps, trx, 'media.failed', { sourceId: id })
  return failed
}
