import { apiError } from '../errors.ts'

/** Runs at most so many at once, in order of arrival. */
export interface Slots {
  /** Throws busy when too many wait already. */
  run<T>(work: () => Promise<T>): Promise<T>
}

export function createSlots({ atOnce, waiting }: { atOnce: number; waiting: number }): Slots {
  const queue: (() => void)[] = []
  let running = 0
  return {
    run: async (work) => {
      if (running >= atOnce) {
        if (queue.length >= waiting) throw apiError('busy', { retryAfterSeconds: 5 })
        // The slot of whoever ends is handed on, never free in between.
        await new Promise<void>((resolve) => queue.push(resolve))
      } else running++
      try {
        return await work()
      } finally {
        const next = queue.shift()
        if (next) next()
        else running--
      }
    },
  }
}

/** One after another for each key: the same bytes sent twenty times at once are looked at once. */
export function createTurns(): { take<T>(key: string, work: () => Promise<T>): Promise<T> } {
  const last = new Map<string, Promise<unknown>>()
  return {
    take: async (key, work) => {
      const before = last.get(key) ?? Promise.resolve()
      const turn = before.then(work, work)
      last.set(key, turn)
      try {
        return await turn
      } finally {
        if (last.get(key) === turn) last.delete(key)
      }
    },
  }
}
