import type { AnyTransaction } from '@services/common/database/after-commit'
import type { Queue } from '@services/common/queue/queue'
import type { QueueDefinition } from '@services/common/queue/queue-definition'
import { growingWait } from '@services/common/webhooks/attempt-result'

export interface WebhookJob {
  deliveryId: string
  /** Attempts before this one, so that a duplicate job makes no second attempt. */
  attempt: number
}

/** Retries after our own faults; failures of a receiver follow `waitAfter`. */
export const WEBHOOK_QUEUE: QueueDefinition = {
  name: 'webhook',
  retryLimit: 3,
  retryDelaySeconds: 5,
  retryDelayMaxSeconds: 60,
  expireInSeconds: 60,
  heartbeatSeconds: 10,
}

interface Sending {
  /** Token of the webhook: its receivers together never have every slot. */
  owner: string
  waitMs?: number
  isRetry?: boolean
}

/** Queues an attempt. Retries have some of the slots, behind first attempts (worker.ts). */
export const sendJob = (
  queue: Queue,
  trx: AnyTransaction,
  job: WebhookJob,
  { owner, waitMs = 0, isRetry = job.attempt > 0 }: Sending,
) => queue.send(trx, WEBHOOK_QUEUE.name, job, { afterSeconds: Math.ceil(waitMs / 1000), group: owner, isRetry })

/** Queues the first attempts of many deliveries, in one statement. */
export const sendJobs = (
  queue: Queue,
  trx: AnyTransaction,
  deliveries: readonly ({ id: string } & Pick<Sending, 'owner'>)[],
) => {
  const jobs = deliveries.map(({ id, owner }) => ({ data: { deliveryId: id, attempt: 0 }, group: owner }))
  return queue.sendMany(trx, WEBHOOK_QUEUE.name, jobs)
}

/** Time after which a delivery is given up. */
export const TRY_FOR_MS = 86_400_000

/** Doubles: 10 s, 20 s, 40 s … 4 h; about sixteen attempts in a day. */
export const waitAfter = growingWait({ firstMs: 10_000, longestMs: 4 * 3_600_000 })
