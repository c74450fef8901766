import type { Transaction } from 'kysely'
import { markReleased, originalOf } from '../../core/sources/sources.store.ts'
import { type EmitDeps, emitEvent } from '../../core/webhooks/emit-event.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { dropReference } from '../../store/blobs/blobs.store.ts'
import { queueExtras } from './add-extras.ts'

type PublishDeps = Pick<Deps, 'announcements' | 'queue'> & EmitDeps

/**
 * Announces that a source is ready. Runs in the transaction that makes it so; `withExtras` is `mayQueueExtras` before
 * it.
 */
export async function publish(deps: PublishDeps, trx: Transaction<DB>, id: string, withExtras = false): Promise<void> {
  await deps.announcements.send(trx, id)
  await emitEvent(deps, trx, 'media.ready', { sourceId: id })
  if (withExtras) await queueExtras(deps, trx, id)
}

/** Makes a held source ready. False when it was decided before. */
export async function release(
  deps: PublishDeps,
  trx: Transaction<DB>,
  id: string,
  withExtras = false,
): Promise<boolean> {
  const released = await markReleased(trx, id, deps.now())
  if (!released) return false
  await dropReference(trx, originalOf(released), deps.now())
  await publish(deps, trx, id, withExtras)
  return true
}
