import type { QueueDefinition } from '@services/common/declare-queue'
import type { Way } from '../../metrics.ts'

export interface TranscodeJob {
  sourceId: string
  /** How its first clip came, to be counted by; absent when housekeeping sends for it again. */
  way?: Way
}

/** Whose turn a clip takes in the queue: its token's; callers without one take turns as one. */
export const shareOf = (tokenId: string | null): string => tokenId ?? 'anonymous'

/** A killed worker's job is seen after 10 s of silence and looked for every 3 s: it runs elsewhere within 20 s. */
export const TRANSCODE_QUEUE: QueueDefinition = {
  name: 'transcode',
  // A job given back at a stop counts as a try: several restarts in a row must not fail a long clip.
  retryLimit: 5,
  retryDelaySeconds: 1,
  retryDelayMaxSeconds: 30,
  // What one clip may take (patience.ts), and time to store its files.
  expireInSeconds: 1_200,
  heartbeatSeconds: 10,
}

/** Where pg-boss puts jobs whose tries are used up, or whose workers died each time. */
export const DEAD_TRANSCODE_QUEUE = `${TRANSCODE_QUEUE.name}.dead`

export interface ExtrasJob {
  sourceId: string
  /** How often it gave way. */
  postponed?: number
}

/** One try, and another two for workers that are killed: nobody waits for what it makes. */
export const EXTRAS_QUEUE: QueueDefinition = {
  name: 'extras',
  retryLimit: 2,
  retryDelaySeconds: 60,
  retryDelayMaxSeconds: 600,
  expireInSeconds: 1_200,
  heartbeatSeconds: 30,
}
