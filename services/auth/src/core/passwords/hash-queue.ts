import { apiError } from '../../errors.ts'

/** How long the excess is told to wait: a full queue of 25 ms hashes drains within a second or two. */
const RETRY_AFTER_SECONDS = 2

export interface HashQueue {
  run<Result>(work: () => Promise<Result>): Promise<Result>
  /** How many wait for a slot. */
  waiting(): number
}

interface HashQueueLimits {
  concurrency: number
  maxWaiting: number
  longestWaitMs?: number | undefined
  now?: () => number
}

/**
 * Runs at most `concurrency` hashes at once, lets `maxWaiting` wait and refuses the rest with 503: hashing takes cores
 * and 19 MiB each, so an unbounded queue would turn a burst of sign-ins into minutes of latency and no memory. Whoever has
 * waited longer than `longestWaitMs` is refused when their turn comes: where hashes are slow the cores would be busy with those
 * of requests whose time is up, and hardly one would be ready for somebody. `now`: milliseconds of any clock.
 */
export function createHashQueue({
  concurrency,
  maxWaiting,
  longestWaitMs = Number.POSITIVE_INFINITY,
  now = () => performance.now(),
}: HashQueueLimits): HashQueue {
  let running = 0
  const waiting: (() => void)[] = []
  return {
    waiting: () => waiting.length,
    async run(work) {
      const since = now()
      if (running >= concurrency) {
        if (waiting.length >= maxWaiting) throw overCapacity()
        await new Promise<void>((resolve) => waiting.push(resolve))
      } else {
        running++
      }
      try {
        if (now() - since > longestWaitMs) throw overCapacity()
        return await work()
      } finally {
        // The slot goes to the next in line without being freed in between, or a newcomer could overtake.
        const next = waiting.shift()
        if (next) next()
        else running--
      }
    },
  }
}

const overCapacity = () => apiError('over_capacity', { retryAfterSeconds: RETRY_AFTER_SECONDS })
