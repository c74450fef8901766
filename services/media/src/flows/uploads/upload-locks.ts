import { apiError } from '../../errors.ts'

/** How long a request waits for the one that is writing; that one is told to end at once. */
const WAIT_MS = 10_000

/** The shape that @tus/server asks for: one lock per request and upload. */
export interface UploadLock {
  lock(signal: AbortSignal, onWanted: () => void): Promise<void>
  unlock(): Promise<void>
}

interface Place {
  onWanted: () => void
  start: () => void
}

/**
 * One request at a time for each upload of this process, the latest wins: who holds the lock is told that it is wanted, and
 * lets go of a connection that is probably dead. The library's own waits in a loop that takes a whole core.
 */
export function createUploadLocks(): { newLock(id: string): UploadLock } {
  const queues = new Map<string, Place[]>()

  const take = async (id: string, signal: AbortSignal, onWanted: () => void) => {
    const { promise, resolve: start, reject } = Promise.withResolvers<void>()
    const place = { onWanted, start }
    const queue = queues.get(id) ?? []
    queues.set(id, queue)
    queue.push(place)
    if (queue[0] === place) return place
    for (const other of queue) if (other !== place) other.onWanted()
    const giveUp = () => reject(apiError('upload_locked', { retryAfterSeconds: 1 }))
    const timer = setTimeout(giveUp, WAIT_MS)
    // Somebody newer wants it, or the client has gone.
    signal.addEventListener('abort', giveUp)
    try {
      await promise
      return place
    } catch (error) {
      leave(id, place)
      throw error
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', giveUp)
    }
  }
  const leave = (id: string, place: Place) => {
    const queue = queues.get(id) ?? []
    const wasFirst = queue[0] === place
    queue.splice(queue.indexOf(place), 1)
    if (queue.length === 0) queues.delete(id)
    else if (wasFirst) queue[0]?.start()
  }

  return {
    newLock: (id) => {
      let held: Place | undefined
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
