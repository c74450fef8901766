// Settings of a queue: how often and after which waits a failed job is retried, and how long a job may take.
import type { PgBoss } from 'pg-boss'

/** A queue and its dead-letter queue, `<name>.dead`. */
export interface QueueDefinition {
  name: string
  /** Retries before the job goes to the dead-letter queue. */
  retryLimit: number
  /** Wait before the first retry; doubles up to `retryDelayMaxSeconds`. */
  retryDelaySeconds: number
  retryDelayMaxSeconds: number
  /** Time limit of a job, after which its worker loses it. */
  expireInSeconds: number
  /** Seconds without a heartbeat, sent by pg-boss, after which another worker gets the job; at least 10. */
  heartbeatSeconds: number
  /** Whether jobs are sent with a tenant, whose turns are then found by index. */
  hasTenants?: true
  /** Member of the data by which `has` and `advance` look for a job, then found by index. */
  soughtBy?: string
}

/** Suffix of the names of dead-letter queues. */
export const DEAD = '.dead'

export async function declareQueue(boss: PgBoss, queue: QueueDefinition): Promise<void> {
  const dead = queue.name + DEAD
  await boss.createQueue(dead, { retentionSeconds: 30 * 86_400 })
  const settings = {
    retryLimit: queue.retryLimit,
    retryDelay: queue.retryDelaySeconds,
    retryDelayMax: queue.retryDelayMaxSeconds,
    retryBackoff: true,
    expireInSeconds: queue.expireInSeconds,
    heartbeatSeconds: queue.heartbeatSeconds,
    deleteAfterSeconds: 3_600,
    deadLetter: dead,
    // This NOTIFY is part of the sender's transaction; ours is batched after the commit (batched-notify.ts).
    notify: false,
  }
  await boss.createQueue(queue.name, settings)
  await boss.updateQueue(queue.name, settings)
}
