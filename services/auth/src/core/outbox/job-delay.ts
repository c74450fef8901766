import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { QueueJob } from '@services/common/queue'

/**
 * Longest time a job that anybody may cause waits before it is begun. What it costs the process that runs it then falls on a random
 * moment, and not on the requests right after, where its sender could measure it. Longer keeps people waiting for codes.
 */
const LONGEST_DELAY_MS = 500

export const randomDelayMs = (): number => randomInt(LONGEST_DELAY_MS + 1)

/** A job that is begun at a moment of its own. */
export interface DelayedJob {
  /** In milliseconds since 1970; a job of an older version has none. */
  notBefore?: number
}

export const notBefore = ({ now, delayMs }: { now: () => Date; delayMs: () => number }): number =>
  now().getTime() + delayMs()

/** Waits for the job's moment; nothing to wait for where jobs queue up, or at another attempt. */
export async function waitForMoment(
  { now }: { now: () => Date },
  { data, signal }: QueueJob<DelayedJob>,
): Promise<void> {
  const leftMs = Math.min((data.notBefore ?? 0) - now().getTime(), LONGEST_DELAY_MS)
  if (leftMs > 0) await sleep(leftMs, undefined, { signal })
}
