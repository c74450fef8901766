// Bounds on work within one process: semaphores, mutexes by key, batches, timeouts.
/** Runs a bounded number of tasks at once, in order of arrival. */
export interface Semaphore {
  /** Runs `work` in a slot of its `key`. Throws the refusal when full or after a long wait, and `signal`'s reason. */
  run<T>(work: () => Promise<T>, whose?: { key?: string; signal?: AbortSignal }): Promise<T>
  /** Throws the refusal that `run` would throw at once. */
  refuseWhenFull(key: string): void
  taken(): { used: number; waiting: number }
}

export interface SemaphoreLimits {
  atOnce: number
  waiting: number
  waitMs: number
  /** Limits of one key, so that no caller takes all capacity. */
  perKey?: { atOnce: number; waiting: number }
}

/** `isKeyFull`: the key has reached its own limit, while others may have capacity. */
type Refusal = (isKeyFull: boolean) => Error

interface Waiting {
  key: string
  start: () => void
}

export function createSemaphore({ atOnce, waiting, waitMs, perKey }: SemaphoreLimits, refuse: Refusal): Semaphore {
  const queue: Waiting[] = []
  const running = new Map<string, number>()
  let total = 0

  const isKeyFull = (key: string) => (running.get(key) ?? 0) >= (perKey?.atOnce ?? atOnce)
  const isFree = (key: string) => total < atOnce && !isKeyFull(key)
  const isQueueFull = (key: string) =>
    queue.length >= waiting || queue.filter((other) => other.key === key).length >= (perKey?.waiting ?? waiting)
  const refusal = (key: string) => refuse(perKey !== undefined && isKeyFull(key))
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
    // The slot passes directly, so that no newcomer takes it.
    queue.splice(queue.indexOf(next), 1)
    occupy(next.key)
    next.start()
  }

  const waitInQueue = async (key: string, signal: AbortSignal | undefined) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const entry = { key, start: resolve }
    const leave = (reason: unknown) => {
      const index = queue.indexOf(entry)
      if (index < 0) return
      queue.splice(index, 1)
      reject(reason)
    }
    const onAbort = () => leave(signal?.reason)
    const timer = waitMs < Infinity ? setTimeout(() => leave(refusal(key)), waitMs) : undefined
    signal?.addEventListener('abort', onAbort)
    queue.push(entry)
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
