// A slot is one of pg-boss's workers: it looks for a job when it is woken or its poll is due. A search is a statement, so
// no event wakes more slots than can find something. A notification wakes one per lane, which wakes the next once it has
// found a job. The end of a job wakes only slots that are at work.
import type { PgBoss } from 'pg-boss'

/** Slots of one `work` call. */
type Lane = string

/** Wakes an idle slot of each lane. */
export function wakeNext(boss: PgBoss, queue: string): void {
  const woken = new Set<Lane>()
  for (const { id, name, workId, count } of boss.getWipData()) {
    if (name !== queue || count > 0 || woken.has(workId)) continue
    woken.add(workId)
    boss.notifyWorker(id)
  }
}

/** Lets each slot that is at work look again at the end of its job, because a handler does not know its own slot. */
export function lookAgainAtEnd(boss: PgBoss, queue: string): void {
  for (const { id, name, count } of boss.getWipData()) if (name === queue && count > 0) boss.notifyWorker(id)
}

export function wakeAll(boss: PgBoss): void {
  for (const { id } of boss.getWipData()) boss.notifyWorker(id)
}
