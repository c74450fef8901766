import type { QueueDefinition } from '@services/common/declare-queue'

export interface WebhookJob {
  deliveryId: string
  /** Attempts before this one: a job that comes twice is one attempt. */
  attempt: number
}

/** These retries are for faults of ours; a receiver's failures have a plan of their own (retry-plan.ts). */
export const WEBHOOK_QUEUE: QueueDefinition = {
  name: 'webhook',
  retryLimit: 3,
  retryDelaySeconds: 5,
  retryDelayMaxSeconds: 60,
  expireInSeconds: 60,
  heartbeatSeconds: 10,
}
