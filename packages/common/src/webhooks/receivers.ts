export type Receivers = ReturnType<typeof createReceivers>

/** Counts attempts under way in this process, by receiver. */
export function createReceivers() {
  const attempts = new Map<string, number>()
  const busyAt = (receiverId: string) => attempts.get(receiverId) ?? 0
  return {
    /** Receivers with attempts, and their number. */
    busy: attempts as ReadonlyMap<string, number>,
    busyAt,
    /** Takes a slot; the returned function frees it. */
    enter: (receiverId: string) => {
      attempts.set(receiverId, busyAt(receiverId) + 1)
      return () => {
        const left = busyAt(receiverId) - 1
        if (left > 0) attempts.set(receiverId, left)
        else attempts.delete(receiverId)
      }
    },
  }
}
