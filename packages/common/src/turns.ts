export interface Turns {
  /** Runs `work` once all work of the same key that came before has ended, however it ended. */
  take<Result>(key: string, work: () => Promise<Result>): Promise<Result>
}

/** One after another for each key. `refuse` makes the error for work that `mostWaiting` others would have to end before. */
export function createTurns({ mostWaiting, refuse }: { mostWaiting: number; refuse: () => Error } = UNBOUNDED): Turns {
  const lines = new Map<string, { last: Promise<unknown>; length: number }>()
  return {
    take: async (key, work) => {
      const line = lines.get(key) ?? { last: Promise.resolve(), length: 0 }
      if (line.length > mostWaiting) throw refuse()
      lines.set(key, line)
      line.length++
      const turn = line.last.then(work)
      line.last = turn.catch(() => {})
      try {
        return await turn
      } finally {
        if (--line.length === 0) lines.delete(key)
      }
    },
  }
}

const UNBOUNDED = { mostWaiting: Infinity, refuse: () => new Error('too many wait') }
