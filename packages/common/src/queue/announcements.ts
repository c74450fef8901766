// Announcements to all processes of a service, by the notifications of its queue. A listener is called too when one may
// have been lost.
import { sql } from 'kysely'
import type { AnyTransaction } from '../database/after-commit.ts'
import type { NotifyMode } from '../database/settings.ts'

export interface Announcements {
  /** Announces a topic to all processes with this queue, this one too, by the commit of the transaction. */
  announce(trx: AnyTransaction, topic: string): Promise<void>
  /**
   * Calls `listener` when the topic is announced, and when that may have been lost; without notifications (`none`)
   * never. The returned function ends it.
   */
  onAnnouncement(topic: string, listener: () => void): () => void
}

/** No queue has such a name. */
const PREFIX = 'topic '

export function createAnnouncements({ channel, mode }: { channel: string; mode: NotifyMode }) {
  const listeners = new Map<string, Set<() => void>>()
  const call = (topic: string) => {
    for (const listener of listeners.get(topic) ?? []) listener()
  }
  const doors: Announcements = {
    async announce(trx, topic) {
      if (mode === 'none') return
      // Sent within the transaction, because a lost one costs more than the poll of a job.
      await sql`select pg_notify(${channel}, ${PREFIX + topic})`.execute(trx)
    },
    onAnnouncement(topic, listener) {
      const known = listeners.get(topic) ?? new Set()
      listeners.set(topic, known.add(listener))
      return () => void known.delete(listener)
    },
  }
  return {
    doors,
    /** Calls the listeners of an announced topic; false for the notification of a job. */
    heard(payload: string): boolean {
      if (!payload.startsWith(PREFIX)) return false
      call(payload.slice(PREFIX.length))
      return true
    },
    /** Announcements may be lost: calls all listeners. */
    all(): void {
      for (const topic of listeners.keys()) call(topic)
    },
  }
}
