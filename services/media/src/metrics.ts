// All domain metrics; those of process, pool and queues are in common's process/process-metrics.ts. No attribute holds
// text of a caller: results are our codes, sites the names of our adapters. While metrics are disabled the API of
// OpenTelemetry does nothing. Tests: test/telemetry.slow.test.ts.
import { statfs } from 'node:fs/promises'
import { metrics } from '@opentelemetry/api'
import type { Semaphore } from '@services/common/concurrency/semaphore'
import { tablePrefix } from '@services/common/database/pool'
import type { Reads } from '@services/common/database/replica'
import { askedInTime, observeService, observeTogether } from '@services/common/process/process-metrics'
import type { Queue } from '@services/common/queue/queue'
import { counter, histogram } from '@services/common/telemetry/instruments'
import type pg from 'pg'
import type { Config } from './config.ts'
import type { MediaInfo } from './db/media-info.ts'
import type { DB, ModerationAction, ModerationOrigin, ReportReason, Verdict } from './db/tables.ts'

/** Way by which a file arrived; unknown for clips that housekeeping queues again. */
export type Way = 'upload' | 'tus' | 'import'

/** Decided clips, not refused files. `result`: `ready`, the transcode's error code, or `shared` for known bytes. */
export const countClip = (source: Way | 'unknown', result: string) => clips({ source, result })
/** Bytes of completely received files, accepted or not. */
export const countBytesIn = (source: Way, bytes: number) => bytesIn({ source }, bytes)
/** Duration of an attempt, including waits for the storage. */
export const measureTranscode = (input: MediaInfo['type'], result: 'ready' | 'failed', seconds: number) =>
  transcodes(seconds, { input, result })
/** Videos of a type that could be copied. `reason`: `fits`, or why the file was encoded (make/plan/copy-plan.ts). */
export const countCopy = (file: 'mp4' | 'webm', reason: string) => copies({ file, reason })
export const countProbeRefusal = (code: string) => probeRefusals({ code })
/** `site`: the adapter of the page; `other` for direct files and all other pages. `result`: `ok` or the error code. */
export const countImport = (site: string, result: string) => imports({ site, result })
/** Variants made on request. `result`: `stored`, `original` (no smaller), `refused` (cannot_fit) or `failed`. */
export const countVariant = (file: string, result: string) => variants({ file, result })
/** Attempts. `retried`: failed, and will be retried; `failed`: failed and given up. */
export const countDelivery = (result: 'delivered' | 'retried' | 'failed') => deliveries({ result })

/** Reports that were stored. */
export const countReport = (reason: ReportReason) => reports({ reason })
/** Decisions, not clips: one may be about all clips of the same bytes. */
export const countModeration = (action: ModerationAction, origin: ModerationOrigin) => moderations({ action, origin })
/** Requests to the scanner. `result`: the verdict; `retried` and `failed` without one. */
export const countScan = (result: Verdict | 'retried' | 'failed') => scans({ result })

/** Starts the counters that alerts read at 0: a series that begins with its first event shows no increase. */
function startCounters(): void {
  for (const source of ['upload', 'tus', 'import'] as const) {
    for (const result of ['ready', 'shared', 'internal']) clips({ source, result }, 0)
    bytesIn({ source }, 0)
  }
  for (const result of ['delivered', 'retried', 'failed']) deliveries({ result }, 0)
  for (const result of ['retried', 'failed']) scans({ result }, 0)
}

/** Registers gauges read at each export; the returned function removes them. Call it only if metrics are enabled. */
export function observeMedia(deps: {
  pool: pg.Pool
  queue: Queue
  reads: Reads<DB>
  config: Config
  semaphores: Record<'uploads' | 'downloads' | 'probes' | 'stills', Semaphore>
}): () => void {
  startCounters()
  const stops = [
    observeService('media', deps),
    observeDisks(deps.config.storage),
    observeSemaphores(deps.semaphores),
    observeReports(deps.pool, deps.config),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

function observeDisks(storage: Config['storage']): () => void {
  const meter = metrics.getMeter('media')
  const free = meter.createObservableGauge('media.disk.free', { description: 'Free space of the disk', unit: 'By' })
  const size = meter.createObservableGauge('media.disk.size', { description: 'Size of the disk', unit: 'By' })
  const directories = { work: storage.workDir, ...(storage.kind === 'disk' ? { blobs: storage.blobsDir } : {}) }
  const queries = Object.entries(directories).map(
    ([directory, path]) => [directory, askedInTime(() => statfs(path))] as const,
  )
  return observeTogether('media', [free, size], async (result) => {
    await Promise.all(
      queries.map(async ([directory, ask]) => {
        const found = await ask()
        // NaN when unknown: the SDK repeats the last observed value forever.
        const { bavail, blocks, bsize } = found ?? { bavail: Number.NaN, blocks: Number.NaN, bsize: 1 }
        result.observe(free, bavail * bsize, { directory })
        result.observe(size, blocks * bsize, { directory })
      }),
    )
  })
}

/** More are reported as this number: a count reads every row. */
const MAX_COUNTED = 10_000

function observeReports(pool: pg.Pool, { database }: Config): () => void {
  const gauge = metrics.getMeter('media').createObservableGauge('media.reports.open', {
    description: 'Open reports, up to 10000',
    unit: '{report}',
  })
  const prefix = tablePrefix(database.namespace)
  const text = `select count(*)::integer as open from (select from ${prefix}reports where state = 'open' limit ${MAX_COUNTED}) counted`
  const ask = askedInTime(() => pool.query<{ open: number }>(text))
  return observeTogether('media', [gauge], async (result) => {
    result.observe(gauge, (await ask())?.rows[0]?.open ?? Number.NaN)
  })
}

function observeSemaphores(semaphores: Record<string, Semaphore>): () => void {
  const gauge = metrics.getMeter('media').createObservableGauge('media.slots', {
    description: 'Uploads, downloads, probes and stills under way in this process, and waiting',
    unit: '{slot}',
  })
  return observeTogether('media', [gauge], (result) => {
    for (const [name, { taken }] of Object.entries(semaphores)) {
      const kind = name.slice(0, -1)
      const { used, waiting } = taken()
      result.observe(gauge, used, { kind, state: 'used' })
      result.observe(gauge, waiting, { kind, state: 'waiting' })
    }
  })
}

/** The last bound is the time limit of one ffmpeg run. */
const TRANSCODE_SECONDS = [0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 240]

const clips = counter('media.clips', { description: 'Clips by source and result', unit: '{clip}' })
const bytesIn = counter('media.bytes_in', { description: 'Bytes of files received', unit: 'By' })
const transcodes = histogram('media.transcode.duration', {
  description: 'Time to make the files of a clip',
  unit: 's',
  boundaries: TRANSCODE_SECONDS,
})
const copies = counter('media.copied', {
  description: 'Videos by whether they were copied, and why not',
  unit: '{file}',
})
const variants = counter('media.variants', { description: 'Variants by file and result', unit: '{file}' })
const probeRefusals = counter('media.probe_refusals', { description: 'Files refused by the probe', unit: '{file}' })
const imports = counter('media.imports', { description: 'Imports by site and result', unit: '{import}' })
const reports = counter('media.reports', { description: 'Reports by reason', unit: '{report}' })
const moderations = counter('media.moderations', { description: 'Decisions about clips', unit: '{decision}' })
const scans = counter('media.scans', { description: 'Requests to the scanner by result', unit: '{scan}' })
const deliveries = counter('media.webhook_deliveries', { description: 'Attempts by result', unit: '{attempt}' })
