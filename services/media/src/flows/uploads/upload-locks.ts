import type { Locker, RequestRelease } from '@tus/server'
import { apiError } from '../../errors.ts'

/** Longest wait of a request for the one that is writing, which is asked to end at once. */
const WAIT_MS = 10_000

interface Waiter {
  onWanted: RequestRelease
  start: () => void
}

/** A lock per upload; the latest request wins: the holder is probably dead. The library's own lock busy-waits. */
export function createUploadLocks(): Locker {
  const queues = new Map<string, Waiter[]>()

  const take = async (id: string, signal: AbortSignal, onWanted: RequestRelease) => {
    const { promise, resolve: start, reject } = Promise.withResolvers<void>()
    const waiter = { onWanted, start }
    const queue = queues.get(id) ?? []
    queues.set(id, queue)
    queue.push(waiter)
    if (queue[0] === waiter) return waiter
    for (const other of queue) if (other !== waiter) void other.onWanted()
    const giveUp = () => reject(apiError('upload_locked', { retryAfterSeconds: 1 }))
    const timer = setTimeout(giveUp, WAIT_MS)
    // A newer request wants it, or the client disconnected.
    signal.addEventListener('abort', giveUp)
    try {
      await promise
      return waiter
    } catch (error) {
      leave(id, waiter)
      throw error
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', giveUp)
    }
  }
  const leave = (id: string, waiter: Waiter) => {
    const queue = queues.get(id) ?? []
    const wasFirst = queue[0] === waiter
    queue.splice(queue.indexOf(waiter), 1)
    if (queue.length === 0) queues.delete(id)
    else if (wasFirst) queue[0]?.start()
  }

  return {
    newLock: (id) => {
      let held: Waiter | undefined
      return {
        lock: async (signal, onWanted) => {
          held = await take(id, signal, onWanted)
        },
        unlock: async () => {
          if (held) leave(id, held)
        },
      }
    },
  }
}
