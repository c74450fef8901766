import type { QueueDefinition } from '@services/common/queue/queue-definition'

export interface CheckJob {
  checkId: string
}

/** Checks of the stored files; a killed one begins again. */
export const STORAGE_QUEUE: QueueDefinition = {
  name: 'storage',
  retryLimit: 2,
  retryDelaySeconds: 5,
  retryDelayMaxSeconds: 60,
  // Millions of files, which a bucket lists by the thousand.
  expireInSeconds: 21_600,
  heartbeatSeconds: 30,
  soughtBy: 'checkId',
}
