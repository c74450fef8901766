import pg from 'pg'
import type { Logger } from 'pino'
import { checkIdleConnections, takesWrites } from './idle-connections.ts'
import { waitAtMost } from './wait-at-most.ts'

/**
 * A connection on which nothing comes may be dead without a word, or lead to a primary that was replaced: it is checked this
 * often, because each process learns from it that its other connections are to be checked, too.
 */
const CHECK_EVERY_MS = 2_000
const ANSWER_WITHIN_MS = 3_000

const CONNECT_WITHIN_MS = 5_000
const RECONNECT_AFTER_MS = 500
/** A new primary is listened to within three seconds. */
const RECONNECT_AFTER_AT_MOST_MS = 2_000

/** A server that is gone, or hangs, reads no goodbye. */
const GOODBYE_WITHIN_MS = 1_000

export interface ListenOptions {
  url: string
  applicationName: string
  channel: string
  log: Logger
  onNotification: (payload: string) => void
  /** The connection listens, for the first time or again: what was notified in between is lost. */
  onListening: () => void
}

/**
 * LISTENs on a channel, on a connection of its own that is replaced when it breaks. Each connection has somebody who hears
 * its errors until it has ended: the last words of a server that goes down may come after our own goodbye, and an error
 * that nobody hears ends the process.
 */
export async function keepListening(options: ListenOptions): Promise<{ close(): Promise<void> }> {
  const { log } = options
  let current: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let failuresInARow = 0

  const lose = (client: pg.Client, err: unknown) => {
    if (client !== current || isClosed) return
    current = undefined
    clearTimeout(timer)
    client.end().catch(() => {})
    const afterMs = Math.min(RECONNECT_AFTER_MS * 2 ** failuresInARow, RECONNECT_AFTER_AT_MOST_MS)
    if (failuresInARow++ === 0) log.warn({ err }, 'the connection for notifications was lost, connecting again')
    timer = setTimeout(connect, afterMs)
  }

  const requireWrites = async (client: pg.Client) => {
    if (!(await takesWrites(client, ANSWER_WITHIN_MS))) throw new Error('the server takes no writes')
  }

  const checkAgain = (client: pg.Client) => {
    if (client !== current || isClosed) return
    timer = setTimeout(async () => {
      try {
        await requireWrites(client)
        checkAgain(client)
      } catch (err) {
        if (client === current) checkIdleConnections(options.url)
        lose(client, err)
      }
    }, CHECK_EVERY_MS)
  }

  const connect = async () => {
    const client = new pg.Client({
      connectionString: options.url,
      application_name: options.applicationName,
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_WITHIN_MS,
      query_timeout: ANSWER_WITHIN_MS,
    })
    current = client
    client.on('error', (err) => lose(client, err))
    client.on('end', () => lose(client, new Error('the connection ended')))
    client.on('notification', ({ payload }) => {
      if (payload !== undefined && client === current) options.onNotification(payload)
    })
    try {
      await client.connect()
      await requireWrites(client)
      await client.query(`listen ${pg.escapeIdentifier(options.channel)}`)
    } catch (err) {
      return lose(client, err)
    }
    if (client !== current || isClosed) return
    if (failuresInARow > 0) log.info('notifications are heard again')
    failuresInARow = 0
    options.onListening()
    checkAgain(client)
  }
  await connect()

  return {
    close: async () => {
      isClosed = true
      clearTimeout(timer)
      if (current) await waitAtMost(GOODBYE_WITHIN_MS, current.end()).catch(() => {})
    },
  }
}
