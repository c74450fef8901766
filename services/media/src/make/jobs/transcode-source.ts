// This folder holds the queue's jobs; this file makes the four renditions of one source. A worker's disk holds nothing
// that matters, so a worker may die at any line and another one repeats the job.
//
//   processing -> processing  storeFirstFiles, with poster and mp4 that can be shown before the rest is encoded.
//   processing -> processing  storeRenditions, for a source that is held until it is scanned (scan-source.ts).
//   processing -> ready       storeRenditions, in one transaction with the references of the files.
//   processing -> failed      failSource, for a refused file, used-up attempts or lost jobs (rescue-source.ts).
//   processing -> processing  postponeTranscode, with a new job, for a full disk or unavailable storage.
//   processing -> deleted     dropAbandoned, when every clip was deleted before the transcode.
//
// Tests: test/{upload,lost-jobs,failures,s3-failures}.test.ts.
import type { DisposableTempDir } from 'node:fs/promises'
import { availableParallelism, hostname } from 'node:os'
import { join } from 'node:path'
import { ApiError } from '@services/common/errors'
import type { QueueJob } from '@services/common/queue/run-job'
import { failSource } from '../../core/lifecycle/fail-source.ts'
import {
  findSource,
  lockProcessing,
  originalOf,
  type SourceRow,
  setProgress,
  setWorker,
} from '../../core/sources/sources.store.ts'
import { isAnimation } from '../../db/media-info.ts'
import type { Deps } from '../../deps.ts'
import { apiError, type ErrorCode } from '../../errors.ts'
import { isDiskFull } from '../../ffmpeg/machine-faults.ts'
import { countClip, countCopy, measureTranscode } from '../../metrics.ts'
import { StorageUnavailable } from '../../store/blobs/blob-storage.ts'
import { workFiles } from '../command/work-files.ts'
import { copyOf } from '../plan/copy-plan.ts'
import type { Renditions } from '../transcode/make-renditions.ts'
import { chooseThreads, type Load } from './choose-threads.ts'
import { dropAbandoned } from './drop-abandoned.ts'
import { clipTurn, TRANSCODE_QUEUE, type TranscodeJob } from './queues.ts'
import { firstFilesOf, storeRenditions } from './store-renditions.ts'

/** Often enough for a progress bar, without a write per frame. */
const PROGRESS_EVERY_MS = 1_000

/** Fails the source of a refused file, postpones for a full disk or storage outage; throws all else, for a retry. */
export async function transcodeSource(deps: Deps, job: QueueJob<TranscodeJob>): Promise<void> {
  const { log } = deps
  job.signal.throwIfAborted()
  const source = await findSource(deps.db, job.data.sourceId)
  if (source?.state !== 'processing' || source.held) return
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
    await setWorker(deps.db, source.id, hostname())
    directory = await deps.work.newDirectory()
    const renditions = await transcode(deps, source, directory.path, job)
    const isMade = await storeRenditions(deps, source, renditions, job.data.way)
    const { warnings, misfit } = renditions
    log.info({ sourceId: source.id, seconds: seconds(), warnings }, 'clip transcoded')
    if (!isAnimation(source.info)) countCopy(copyOf(source.info), misfit ?? 'fits')
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

/**
 * The delay is half the age of the source, within these bounds: a short outage costs seconds, a night a few dozen
 * attempts.
 */
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
    const turn = clipTurn(locked.token_id, source.info)
    await queue.send(trx, TRANSCODE_QUEUE.name, job.data, { ...turn, afterSeconds, inPlaceOf: job.id })
  })
  log.error({ err, sourceId: source.id, afterSeconds }, 'transcode postponed: disk full or storage unavailable')
  return true
}

/** Fails the source of a job whose attempts are used up because each worker died. */
export async function failDeadSource(deps: Deps, job: QueueJob<TranscodeJob>): Promise<void> {
  deps.log.error({ sourceId: job.data.sourceId }, 'clip given up: no worker survived it')
  await failSource(deps, job.data.sourceId, { code: 'internal', details: undefined, way: job.data.way })
}

async function transcode(
  deps: Deps,
  source: SourceRow,
  workDirectory: string,
  { signal, data }: QueueJob<TranscodeJob>,
): Promise<Renditions> {
  const path = join(workDirectory, workFiles.input)
  const { id, info } = source
  const tooLong = new AbortController()
  const timer = setTimeout(() => tooLong.abort(apiError('processing_timeout')), deps.timeLimits.transcodeMs)
  const endClip = deps.atWork.beginClip()
  try {
    const isCopied = await deps.blobs.copyTo(originalOf(source), path, signal)
    if (!isCopied) throw new Error(`the original of source ${id} is not in the store`)
    // Loaded with the first clip: its image library takes a tenth of an idle service's memory.
    const { makeRenditions } = await import('../transcode/make-renditions.ts')
    const threads = chooseThreads(await readLoad(deps))
    const either = AbortSignal.any([signal, tooLong.signal])
    const onProgress = reportProgress(deps, id)
    const { gifEncoder, copy } = deps.config.worker
    const isHeld = deps.config.moderation.scanner?.isRequired
    const onFirstFiles = data.mp4First && !isHeld ? await firstFilesOf(deps, source) : undefined
    const options = { workDirectory, threads, gifEncoder, copy, signal: either, onFirstFiles, onProgress }
    return await makeRenditions(deps.tools, { path, info }, options)
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

function reportProgress({ db, log }: Deps, sourceId: string): (fraction: number) => void {
  let lastAt = Date.now()
  return (fraction) => {
    const now = Date.now()
    if (now - lastAt < PROGRESS_EVERY_MS) return
    lastAt = now
    setProgress(db, sourceId, fraction).catch((err) => log.debug({ err }, 'progress not stored'))
  }
}
