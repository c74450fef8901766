import { randomUUID } from 'node:crypto'
import { createKeyedMutex, type KeyedMutex } from '@services/common/concurrency/keyed-mutex'
import { createSemaphore, type Semaphore } from '@services/common/concurrency/semaphore'
import { tablePrefix } from '@services/common/database/pool'
import { pastPooler } from '@services/common/database/pooler'
import type { Reads } from '@services/common/database/replica'
import { createNotifications, type Notifications } from '@services/common/listen/batched-notify'
import { openServiceDatabase, type ServiceSchema } from '@services/common/process/service-database'
import { inOrder } from '@services/common/process/shutdown'
import type { Queue } from '@services/common/queue/queue'
import type { Logger } from '@services/common/telemetry/logger'
import { createReceivers, type Receivers } from '@services/common/webhooks/receivers'
import type { Kysely } from 'kysely'
import type pg from 'pg'
import { startWarnings } from './config/start-warnings.ts'
import type { Config } from './config.ts'
import { STORAGE_QUEUE } from './core/administration/storage-queue.ts'
import { createVisitLog, type VisitLog } from './core/clips/visit-log.ts'
import { createQueueDepth, type QueueDepth } from './core/sources/queue-depth.ts'
import { openSourceWaiters, type SourceWaiters } from './core/sources/wait-for-source.ts'
import { createRequestCounter, type RequestCounter } from './core/tokens/request-counter.ts'
import type { FoundVariant } from './core/variants/variant.ts'
import { createViewCounter, type ViewCounter } from './core/views/view-counter.ts'
import { WEBHOOK_QUEUE } from './core/webhooks/webhook-queue.ts'
import { type DB, TABLES } from './db/tables.ts'
import { busy } from './errors.ts'
import { type MediaTools, resolveTools } from './ffmpeg/binaries.ts'
import { requireDecoders } from './ffmpeg/require-decoders.ts'
import { createKnownFiles, type KnownFiles } from './flows/files/known-files.ts'
import { createRateLimits, type RateLimits } from './http/rate-limit.ts'
import type { RemoteTimeouts } from './ingest/remote/deadlines.ts'
import type { Remote } from './ingest/remote/fetch-remote.ts'
import { openRemotes } from './ingest/remote/open-remotes.ts'
import type { AssembleManifest, ExtractPage } from './ingest/sites/site.ts'
import { openYtdlp } from './ingest/ytdlp/open-ytdlp.ts'
import { type AtWork, createAtWork } from './make/jobs/at-work.ts'
import { EXTRAS_QUEUE, SCAN_QUEUE, TRANSCODE_QUEUE, VARIANTS_QUEUE } from './make/jobs/queues.ts'
import { openWorkDirectory, type WorkDirectory } from './make/jobs/work-directory.ts'
import { observeMedia } from './metrics.ts'
import type { BlobStorage } from './store/blobs/blob-storage.ts'
import { createDiskBlobs } from './store/blobs/disk-blobs.ts'
import { TIME_LIMITS, type TimeLimits } from './time-limits.ts'

/** Dependencies of routes and flows, as plain values built here. Functions in core/ take the fields they use. */
export interface Deps {
  config: Config
  log: Logger
  db: Kysely<DB>
  /** Database of lists and pages: the replica, if there is one. */
  reads: Reads<DB>
  pool: pg.Pool
  queue: Queue
  blobs: BlobStorage
  work: WorkDirectory
  tools: MediaTools
  /** Servers that callers name, which must be public. */
  remote: Remote
  /** Servers that the operator names, which may be private. */
  trustedRemote: Pick<Remote, 'post'>
  assembleManifest: AssembleManifest
  /** Undefined without YTDLP_PATH. */
  extractPage?: ExtractPage
  limits: RateLimits
  requestCounter: RequestCounter
  sourceWaiters: SourceWaiters
  knownFiles: KnownFiles
  visitLog: VisitLog
  viewCounter: ViewCounter
  /** Reports decided sources to the waiting requests of all processes. */
  announcements: Notifications
  /** Bounds of work beside transcoding in this process. */
  probes: Semaphore
  downloads: Semaphore
  uploads: Semaphore
  stills: Semaphore
  /** Stills that this process is making, by source and name. */
  stillsInWork: Map<string, Promise<FoundVariant>>
  mutex: KeyedMutex
  atWork: AtWork
  receivers: Receivers
  queueDepth: QueueDepth
  now: () => Date
  newId: () => string
  /** Aborts when the process is asked to stop: waiting requests answer now. */
  stopping: AbortSignal
  /** Aborts 7 s after `stopping`; requests still running fail with its reason. */
  forceStop: AbortSignal
  timeLimits: TimeLimits
}

/** Values that a test or `serve` provides. */
export type Overrides = Partial<
  Pick<Deps, 'now' | 'newId' | 'tools' | 'stopping' | 'forceStop' | 'assembleManifest' | 'extractPage'>
> & {
  timeLimits?: Partial<TimeLimits>
  remoteTimeouts?: Partial<RemoteTimeouts>
}

/** Four ffprobes fill the cores. One token (or all callers without one) gets half: crafted files can probe slowly. */
const PROBES = { atOnce: 4, waiting: 200, perKey: { atOnce: 2, waiting: 100 } }
/** A download costs a connection and little else, so there are many. */
const DOWNLOADS = { atOnce: 16, waiting: 64 }
/** Downloads of one token that may wait for each that is under way. */
const WAITING_DOWNLOADS = 4
/**
 * A still takes a core for a tenth of a second. One address (or all, where addresses are unknown) gets one slot of the
 * two.
 */
const STILLS = { atOnce: 2, waiting: 64, perKey: { atOnce: 1, waiting: 32 } }
/** Uploads do not wait: that would only hold their connections open. */
const UPLOADS = { atOnce: Number.POSITIVE_INFINITY, waiting: 0, waitMs: 0 }

export const SCHEMA: ServiceSchema = {
  name: 'media',
  tables: TABLES,
  migrations: new URL('../migrations', import.meta.url),
  queues: [TRANSCODE_QUEUE, EXTRAS_QUEUE, VARIANTS_QUEUE, SCAN_QUEUE, WEBHOOK_QUEUE, STORAGE_QUEUE],
}

/** Connects, migrates if configured, and opens queue, store and tools. `close` undoes it in reverse order. */
export async function openDeps(
  config: Config,
  log: Logger,
  { remoteTimeouts = {}, ...overrides }: Overrides = {},
): Promise<Deps & { close(): Promise<void> }> {
  const { database, storage } = config
  const never = new AbortController().signal
  const signals = { stopping: never, forceStop: never }
  const base = { now: () => new Date(), newId: randomUUID as () => string, ...signals, ...overrides }
  const timeLimits = { ...TIME_LIMITS, ...overrides.timeLimits }
  // Independent of the database, and the slowest part of the start: it runs several short processes.
  const opening = Promise.all([
    openTools(config, overrides.tools),
    openBlobs(storage, log, timeLimits),
    openWorkDirectory(storage.workDir, storage.kind === 'disk' ? { store: storage.blobsDir } : {}),
  ])
  opening.catch(() => {})
  const isWorker = config.worker.enabled
  const { db, pool, queue, reads, close } = await openServiceDatabase<DB>(SCHEMA, config, log, { isWorker })
  try {
    const [tools, blobs, work] = await opening
    const { remote, trustedRemote } = openRemotes(config.egress, remoteTimeouts)
    const semaphores = createSemaphores(config.limits, timeLimits)
    const parts = { config, log, tools, work, remote, ...semaphores }
    const closing = new AbortController()
    const extractPage = await openYtdlp(parts, base.now(), closing.signal)
    const channel = resultsChannelOf(config)
    const execute = (text: string, values: unknown[]) => pool.query(text, values)
    const notifying = { channel, mode: database.notify, execute, log }
    const sourceWaiters = openSourceWaiters({ ...notifying, db, database: pastPooler(database) })
    const announcements = createNotifications(notifying)
    const requestCounter = createRequestCounter({ db, log, now: base.now })
    const viewCounter = createViewCounter({ db, log, now: base.now })
    reportTools(tools, config, log)
    const stopObserving = config.telemetry.metrics ? observeMedia({ config, pool, queue, reads, semaphores }) : () => {}
    return {
      ...parts,
      trustedRemote,
      db,
      reads,
      pool,
      queue,
      blobs,
      assembleManifest: async (...args) => {
        const { assembleManifest } = await import('./ingest/manifests/assemble-manifest.ts')
        return assembleManifest(parts, ...args)
      },
      extractPage,
      limits: createRateLimits(pool, config),
      requestCounter,
      sourceWaiters,
      knownFiles: createKnownFiles(db),
      viewCounter,
      visitLog: createVisitLog({ db, log, now: base.now }),
      announcements,
      mutex: createKeyedMutex(),
      stillsInWork: new Map(),
      atWork: createAtWork(),
      receivers: createReceivers(),
      queueDepth: createQueueDepth(),
      ...base,
      timeLimits,
      close: () =>
        inOrder(log, [
          stopObserving,
          async () => closing.abort(),
          // Local resources first: the rest waits for a database that may hang.
          () => remote.close(),
          () => trustedRemote.close(),
          () => work.close(),
          () => queue.stop(1_000),
          () => requestCounter.close(),
          () => viewCounter.close(),
          () => sourceWaiters.close(),
          () => reads.close(),
          () => announcements.flush(),
          () => blobs.close(),
          close,
        ]),
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Slots per token (contract/media.md 2.7): slow sources of one token hold up no other. */
function createSemaphores({ parallel: atOnce }: Config['limits'], { slotWaitMs: waitMs }: TimeLimits) {
  const perDownloader = { atOnce, waiting: atOnce * WAITING_DOWNLOADS }
  return {
    probes: createSemaphore({ ...PROBES, waitMs }, busy),
    downloads: createSemaphore({ ...DOWNLOADS, waitMs, perKey: perDownloader }, busy),
    stills: createSemaphore({ ...STILLS, waitMs }, busy),
    uploads: createSemaphore({ ...UPLOADS, perKey: { atOnce, waiting: 0 } }, busy),
  }
}

/** PostgreSQL channel of this installation on which workers announce decided sources. */
export const resultsChannelOf = ({ database }: Pick<Config, 'database'>) =>
  `${tablePrefix(database.namespace)}media_results`

/** Loads the S3 SDK only if it is used. */
export async function openBlobs(
  storage: Config['storage'],
  log: Logger,
  timeLimits: TimeLimits = TIME_LIMITS,
): Promise<BlobStorage> {
  if (storage.kind === 'disk') return createDiskBlobs(storage.blobsDir)
  const { openS3Blobs } = await import('./store/blobs/s3-blobs.ts')
  return openS3Blobs(storage.s3, timeLimits, log)
}

async function openTools({ ffmpeg, source }: Config, given: MediaTools | undefined): Promise<MediaTools> {
  const tools = given ?? (await resolveTools(ffmpeg))
  await requireDecoders(tools.ffmpeg, source.types)
  return tools
}

function reportTools(tools: MediaTools, config: Config, log: Logger): void {
  const { ffmpeg, ffprobe, limiters } = tools
  const { path, version, origin } = ffmpeg
  log.info(
    { ffmpeg: path, version, origin, ffprobe: ffprobe.path, sandbox: limiters.sandbox?.kind ?? 'none' },
    'ffmpeg found',
  )
  for (const { text, ...facts } of startWarnings(config, tools)) log.warn(facts, text)
}
