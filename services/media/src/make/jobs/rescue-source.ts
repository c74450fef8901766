import { countRequeue, lockProcessing } from '../../core/clips/sources.store.ts'
import type { EmitDeps } from '../../core/webhooks/emit-event.ts'
import type { Deps } from '../../deps.ts'
import { failSource } from './fail-source.ts'
import { DEAD_TRANSCODE_QUEUE, shareOf, TRANSCODE_QUEUE, type TranscodeJob } from './transcode-queue.ts'

/** A job that is lost once was an accident; one that is lost each time is a fault that a fourth one will not mend. */
const MOST_REQUEUES = 3

/**
 * Whatever becomes of jobs (deleted by hand or by a restored backup, kept too long, lost with the dead), an accepted clip
 * ends: a source that is being made without a job is queued again, and failed (`internal`) when that happens too often.
 */
export async function rescueSource(
  deps: Pick<Deps, 'db' | 'blobs' | 'queue' | 'resultsChannel' | 'log'> & EmitDeps,
  id: string,
): Promise<void> {
  const job: TranscodeJob = { sourceId: id }
  const outcome = await deps.db.transaction().execute(async (trx) => {
    const source = await lockProcessing(trx, id)
    if (!source) return 'decided'
    for (const name of [TRANSCODE_QUEUE.name, DEAD_TRANSCODE_QUEUE]) {
      if (await deps.queue.has(trx, name, job)) return 'under way'
    }
    if (source.requeue_count >= MOST_REQUEUES) return 'hopeless'
    await countRequeue(trx, id)
    await deps.queue.send(trx, TRANSCODE_QUEUE.name, job, { tenant: shareOf(source.token_id) })
    return 'queued'
  })
  if (outcome === 'queued') deps.log.warn({ sourceId: id }, 'clip had lost its job and was queued again')
  if (outcome !== 'hopeless') return
  deps.log.error({ sourceId: id }, 'clip given up: its job was lost each time')
  await failSource(deps, id, { code: 'internal', details: undefined })
}
