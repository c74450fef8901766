// Makes the optional renditions of a ready clip when the queue is idle. Extras give way to clips, before they begin and
// at any time after, and are dropped rather than delay one. Tests: test/extras*.test.ts.
import { join } from 'node:path'
import type { QueueJob } from '@services/common/queue/run-job'
import type { Transaction } from 'kysely'
import { findRenditions, insertRenditions } from '../../core/clips/renditions.store.ts'
import { addExtras, findSource, type SourceRow } from '../../core/sources/sources.store.ts'
import { mayHaveAlpha } from '../../db/media-info.ts'
import type { DB, ExtraKind } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { keepFiles } from '../../store/blobs/keep-files.ts'
import { workFiles } from '../command/work-files.ts'
import type { Rendition } from '../run/verify-renditions.ts'
import { EXTRAS_QUEUE, type ExtrasJob, TRANSCODE_QUEUE } from './queues.ts'

const LOOK_AGAIN_SECONDS = 30
/** Ten minutes without an idle moment: this machine is too busy for extras. */
const MAX_POSTPONEMENTS = 20
const TOO_BUSY = 'extras skipped: too many clips to transcode'

/** Whether extras are enabled and not too many of them wait. */
export async function mayQueueExtras({ config, queue, log }: Deps, sourceId: string): Promise<boolean> {
  if (!config.worker.extras) return false
  const { queueLimit } = config.worker
  const hasCapacity = (await queue.waiting(EXTRAS_QUEUE.name, queueLimit)) < queueLimit
  if (!hasCapacity) log.info({ sourceId }, TOO_BUSY)
  return hasCapacity
}

/** Runs in the transaction that makes the clip ready, so that no crash comes between. */
export const queueExtras = ({ queue }: Pick<Deps, 'queue'>, trx: Transaction<DB>, sourceId: string): Promise<void> =>
  queue.send(trx, EXTRAS_QUEUE.name, { sourceId } satisfies ExtrasJob)

export async function makeExtrasOfSource(deps: Deps, job: QueueJob<ExtrasJob>): Promise<void> {
  const { log, queue, atWork } = deps
  const { sourceId } = job.data
  const nextClip = atWork.untilNextClip()
  if (atWork.clips() > 0 || (await queue.waiting(TRANSCODE_QUEUE.name, 1)) > 0) return postpone(deps, job.data)
  const source = await findSource(deps.db, sourceId)
  if (source?.state !== 'ready' || source.extras.length > 0) return
  await using directory = await deps.work.newDirectory()
  try {
    const signal = AbortSignal.any([job.signal, nextClip])
    const extras = await makeOf(deps, source, directory.path, signal)
    if (extras) await storeExtras(deps, sourceId, extras)
  } catch (err) {
    if (job.signal.aborted) throw err
    if (nextClip.aborted) return await postpone(deps, job.data)
    log.warn({ err, sourceId }, 'extras not made')
  }
}

async function postpone({ db, queue, log }: Deps, { sourceId, postponed = 0 }: ExtrasJob): Promise<void> {
  if (postponed >= MAX_POSTPONEMENTS) return log.info({ sourceId }, TOO_BUSY)
  const job: ExtrasJob = { sourceId, postponed: postponed + 1 }
  const how = { afterSeconds: LOOK_AGAIN_SECONDS }
  await db.transaction().execute((trx) => queue.send(trx, EXTRAS_QUEUE.name, job, how))
}

/** Works from the renditions, because the original is deleted by now. Undefined when they are, too. */
async function makeOf(deps: Deps, { id, info }: SourceRow, directory: string, signal: AbortSignal) {
  const { mp4, jpg, webm } = await findRenditions(deps.db, id)
  if (!mp4 || !jpg || !webm) return undefined
  const fetched = [
    { extension: 'mp4', sha256: mp4.sha256, file: workFiles.input },
    { extension: 'jpg', sha256: jpg.sha256, file: workFiles.jpg },
    ...(mayHaveAlpha(info) ? [{ extension: 'webm', sha256: webm.sha256, file: workFiles.webm } as const] : []),
  ] as const
  for (const { extension, sha256, file } of fetched) {
    if (!(await deps.blobs.copyTo({ sha256, extension }, join(directory, file), signal))) return undefined
  }
  const { makeExtras } = await import('../transcode/make-extras.ts')
  const size = { width: mp4.width, height: mp4.height }
  const { durationSeconds } = info
  // A copy larger than the file it is offered before would only cost its viewers bytes.
  const mostBytes = Math.min(mp4.bytes, webm.bytes)
  return makeExtras(deps.tools, { directory, size, durationSeconds, mostBytes, signal })
}

async function storeExtras(deps: Deps, sourceId: string, extras: Partial<Record<ExtraKind, Rendition>>): Promise<void> {
  const files = (Object.entries(extras) as [ExtraKind, Rendition][]).map(([kind, file]) => ({ kind, ...file }))
  const nameOf = ({ kind, sha256 }: { kind: ExtraKind; sha256: string }) => ({ sha256, extension: kind })
  const kept = files.map((file) => ({ name: nameOf(file), path: file.path, bytes: file.bytes }))
  const kinds = files.map(({ kind }) => kind)
  await keepFiles(deps, kept, async (trx) => {
    if (!(await addExtras(trx, sourceId, kinds))) return { references: [], result: undefined }
    const rows = files.map(({ kind, sha256, bytes, width, height }) => ({ kind, sha256, bytes, width, height }))
    await insertRenditions(trx, sourceId, rows)
    return { references: files.map(nameOf), result: undefined }
  })
  deps.log.info({ sourceId, kinds }, 'extras made')
}
