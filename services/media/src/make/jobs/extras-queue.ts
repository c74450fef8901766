import type { QueueDefinition } from '@services/common/declare-queue'

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
