// A slot is one of pg-boss's workers: it looks for a job when it is woken. A search is a statement, so no event wakes
// more slots than can find something. A notification or a poll wakes one per lane, which wakes the next once it has
// found a job. The end of a job wakes only slots that are at work.
import type { PgBoss, WipData } from 'pg-boss'

/** Slots of one `work` call. */
type Lane = string

/**
 * Time within which a lane does not search again in vain, and after which a search has seen the job of a notification.
 * A search costs as much as there are jobs of groups that have all their slots.
 */
const SEARCHED_WITHIN_MS = 1_000

export function createWaker(boss: PgBoss) {
  const notifiedAt = new Map<string, number>()
  const wakeOnePerLane = (queue: string, hasSearched: (slot: WipData) => boolean) => {
    const idle = boss.getWipData().filter(({ name, count }) => name === queue && count === 0)
    const done = new Set<Lane>(idle.filter(hasSearched).map(({ workId }) => workId))
    for (const { id, workId } of idle) {
      if (done.has(workId)) continue
      done.add(workId)
      boss.notifyWorker(id)
    }
  }
  /** A job was sent: wakes an idle slot of each lane. */
  const notified = (queue: string): void => {
    notifiedAt.set(queue, Date.now())
    wakeOnePerLane(queue, () => false)
  }
  return {
    notified,
    /** Jobs may be due, or their notification lost: wakes an idle slot of each lane. */
    poll: (queue: string): void => wakeOnePerLane(queue, () => false),
    /** A slot has found a job, so there may be more: wakes an idle slot of each lane that has not just searched. */
    found(queue: string): void {
      const since = Math.max(notifiedAt.get(queue) ?? 0, Date.now() - 2 * SEARCHED_WITHIN_MS) + SEARCHED_WITHIN_MS
      wakeOnePerLane(queue, ({ lastFetchedOn }) => (lastFetchedOn ?? 0) > since)
    },
    /**
     * Lets each slot that is at work look again at the end of its job, because a handler does not know its own slot.
     */
    ended(queue: string): void {
      for (const { id, name, count } of boss.getWipData()) if (name === queue && count > 0) boss.notifyWorker(id)
    },
    /** Notifications may be lost: any queue may have a new job. */
    all(): void {
      for (const queue of new Set(boss.getWipData().map(({ name }) => name))) notified(queue)
    },
  }
}
