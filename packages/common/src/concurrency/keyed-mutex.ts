import { createSemaphore, type Semaphore } from './semaphore.ts'

export interface KeyedMutex {
  /** Runs `work` once all earlier work of the same key has ended, however it ended. */
  run<Result>(key: string, work: () => Promise<Result>): Promise<Result>
  /** Waits for its turn; the returned function ends it. */
  take(key: string): Promise<() => void>
}

/** Runs one at a time per key, in order of arrival. Refuses work behind `maxWaiting` waiting callers of its key. */
export function createKeyedMutex({
  maxWaiting = Infinity,
  refuse = () => new Error('too many are waiting'),
} = {}): KeyedMutex {
  const semaphoreOf = new Map<string, Semaphore>()
  const run: KeyedMutex['run'] = async (key, work) => {
    const semaphore =
      semaphoreOf.get(key) ?? createSemaphore({ atOnce: 1, waiting: maxWaiting, waitMs: Infinity }, refuse)
    semaphoreOf.set(key, semaphore)
    try {
      return await semaphore.run(work)
    } finally {
      if (semaphore.taken().used === 0) semaphoreOf.delete(key)
    }
  }
  return {
    run,
    take: (key) =>
      new Promise((resolve, reject) => {
        run(key, () => new Promise<void>((release) => resolve(release))).catch(reject)
      }),
  }
}
