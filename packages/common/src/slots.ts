/** Runs at most so many at once, in order of arrival. */
export interface Slots {
  /**
   * `key` names the share that the work takes. Throws the refusal when too many wait already or the wait was too long, and
   * the reason of `signal` when that ends the wait.
   */
  run<T>(work: () => Promise<T>, whose?: { key?: string; signal?: AbortSignal }): Promise<T>
  /** Throws what `run` would throw at once, for a caller with something to do before. */
  refuseWhenFull(key: string): void
  /** How many work at this moment, and how many wait to. */
  taken(): { used: number; waiting: number }
}

export interface SlotLimits {
  atOnce: number
  waiting: number
  waitMs: number
  /** Share of one key in both, so that no caller holds everything. */
  perKey?: { atOnce: number; waiting: number }
}

/** `isShare`: the key has used up its share, while others may still come in. */
type Refusal = (isShare: boolean) => Error

interface Waiting {
  key: string
  start: () => void
}

export function createSlots({ atOnce, waiting, waitMs, perKey }: SlotLimits, refuse: Refusal): Slots {
  const queue: Waiting[] = []
  const running = new Map<string, number>()
  let total = 0

  const isShareTaken = (key: string) => (running.get(key) ?? 0) >= (perKey?.atOnce ?? atOnce)
  const isFree = (key: string) => total < atOnce && !isShareTaken(key)
  const isQueueFull = (key: string) =>
    queue.length >= waiting || queue.filter((other) => other.key === key).length >= (perKey?.waiting ?? waiting)
  const refusal = (key: string) => refuse(perKey !== undefined && isShareTaken(key))
  const refuseWhenFull = (key: string) => {
    if (!isFree(key) && isQueueFull(key)) throw refusal(key)
  }
  const occupy = (key: string) => {
    total++
    running.set(key, (running.get(key) ?? 0) + 1)
  }
  const release = (key: string) => {
    total--
    const left = (running.get(key) ?? 1) - 1
    if (left > 0) running.set(key, left)
    else running.delete(key)
    const next = queue.find((other) => isFree(other.key))
    if (!next) return
    // Handed on at once, never free in between.
    queue.splice(queue.indexOf(next), 1)
    occupy(next.key)
    next.start()
  }

  const waitInQueue = async (key: string, signal: AbortSignal | undefined) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const place = { key, start: resolve }
    const leave = (reason: unknown) => {
      const index = queue.indexOf(place)
      if (index < 0) return
      queue.splice(index, 1)
      reject(reason)
    }
    const onAbort = () => leave(signal?.reason)
    const timer = waitMs < Infinity ? setTimeout(() => leave(refusal(key)), waitMs) : undefined
    signal?.addEventListener('abort', onAbort)
    queue.push(place)
    try {
      await promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
  }

  return {
    run: async (work, { key = '', signal } = {}) => {
      signal?.throwIfAborted()
      refuseWhenFull(key)
      if (isFree(key)) occupy(key)
      else await waitInQueue(key, signal)
      try {
        return await work()
      } finally {
        release(key)
      }
    },
    refuseWhenFull,
    taken: () => ({ used: total, waiting: queue.length }),
  }
}
