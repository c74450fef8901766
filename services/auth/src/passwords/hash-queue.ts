import { apiError } from '../errors.ts'

/** How long the excess is told to wait: a full queue of 25 ms hashes drains within a second or two. */
const RETRY_AFTER_SECONDS = 2

export interface HashQueue {
  run<Result>(work: () => Promise<Result>): Promise<Result>
  /** How many wait for a slot. */
  waiting(): number
}

/**
 * Runs at most `concurrency` hashes at once, lets `maxWaiting` wait and refuses the rest with 503: hashing takes cores
 * and 19 MiB each, so an unbounded queue would turn a burst of sign-ins into minutes of latency and no memory.
 */
export function createHashQueue(concurrency: number, maxWaiting: number): HashQueue {
  let running = 0
  const waiting: (() => void)[] = []
  return {
    waiting: () => waiting.length,
    async run(work) {
      if (running >= concurrency) {
        if (waiting.length >= maxWaiting) throw apiError('over_capacity', { retryAfterSeconds: RETRY_AFTER_SECONDS })
        await new Promise<void>((resolve) => waiting.push(resolve))
      } else {
        running++
      }
      try {
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
