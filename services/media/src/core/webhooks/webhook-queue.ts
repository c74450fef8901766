import type { AnyTransaction } from '@services/common/database/after-commit'
import type { Queue } from '@services/common/queue/queue'
import type { QueueDefinition } from '@services/common/queue/queue-definition'

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

const DAY_MS = 86_400_000

/** Time after which a delivery is given up. */
export const TRY_FOR_MS = DAY_MS

/** Doubles: 10 s, 20 s, 40 s … 4 h; about sixteen attempts in a day. */
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [10_000, 4 * 3_600_000]

export const waitAfter = (attempts: number): number => Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1))

/** Pause of a receiver that did not answer at all: each attempt would hold a slot until its timeout. */
export const pauseAfter = (failures: number): number => Math.min(600_000, 10_000 * 2 ** (failures - 1))

/** Time of uninterrupted failures after which a webhook is disabled. */
export const DISABLE_AFTER_MS = 5 * DAY_MS
