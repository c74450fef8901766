import type { QueueJob } from '@services/common/queue'
import { lockProcessing, type SourceRow } from '../../core/clips/sources.store.ts'
import type { Deps } from '../../deps.ts'
import { isDiskFull } from '../../ffmpeg/machine-faults.ts'
import { StorageUnavailable } from '../../store/blobs/blob-storage.ts'
import { TRANSCODE_QUEUE, type TranscodeJob, tenantOf } from './queues.ts'

/** 24 h: long enough for an operator to free disk space or repair the storage. */
const GIVE_UP_AFTER_SECONDS = 86_400

/**
 * The delay is half the age of the source, within these bounds: a short outage costs seconds, one of a night a few
 * dozen attempts.
 */
const [SHORTEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS] = [10, 600]

export const isStorageFault = (error: unknown): boolean => isDiskFull(error) || error instanceof StorageUnavailable

/**
 * Replaces the job of a source with a later one, so that a storage fault costs it neither its turn nor an attempt.
 * Returns false once it has waited for a day.
 */
export async function postponeTranscode(
  { db, queue, now, log }: Pick<Deps, 'db' | 'queue' | 'now' | 'log'>,
  source: Pick<SourceRow, 'id' | 'created_at'>,
  { job, err }: { job: Pick<QueueJob<TranscodeJob>, 'id' | 'data'>; err: unknown },
): Promise<boolean> {
  const age = (now().getTime() - source.created_at.getTime()) / 1000
  if (age > GIVE_UP_AFTER_SECONDS) return false
  const afterSeconds = Math.round(Math.min(LONGEST_WAIT_SECONDS, Math.max(SHORTEST_WAIT_SECONDS, age / 2)))
  await db.transaction().execute(async (trx) => {
    const locked = await lockProcessing(trx, source.id)
    if (!locked) return
    const tenant = tenantOf(locked.token_id)
    await queue.send(trx, TRANSCODE_QUEUE.name, job.data, { afterSeconds, tenant, inPlaceOf: job.id })
  })
  log.error({ err, sourceId: source.id, afterSeconds }, 'transcode postponed: disk full or storage unavailable')
  return true
}
