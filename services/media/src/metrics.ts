// Every domain metric by name, and nowhere else; process, pool and queues are common's (observe-service.ts), request durations
// the telemetry plugin's. Only the API of OpenTelemetry: while metrics are off a count is one call that does nothing. No
// attribute may hold what a caller wrote: results are our own codes, sites the ones we have a file for.
import { statfs } from 'node:fs/promises'
import { metrics } from '@opentelemetry/api'
import { counter, histogram } from '@services/common/instruments'
import { askedInTime, observeService, observeTogether } from '@services/common/observe-service'
import type { Queue } from '@services/common/queue'
import type { Slots } from '@services/common/slots'
import type pg from 'pg'
import type { Config } from './config.ts'
import type { MediaInfo } from './db/media-info.ts'

/** How a file came; of clips that are made again by housekeeping nobody knows any more. */
export type Way = 'upload' | 'tus' | 'import'

/**
 * Clips that are decided. `result`: `ready`, the code of the failure that a transcode ended with, or `shared`: the bytes were
 * here before. What is refused before it is accepted is no clip.
 */
export const countClip = (source: Way | 'unknown', result: string) => clips({ source, result })
/** Whole files that were received, whatever became of them. */
export const countBytesIn = (source: Way, bytes: number) => bytesIn({ source }, bytes)
/** How long a try took, with what was waited for the storage. */
export const measureTranscode = (input: MediaInfo['type'], result: 'ready' | 'failed', seconds: number) =>
  transcodes(seconds, { input, result })
/** Files that the probe refused, by code. */
export const countProbeRefusal = (code: string) => probeRefusals({ code })
/** `site`: the one whose page the address is, `other` for direct files and all other pages. `result`: `ok` or the code. */
export const countImport = (site: string, result: string) => imports({ site, result })
/** One attempt to tell a receiver. `retried`: it failed and will be made again; `failed`: it is given up. */
export const countDelivery = (result: 'delivered' | 'retried' | 'failed') => deliveries({ result })

/** Shows from the start as 0 what alerts look for: a series that begins with its first event has not risen. */
function startCounters(): void {
  for (const source of ['upload', 'tus', 'import'] as const) {
    for (const result of ['ready', 'shared', 'internal']) clips({ source, result }, 0)
    bytesIn({ source }, 0)
  }
  for (const result of ['delivered', 'retried', 'failed']) deliveries({ result }, 0)
}

/** Begins with what is read at each export; the returned function ends it. To be called only where metrics are on. */
export function observeMedia(deps: {
  pool: pg.Pool
  queue: Queue
  config: Config
  slots: Record<'upload' | 'download' | 'probe', Slots>
}): () => void {
  startCounters()
  const stops = [observeService('media', deps), observeDisks(deps.config.storage), observeSlots(deps.slots)]
  return () => {
    for (const stop of stops) stop()
  }
}

function observeDisks(storage: Config['storage']): () => void {
  const meter = metrics.getMeter('media')
  const free = meter.createObservableGauge('media.disk.free', {
    description: 'Free for what is received and made',
    unit: 'By',
  })
  const size = meter.createObservableGauge('media.disk.size', {
    description: 'Size of the disk that is received and made on',
    unit: 'By',
  })
  const directories = { work: storage.workDir, ...(storage.kind === 'disk' ? { blobs: storage.blobsDir } : {}) }
  const asked = Object.entries(directories).map(
    ([directory, path]) => [directory, askedInTime(() => statfs(path))] as const,
  )
  return observeTogether('media', [free, size], async (result) => {
    await Promise.all(
      asked.map(async ([directory, ask]) => {
        const found = await ask()
        // Not known is said: the SDK repeats for ever what was observed once and is not any more.
        const { bavail, blocks, bsize } = found ?? { bavail: Number.NaN, blocks: Number.NaN, bsize: 1 }
        result.observe(free, bavail * bsize, { directory })
        result.observe(size, blocks * bsize, { directory })
      }),
    )
  })
}

function observeSlots(slots: Record<string, Slots>): () => void {
  const places = metrics.getMeter('media').createObservableGauge('media.slots', {
    description: 'Uploads, downloads and probes under way in this process, and waiting',
    unit: '{slot}',
  })
  return observeTogether('media', [places], (result) => {
    for (const [kind, { taken }] of Object.entries(slots)) {
      const { used, waiting } = taken()
      result.observe(places, used, { kind, state: 'used' })
      result.observe(places, waiting, { kind, state: 'waiting' })
    }
  })
}

/** A clip of seconds takes seconds; the last one is the wall limit of the one ffmpeg run of most. */
const TRANSCODE_SECONDS = [0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 240]

const clips = counter('media.clips', { description: 'Clips by source and result', unit: '{clip}' })
const bytesIn = counter('media.bytes_in', { description: 'Bytes of files received', unit: 'By' })
const transcodes = histogram('media.transcode.duration', {
  description: 'Time to make the files of a clip',
  unit: 's',
  boundaries: TRANSCODE_SECONDS,
})
const probeRefusals = counter('media.probe_refusals', { description: 'Files refused by the probe', unit: '{file}' })
const imports = counter('media.imports', { description: 'Imports by site and result', unit: '{import}' })
const deliveries = counter('media.webhook_deliveries', { description: 'Attempts by result', unit: '{attempt}' })
