import type { QueueDefinition } from '@services/common/queue/queue-definition'
import type { PosterChange } from '../../core/clips/posters.store.ts'
import type { Variant } from '../../core/variants/variant.ts'
import type { MediaInfo } from '../../db/media-info.ts'
import type { Way } from '../../metrics.ts'
import { clipWeight } from '../plan/job-weight.ts'

export interface TranscodeJob {
  sourceId: string
  /** Label of its first clip in the metrics; absent when housekeeping queues the source again. */
  way?: Way
  /** A caller waits for the mp4 alone: if it is a copy, it is stored before the rest is encoded. */
  mp4First?: boolean
}

/** Tenant of a clip in the fair queue: its token; all callers without one are one tenant. */
export const tenantOf = (tokenId: string | null): string => tokenId ?? 'anonymous'

/** Turn that a clip asks for: its token pays for the predicted time, not for a call. */
export const clipTurn = (tokenId: string | null, info: MediaInfo) => ({
  tenant: tenantOf(tokenId),
  weight: clipWeight(info),
})

/** A killed worker's job is lost after 10 s without a heartbeat, checked every 3 s: it runs elsewhere within 20 s. */
export const TRANSCODE_QUEUE: QueueDefinition = {
  name: 'transcode',
  // A job given back at a stop counts as an attempt: several restarts in a row must not fail a long clip.
  retryLimit: 5,
  retryDelaySeconds: 1,
  retryDelayMaxSeconds: 30,
  // The limit of one clip (time-limits.ts), plus time to store its files.
  expireInSeconds: 1_200,
  heartbeatSeconds: 10,
  hasTenants: true,
  soughtBy: 'sourceId',
}

/** Queue of the jobs whose attempts are used up, or whose workers died each time. */
export const DEAD_TRANSCODE_QUEUE = `${TRANSCODE_QUEUE.name}.dead`

export interface ScanJob {
  sourceId: string
  /** Requests to the scanner before this one. */
  attempts: number
  /** Time in ms at which the source was first sent. */
  since: number
  way?: Way
}

export const scanJobOf = ({ now }: { now: () => Date }, sourceId: string, way?: Way): ScanJob => ({
  ...{ sourceId, attempts: 0, since: now().getTime() },
  ...(way && { way }),
})

/** Retries are for killed workers; a scanner that fails is asked again by a new job. */
export const SCAN_QUEUE: QueueDefinition = {
  name: 'scan',
  retryLimit: 5,
  retryDelaySeconds: 1,
  retryDelayMaxSeconds: 60,
  // Three frames and one request.
  expireInSeconds: 300,
  heartbeatSeconds: 10,
  hasTenants: true,
  soughtBy: 'sourceId',
}

export interface ExtrasJob {
  sourceId: string
  postponed?: number
}

/** One attempt, and two more for killed workers, because extras are optional. */
export const EXTRAS_QUEUE: QueueDefinition = {
  name: 'extras',
  retryLimit: 2,
  retryDelaySeconds: 60,
  retryDelayMaxSeconds: 600,
  expireInSeconds: 1_200,
  heartbeatSeconds: 30,
}

export interface VariantJob {
  sourceId: string
  /** Canonical name of the variant. */
  name: string
  variant: Variant
  /** Change of a clip's poster, which the variant is made for. */
  clipId?: PosterChange['clipId']
  request?: PosterChange['request']
}

/**
 * Callers poll for a variant, so a failed attempt is repeated soon; after the last one the variant is marked as failed.
 */
export const VARIANTS_QUEUE: QueueDefinition = {
  name: 'variants',
  retryLimit: 2,
  retryDelaySeconds: 5,
  retryDelayMaxSeconds: 60,
  // Three builds of at most four minutes each, and time to store the file.
  expireInSeconds: 900,
  heartbeatSeconds: 10,
  hasTenants: true,
  soughtBy: 'sourceId',
}
