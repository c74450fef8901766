import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { expect, inject, onTestFinished, test } from 'vitest'
import { startEmbeddedPostgres } from '../dev/embedded-postgres.ts'
import { createLogger } from '../telemetry/logger.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { keepListening } from './listener.ts'
import { countListenersNotReceiving } from './probe-listener.ts'

const log = createLogger({ name: 'test', level: 'fatal' })

/** A server of its own, because all databases of a server become read-only at once. */
async function startServer() {
  const folder = await mkdtemp(join(tmpdir(), 'read-only-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), durable: false, database: 'listen' })
  onTestFinished(() => server.stop())
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  onTestFinished(() => client.end())
  const setReadOnly = async (isReadOnly: boolean) => {
    await client.query(`alter system set default_transaction_read_only = ${isReadOnly}`)
    await client.query('select pg_reload_conf()')
  }
  return {
    url: server.url,
    query: async (text: string, values?: unknown[]) => (await client.query(text, values)).rows,
    setReadOnly,
  }
}

test('a connection to a server that becomes read-only is replaced until the server accepts writes', async () => {
  const { url, query, setReadOnly } = await startServer()
  const heard: string[] = []
  const listener = await keepListening({
    ...{ url, applicationName: 'listener', channel: 'news', log },
    onNotification: (payload) => void heard.push(payload),
    onListening: () => void heard.push('listening'),
    execute: query,
  })
  onTestFinished(() => listener.close())
  const findListener = () => query(`select pid from pg_stat_activity where application_name = 'listener'`)
  const first = await findListener()
  expect({ heard, connections: first.length }).toEqual({ heard: ['listening'], connections: 1 })
  await setReadOnly(true)
  await expect.poll(findListener).not.toEqual(first)
  await query(`notify news, 'to a deaf process'`)
  await setReadOnly(false)
  await expect.poll(() => heard.slice(0, 2)).toEqual(['listening', 'listening'])
  await query(`notify news, 'written'`)
  await expect.poll(() => heard).toContain('written')
  expect(heard).not.toContain('to a deaf process')
})

test('a connection on which no notifications arrive is reported, and polls replace them until they do', async () => {
  const [listening, other] = [await connectToNew('listening'), await connectToNew('other')]
  let polls = 0
  // Its notifications go elsewhere, as those to a LISTEN that a pooler dropped.
  let notified = other
  const lines: string[] = []
  const listener = await keepListening({
    ...{ url: listening.url, applicationName: 'listener', channel: 'news' },
    log: pino({ level: 'info' }, { write: (line) => lines.push(JSON.parse(line).msg) }),
    onNotification: () => {},
    onListening: () => void polls++,
    execute: (text, values) => notified.client.query(text, values),
  })
  onTestFinished(() => listener.close())
  expect({ polls, notReceiving: countListenersNotReceiving() }).toEqual({ polls: 1, notReceiving: 0 })
  await expect.poll(() => polls).toBeGreaterThan(3)
  expect(countListenersNotReceiving()).toBe(1)
  notified = listening
  await expect.poll(countListenersNotReceiving).toBe(0)
  expect(lines).toEqual([expect.stringContaining('set DATABASE_DIRECT_URL'), 'notifications arrive again'])
})

async function connectToNew(name: string) {
  const { url, drop } = await cloneTemplate(
    inject('databaseServerUrl'),
    `${inject('testRunId')}_${name}`,
    async () => {},
  )
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(async () => {
    await client.end()
    await drop()
  })
  return { url, client }
}
