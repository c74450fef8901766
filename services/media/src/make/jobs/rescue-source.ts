// Queues a source again whose job was lost, as housekeeping finds after a minute; after three such jobs it fails.
import type { Transaction } from 'kysely'
import { failSource } from '../../core/lifecycle/fail-source.ts'
import { countRequeue, lockProcessing } from '../../core/sources/sources.store.ts'
import type { EmitDeps } from '../../core/webhooks/emit-event.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { release } from './publish-source.ts'
import {
  clipTurn,
  DEAD_TRANSCODE_QUEUE,
  SCAN_QUEUE,
  scanJobOf,
  TRANSCODE_QUEUE,
  type TranscodeJob,
  tenantOf,
} from './queues.ts'

/** A job lost once is an accident; one lost three times is a fault that a fourth job will not fix. */
const MAX_REQUEUES = 3

/** Queues the source of a lost job (deleted, missing in a backup, expired) again, or fails it after MAX_REQUEUES. */
export async function rescueSource(
  deps: Pick<Deps, 'db' | 'blobs' | 'queue' | 'announcements' | 'log'> & EmitDeps,
  id: string,
): Promise<void> {
  const job = { sourceId: id } satisfies TranscodeJob
  const outcome = await deps.db.transaction().execute(async (trx) => {
    const source = await lockProcessing(trx, id)
    if (!source) return 'decided'
    if (source.held) return rescueHeld(deps, trx, id, source)
    for (const name of [TRANSCODE_QUEUE.name, DEAD_TRANSCODE_QUEUE]) {
      if (await deps.queue.has(trx, name, job)) return 'under way'
    }
    if (source.requeue_count >= MAX_REQUEUES) return 'hopeless'
    await countRequeue(trx, id)
    await deps.queue.send(trx, TRANSCODE_QUEUE.name, job, clipTurn(source.token_id, source.info))
    return 'queued'
  })
  if (outcome === 'queued') deps.log.warn({ sourceId: id }, 'clip queued again: its job was lost')
  if (outcome !== 'hopeless') return
  deps.log.error({ sourceId: id }, 'clip given up: its job was lost each time')
  await failSource(deps, id, { code: 'internal', details: undefined })
}

/** The job's own count of time begins again: a scan that was given up has failed its source. */
async function rescueHeld(
  deps: Parameters<typeof rescueSource>[0],
  trx: Transaction<DB>,
  id: string,
  { token_id: tokenId }: { token_id: string | null },
): Promise<'queued' | 'under way'> {
  if (!deps.config.moderation.scanner) {
    await release(deps, trx, id)
    return 'under way'
  }
  if (await deps.queue.has(trx, SCAN_QUEUE.name, { sourceId: id })) return 'under way'
  await deps.queue.send(trx, SCAN_QUEUE.name, scanJobOf(deps, id), { tenant: tenantOf(tokenId) })
  return 'queued'
}
