// Checks that a LISTEN connection receives: a pooler in transaction mode drops LISTEN without an error, and every job
// would wait for its poll. The notification comes from another connection. A pooler forwards one that its own statement
// causes.
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'

/** Interval of checks: a NOTIFY takes a lock of the whole server when it commits. */
const CHECK_EVERY_MS = 10_000
const RECEIVED_WITHIN_MS = 5_000

/** Interval of polls in place of notifications. */
const POLL_EVERY_MS = 500

export interface ListenCheckOptions {
  log: Logger
  /** Runs a statement on another connection. */
  execute: (text: string, values: unknown[]) => Promise<unknown>
  poll: () => void
}

const notReceiving = new Set<object>()

/** Counts the LISTEN connections of this process that receive no notifications. */
export const countListenersNotReceiving = (): number => notReceiving.size

export function createListenCheck({ log, execute, poll }: ListenCheckOptions) {
  /** Only the checked connection listens on it. */
  const channel = `listen_check_${randomUUID()}`
  let checking: NodeJS.Timeout | undefined
  let deadline: NodeJS.Timeout | undefined
  let polling: NodeJS.Timeout | undefined
  let hasReceived = false

  const markNotReceiving = () => {
    if (polling) return
    log.warn(
      'notifications do not arrive, polling instead: set DATABASE_DIRECT_URL to the address of PostgreSQL, not of a pooler',
    )
    notReceiving.add(check)
    polling = setInterval(poll, POLL_EVERY_MS)
  }
  const markReceiving = () => {
    clearTimeout(deadline)
    clearInterval(polling)
    polling = undefined
    notReceiving.delete(check)
  }
  const run = async () => {
    const current = checking
    hasReceived = false
    try {
      await execute(`select pg_notify($1, '')`, [channel])
    } catch {
      return // proves nothing about listening
    }
    if (hasReceived || current !== checking) return
    clearTimeout(deadline)
    deadline = setTimeout(markNotReceiving, RECEIVED_WITHIN_MS)
  }
  const check = {
    channel,
    /** Starts checks of a connection that begins to listen. */
    start: () => {
      checking = setInterval(run, CHECK_EVERY_MS)
      void run()
    },
    recordReceived: () => {
      hasReceived = true
      if (polling) log.info('notifications arrive again')
      markReceiving()
    },
    /** Stops them when the connection has ended. */
    stop: () => {
      clearInterval(checking)
      checking = undefined
      markReceiving()
    },
  }
  return check
}
