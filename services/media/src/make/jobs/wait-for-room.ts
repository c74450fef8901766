import type { QueueJob } from '@services/common/queue'
import { lockProcessing, type SourceRow } from '../../core/clips/sources.store.ts'
import type { Deps } from '../../deps.ts'
import { isDiskFull } from '../../ffmpeg/disk-full.ts'
import { StorageUnavailable } from '../../store/blobs/storage-unavailable.ts'
import { shareOf, TRANSCODE_QUEUE, type TranscodeJob } from './transcode-queue.ts'

/** Somebody is paged, sleeps, and makes room, or mends the storage. */
const ROOM_WITHIN_SECONDS = 86_400

/** Half the time it waits already, so that a moment costs seconds and a night a few dozen tries. */
const [SHORTEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS] = [10, 600]

/** Whether it was the place around it that kept a clip from being made: a full disk, or a storage that is away. */
export const lacksRoom = (error: unknown): boolean => isDiskFull(error) || error instanceof StorageUnavailable

/**
 * Queues a source anew, for later, that a full disk or a missing storage kept from being made: it loses neither its
 * turn nor one of its tries, which are for faults. False when it has waited for a day.
 */
export async function waitForRoom(
  { db, queue, now, log }: Pick<Deps, 'db' | 'queue' | 'now' | 'log'>,
  source: Pick<SourceRow, 'id' | 'created_at'>,
  { job, err }: { job: Pick<QueueJob<TranscodeJob>, 'id' | 'data'>; err: unknown },
): Promise<boolean> {
  const age = (now().getTime() - source.created_at.getTime()) / 1000
  if (age > ROOM_WITHIN_SECONDS) return false
  const afterSeconds = Math.round(Math.min(LONGEST_WAIT_SECONDS, Math.max(SHORTEST_WAIT_SECONDS, age / 2)))
  await db.transaction().execute(async (trx) => {
    const locked = await lockProcessing(trx, source.id)
    if (!locked) return
    const share = shareOf(locked.token_id)
    await queue.send(trx, TRANSCODE_QUEUE.name, job.data, { afterSeconds, share, inPlaceOf: job.id })
  })
  log.error({ err, sourceId: source.id, afterSeconds }, 'no room to make a clip, or no storage: it waits')
  return true
}
