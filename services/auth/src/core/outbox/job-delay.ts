import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { QueueJob } from '@services/common/queue/run-job'

/**
 * Longest delay of a job that a stranger's request may cause. Its cost then falls at a random moment instead of right
 * after the request, where the stranger could measure it. A longer delay would keep users waiting for codes.
 */
const LONGEST_DELAY_MS = 500

export const randomDelayMs = (): number => randomInt(LONGEST_DELAY_MS + 1)

export interface DelayedJob {
  /** Milliseconds since 1970. */
  notBefore: number
}

export const notBefore = ({ now, delayMs }: { now: () => Date; delayMs: () => number }): number =>
  now().getTime() + delayMs()

/** Waits until the job may begin; late jobs and retries do not wait. */
export async function waitForMoment({ now }: { now(): Date }, { data, signal }: QueueJob<DelayedJob>): Promise<void> {
  const leftMs = Math.min(data.notBefore - now().getTime(), LONGEST_DELAY_MS)
  if (leftMs > 0) await sleep(leftMs, undefined, { signal })
}
