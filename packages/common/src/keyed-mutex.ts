export interface KeyedMutex {
  /** Runs `work` once all earlier work of the same key has ended, however it ended. */
  run<Result>(key: string, work: () => Promise<Result>): Promise<Result>
}

const UNBOUNDED = { mostWaiting: Infinity, refuse: () => new Error('too many are waiting') }

/** Runs one at a time per key, in order of arrival. Refuses work behind `mostWaiting` waiting callers of its key. */
export function createKeyedMutex({
  mostWaiting,
  refuse,
}: {
  mostWaiting: number
  refuse: () => Error
} = UNBOUNDED): KeyedMutex {
  const queues = new Map<string, { last: Promise<unknown>; length: number }>()
  return {
    run: async (key, work) => {
      const queue = queues.get(key) ?? { last: Promise.resolve(), length: 0 }
      if (queue.length > mostWaiting) throw refuse()
      queues.set(key, queue)
      queue.length++
      const result = queue.last.then(work)
      queue.last = result.catch(() => {})
      try {
        return await result
      } finally {
        if (--queue.length === 0) queues.delete(key)
      }
    },
  }
}
