// LISTEN and NOTIFY of PostgreSQL. A notification only saves a poll, so nothing depends on its arrival.
import pg from 'pg'
import type { Logger } from 'pino'
import { withTimeout } from '../concurrency/with-timeout.ts'
import { checkIdleConnections } from '../database/check-idle-connections.ts'
import { addressesOf, requireWrites } from '../database/failover.ts'
import { createListenCheck, type ListenCheckOptions } from './probe-listener.ts'

/**
 * Interval of checks: a quiet connection may be dead, or lead to a replaced primary. Its loss starts the checks of all
 * others.
 */
const CHECK_EVERY_MS = 2_000
const ANSWER_WITHIN_MS = 3_000

const CONNECT_WITHIN_MS = 5_000
const RECONNECT_AFTER_MS = 500
const RECONNECT_AFTER_AT_MOST_MS = 2_000

/** Wait for a clean end; a dead server never answers. */
const GOODBYE_WITHIN_MS = 1_000

export interface ListenOptions {
  url: string
  fallbackUrls?: readonly string[] | undefined
  applicationName: string
  channel: string
  log: Logger
  onNotification: (payload: string) => void
  /** Runs a statement on another connection, to check that this one hears. */
  execute: ListenCheckOptions['execute']
  /** Called when notifications may have been lost: at each start of listening, and often while none arrive. */
  onListening: () => void
}

/**
 * LISTENs on a channel on its own connection, replaced when it breaks. Each connection keeps its error listener until
 * it has ended. A server that shuts down may report that after we have closed, and an unhandled error would end the
 * process.
 */
export async function keepListening(options: ListenOptions): Promise<{ close(): Promise<void> }> {
  const { log } = options
  const listenCheck = createListenCheck({ log, execute: options.execute, poll: options.onListening })
  const addresses = addressesOf(options.url, options.fallbackUrls)
  let current: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let failuresInARow = 0

  const lose = (client: pg.Client, err: unknown) => {
    if (client !== current || isClosed) return
    current = undefined
    clearTimeout(timer)
    listenCheck.stop()
    client.end().catch(() => {})
    if (failuresInARow === 0) log.warn({ err }, 'notification connection lost, reconnecting')
    const rounds = Math.floor(failuresInARow / addresses.count)
    failuresInARow++
    // The next address may accept writes; the delay is between two attempts of the same.
    const isRoundOver = failuresInARow % addresses.count === 0
    const afterMs = isRoundOver ? Math.min(RECONNECT_AFTER_MS * 2 ** rounds, RECONNECT_AFTER_AT_MOST_MS) : 0
    timer = setTimeout(connect, afterMs)
  }

  const checkAgain = (client: pg.Client) => {
    if (client !== current || isClosed) return
    timer = setTimeout(async () => {
      try {
        await requireWrites(client, ANSWER_WITHIN_MS)
        checkAgain(client)
      } catch (err) {
        if (client === current) checkIdleConnections(options.url)
        lose(client, err)
      }
    }, CHECK_EVERY_MS)
  }

  const connect = async () => {
    const address = addresses.current
    const client = new pg.Client({
      connectionString: address,
      application_name: options.applicationName,
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_WITHIN_MS / addresses.count,
      query_timeout: ANSWER_WITHIN_MS,
    })
    current = client
    client.on('error', (err) => lose(client, err))
    client.on('end', () => lose(client, new Error('the connection ended')))
    client.on('notification', ({ channel, payload }) => {
      if (client !== current) return
      listenCheck.recordReceived()
      if (channel === options.channel && payload !== undefined) options.onNotification(payload)
    })
    try {
      await client.connect()
      await requireWrites(client, ANSWER_WITHIN_MS)
      const channels = [options.channel, listenCheck.channel]
      await client.query(channels.map((channel) => `listen ${pg.escapeIdentifier(channel)}`).join(';'))
    } catch (err) {
      addresses.passOver(address)
      return lose(client, err)
    }
    if (client !== current || isClosed) return
    if (failuresInARow > 0) log.info('notification connection restored')
    failuresInARow = 0
    options.onListening()
    listenCheck.start()
    checkAgain(client)
  }
  await connect()

  return {
    close: async () => {
      isClosed = true
      clearTimeout(timer)
      listenCheck.stop()
      if (current) await withTimeout(GOODBYE_WITHIN_MS, current.end()).catch(() => {})
    },
  }
}
