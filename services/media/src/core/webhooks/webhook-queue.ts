import type { QueueDefinition } from '@services/common/declare-queue'

export interface WebhookJob {
  deliveryId: string
  /** Attempts before this one, so that a duplicate job makes no second attempt. */
  attempt: number
}

/** Retries after our own faults; failures of a receiver follow retry-plan.ts. */
export const WEBHOOK_QUEUE: QueueDefinition = {
  name: 'webhook',
  retryLimit: 3,
  retryDelaySeconds: 5,
  retryDelayMaxSeconds: 60,
  expireInSeconds: 60,
  heartbeatSeconds: 10,
}
