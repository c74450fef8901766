import { createSlots, type Slots } from './semaphore.ts'

export interface KeyedMutex {
  /** Runs `work` once all earlier work of the same key has ended, however it ended. */
  run<Result>(key: string, work: () => Promise<Result>): Promise<Result>
}

/** Runs one at a time per key, in order of arrival. Refuses work behind `mostWaiting` waiting callers of its key. */
export function createKeyedMutex({
  mostWaiting = Infinity,
  refuse = () => new Error('too many are waiting'),
} = {}): KeyedMutex {
  const slotOf = new Map<string, Slots>()
  return {
    run: async (key, work) => {
      const slot = slotOf.get(key) ?? createSlots({ atOnce: 1, waiting: mostWaiting, waitMs: Infinity }, refuse)
      slotOf.set(key, slot)
      try {
        return await slot.run(work)
      } finally {
        if (slot.taken().used === 0) slotOf.delete(key)
      }
    },
  }
}
