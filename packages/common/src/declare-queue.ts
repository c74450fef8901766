import type { PgBoss } from 'pg-boss'

/** A queue and its dead-letter queue, `<name>.dead`. */
export interface QueueDefinition {
  name: string
  /** Tries after the first one before the job goes to the dead-letter queue. */
  retryLimit: number
  /** Wait before the first retry; doubles up to `retryDelayMaxSeconds`. */
  retryDelaySeconds: number
  retryDelayMaxSeconds: number
  /** A job running longer is taken away from its worker. */
  expireInSeconds: number
  /** Seconds without a sign of life (sent for the handler by pg-boss) after which a killed worker's job is given to another; at least 10. */
  heartbeatSeconds: number
}

/** What the names of dead-letter queues end with. */
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
    notify: true,
  }
  await boss.createQueue(queue.name, settings)
  await boss.updateQueue(queue.name, settings)
}
