// NOTIFY after the commit, batched. A notification is a hint that saves a poll, so its loss costs a delay only. Inside
// transactions, they would let these commit only one after the other, on the whole server.
import { sql } from 'kysely'
import type { Logger } from 'pino'
import { type AnyTransaction, afterCommit } from '../database/after-commit.ts'
import type { NotifyMode } from '../database/settings.ts'

/** Interval of notifications while there are more; the first after a pause is immediate. */
const NOTIFY_EVERY_MS = 50

interface NotificationOptions {
  channel: string
  mode: NotifyMode
  /** Runs a statement outside of all transactions. */
  execute: (text: string, values: unknown[]) => Promise<unknown>
  log: Logger
}

export interface Notifications {
  /**
   * Notifies the channel's listeners once the transaction is committed; a payload that is repeated within the interval
   * once.
   */
  send(trx: AnyTransaction, payload: string): Promise<void>
  /** Sends what waits for the interval, and resolves when all is sent. */
  flush(): Promise<void>
}

export function createNotifications({ channel, mode, execute, log }: NotificationOptions): Notifications {
  const waiting = new Set<string>()
  let interval: NodeJS.Timeout | undefined
  let sent = Promise.resolve()

  const sendWaiting = () => {
    clearTimeout(interval)
    interval = undefined
    if (waiting.size === 0) return
    const text = 'select pg_notify($1, payload) from unnest($2::text[]) as payload'
    const sending = execute(text, [channel, [...waiting]]).catch((err) => log.debug({ err }, 'notification lost'))
    sent = Promise.all([sent, sending]).then(() => {})
    waiting.clear()
    interval = setTimeout(sendWaiting, NOTIFY_EVERY_MS)
  }

  return {
    send: async (trx, payload) => {
      if (mode === 'none') return
      if (mode === 'each') return void (await sql`select pg_notify(${channel}, ${payload})`.execute(trx))
      await afterCommit(trx, () => {
        waiting.add(payload)
        if (!interval) sendWaiting()
      })
    },
    flush: () => {
      sendWaiting()
      clearTimeout(interval)
      return sent
    },
  }
}
