/** Attempts under way in this process, by receiver. */
export interface Receivers {
  busyAt(receiverId: string): number
  /** Takes a slot; the returned function frees it. */
  enter(receiverId: string): () => void
}

export function createReceivers(): Receivers {
  const attempts = new Map<string, number>()
  const busyAt = (receiverId: string) => attempts.get(receiverId) ?? 0
  return {
    busyAt,
    enter: (receiverId) => {
      attempts.set(receiverId, busyAt(receiverId) + 1)
      return () => {
        const left = busyAt(receiverId) - 1
        if (left > 0) attempts.set(receiverId, left)
        else attempts.delete(receiverId)
      }
    },
  }
}
