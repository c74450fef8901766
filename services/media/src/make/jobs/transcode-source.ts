// This folder holds the queue's jobs; this file makes the four renditions of one source. The one rule: a worker's disk
// holds nothing that matters, so a worker may die at any line and another one repeats the job.
//
//   processing -> ready       storeRenditions, in one transaction with the references of the files;
//   processing -> failed      failSource, for a refused file, used-up attempts or lost jobs (rescue-source.ts);
//   processing -> processing  postponeTranscode, with a new job, for a full disk or unavailable storage;
//   processing -> deleted     dropAbandoned, when every clip was deleted before the transcode.
//
// Tests: test/{upload,lost-jobs,failures,s3-failures}.test.ts. Next: ../transcode/make-renditions.ts.
import type { DisposableTempDir } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { ApiError } from '@services/common/errors'
import type { QueueJob } from '@services/common/run-job'
import { insertRenditions } from '../../core/clips/renditions.store.ts'
import {
  deleteAbandonedSource,
  findSource,
  lockProcessing,
  markReady,
  originalOf,
  type SourceRow,
  setProgress,
} from '../../core/clips/sources.store.ts'
import { emitEvent } from '../../core/webhooks/emit-event.ts'
import { MAIN_KINDS } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError, type ErrorCode } from '../../errors.ts'
import { isDiskFull } from '../../ffmpeg/machine-faults.ts'
import { countClip, countCopy, measureTranscode } from '../../metrics.ts'
import { StorageUnavailable } from '../../store/blobs/blob-storage.ts'
import { dropReference } from '../../store/blobs/blobs.store.ts'
import { deleteIfUnreferenced, keepFiles } from '../../store/blobs/keep-files.ts'
import { workFiles } from '../transcode/ffmpeg-command.ts'
import type { Renditions } from '../transcode/make-renditions.ts'
import { mayQueueExtras, queueExtras } from './add-extras.ts'
import { chooseThreads, type Load } from './choose-threads.ts'
import { failSource } from './fail-source.ts'
import { TRANSCODE_QUEUE, type TranscodeJob, tenantOf } from './queues.ts'

/** Often enough for a progress bar, without a write per frame. */
const PROGRESS_EVERY_MS = 1_000

/** Fails the source of a refused file, postpones for a full disk or storage outage; throws all else, for a retry. */
export async function transcodeSource(deps: Deps, job: QueueJob<TranscodeJob>): Promise<void> {
  const { log } = deps
  job.signal.throwIfAborted()
  const source = await findSource(deps.db, job.data.sourceId)
  if (source?.state !== 'processing') return
  if (source.clip_count === 0 && (await dropAbandoned(deps, source))) {
    countClip(job.data.way ?? 'unknown', 'deleted')
    return
  }
  let directory: DisposableTempDir | undefined
  const startedAt = Date.now()
  const seconds = () => (Date.now() - startedAt) / 1000
  try {
    // A second attempt means that a worker died, perhaps on this machine.
    if (job.retryCount > 0) await deps.work.sweep().catch((err) => log.warn({ err }, 'leftovers not removed'))
    directory = await deps.work.newDirectory()
    const renditions = await transcode(deps, source, directory.path, job.signal)
    const isMade = await storeRenditions(deps, source, renditions)
    const { warnings, misfit } = renditions
    log.info({ sourceId: source.id, seconds: seconds(), warnings }, 'clip transcoded')
    if (source.info.type !== 'gif') countCopy(source.info.type, misfit ?? 'fits')
    measureTranscode(source.info.type, 'ready', seconds())
    if (isMade) countClip(job.data.way ?? 'unknown', 'ready')
  } catch (err) {
    // The job is no longer ours: given back at a stop, or taken over by another worker.
    if (job.signal.aborted) throw err
    measureTranscode(source.info.type, 'failed', seconds())
    if (isStorageFault(err) && (await postponeTranscode(deps, source, { job, err }))) return
    const isLastAttempt = job.retryCount >= TRANSCODE_QUEUE.retryLimit
    if (!(err instanceof ApiError) && !isLastAttempt) throw err
    const code = err instanceof ApiError ? (err.code as ErrorCode) : 'internal'
    const details = err instanceof ApiError ? err.details : undefined
    log[code === 'internal' ? 'error' : 'warn']({ err, sourceId: source.id, code }, 'transcode failed')
    await failSource(deps, source.id, { code, details, way: job.data.way })
  } finally {
    await directory?.remove()
  }
}

/** 24 h: long enough for an operator to free disk space or repair the storage. */
const GIVE_UP_AFTER_SECONDS = 86_400

/** The delay is half the age of the source, within these bounds: a short outage costs seconds, a night a few dozen attempts. */
const [SHORTEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS] = [10, 600]

const isStorageFault = (error: unknown): boolean => isDiskFull(error) || error instanceof StorageUnavailable

/** Queues a source for later in its job's place: storage faults cost neither turn nor attempt. False after a day. */
async function postponeTranscode(
  { db, queue, now, log }: Deps,
  source: SourceRow,
  { job, err }: { job: QueueJob<TranscodeJob>; err: unknown },
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

/** Deletes a source without a clip. False when a new clip has attached to it first; a later one waits for this transaction. */
async function dropAbandoned(deps: Deps, { id, sha256 }: SourceRow): Promise<boolean> {
  const original = originalOf(sha256.toString('hex'))
  const isDropped = await deps.db.transaction().execute(async (trx) => {
    const isDeleted = await deleteAbandonedSource(trx, id)
    if (isDeleted) await dropReference(trx, original, deps.now())
    return isDeleted
  })
  if (!isDropped) return false
  await deleteIfUnreferenced(deps, original)
  deps.log.info({ sourceId: id }, 'transcode skipped: clip deleted')
  return true
}

/** Fails the source of a job whose attempts are used up because each worker died. */
export async function failDeadSource(deps: Deps, job: QueueJob<TranscodeJob>): Promise<void> {
  deps.log.error({ sourceId: job.data.sourceId }, 'clip given up: no worker survived it')
  await failSource(deps, job.data.sourceId, { code: 'internal', details: undefined, way: job.data.way })
}

async function transcode(
  deps: Deps,
  { id, info, sha256 }: SourceRow,
  workDirectory: string,
  signal: AbortSignal,
): Promise<Renditions> {
  const path = join(workDirectory, workFiles.input)
  const tooLong = new AbortController()
  const timer = setTimeout(() => tooLong.abort(apiError('processing_timeout')), deps.patience.transcodeMs)
  const endClip = deps.atWork.beginClip()
  try {
    const isCopied = await deps.blobs.copyTo(originalOf(sha256.toString('hex')), path, signal)
    if (!isCopied) throw new Error(`the original of source ${id} is not in the store`)
    // Loaded with the first clip: its image library takes a tenth of an idle service's memory.
    const { makeRenditions } = await import('../transcode/make-renditions.ts')
    const source = { path, info }
    const threads = chooseThreads(await readLoad(deps))
    const either = AbortSignal.any([signal, tooLong.signal])
    const onProgress = reportProgress(deps, id)
    const { gifEncoder, copy } = deps.config.worker
    const options = { workDirectory, threads, gifEncoder, copy, signal: either, onProgress }
    return await makeRenditions(deps.tools, source, options)
  } finally {
    clearTimeout(timer)
    endClip()
  }
}

async function readLoad({ queue, config, atWork }: Deps): Promise<Load> {
  const { name } = TRANSCODE_QUEUE
  const { concurrency, processes } = config.worker
  const slots = concurrency * processes
  const [waiting, claimed] = await Promise.all([queue.waiting(name, slots), queue.running(name, slots)])
  return { cores: availableParallelism(), processes, concurrency, running: atWork.clips(), waiting, claimed }
}

/** Returns false when another worker was first or the source failed meanwhile. */
async function storeRenditions(deps: Deps, source: SourceRow, renditions: Renditions): Promise<boolean> {
  const files = MAIN_KINDS.map((kind) => ({ kind, ...renditions[kind] }))
  const toName = ({ kind, sha256 }: { kind: string; sha256: string }) => ({ sha256, extension: kind })
  const original = originalOf(source.sha256.toString('hex'))
  const kept = files.map((file) => ({ name: toName(file), path: file.path, bytes: file.bytes }))
  const withExtras = await mayQueueExtras(deps, source.id)
  // Housekeeping deletes the original later: a database that loses this commit in a failover needs it again.
  return keepFiles(deps, kept, async (trx) => {
    const now = deps.now()
    const { hasAudio, placeholder } = renditions
    const isMarked = await markReady(trx, { id: source.id, hasAudio, placeholder, now })
    if (!isMarked) return { references: [], result: false }
    const rows = files.map(({ path: _, ...file }) => file)
    await insertRenditions(trx, source.id, rows)
    await deps.announcements.send(trx, source.id)
    await emitEvent(deps, trx, 'media.ready', { sourceId: source.id })
    if (withExtras) await queueExtras(deps, trx, source.id)
    return { references: files.map(toName), dropped: [original], result: true }
  })
}

function reportProgress({ db, log }: Deps, sourceId: string): (fraction: number) => void {
  let lastAt = Date.now()
  return (fraction) => {
    const now = Date.now()
    if (now - lastAt < PROGRESS_EVERY_MS) return
    lastAt = now
    setProgress(db, sourceId, fraction).catch((err) => log.debug({ err }, 'progress not stored'))
  }
}
