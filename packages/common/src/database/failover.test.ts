import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { sql } from 'kysely'
import pg from 'pg'
import { pino } from 'pino'
import { expect, inject, onTestFinished, test } from 'vitest'
import { keepListening } from '../listen/listener.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { startWay } from '../testing/database/way-to-server.ts'
import { isDatabaseUnavailable } from './errors.ts'
import { type DatabaseOptions, openDatabase } from './pool.ts'

const silent = pino({ level: 'silent' })

/** A database, which stands for a server: it can refuse writes as a standby does. */
async function startHost() {
  const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_addresses`, async () => {})
  onTestFinished(() => database.drop())
  const name = new URL(database.url).pathname.slice(1)
  const admin = new pg.Client({ connectionString: inject('databaseServerUrl') })
  await admin.connect()
  onTestFinished(() => admin.end())
  return {
    url: database.url,
    name,
    /** Applies to new connections. */
    refuseWrites: () => admin.query(`alter database ${name} set default_transaction_read_only = on`),
    acceptWrites: () => admin.query(`alter database ${name} reset default_transaction_read_only`),
    endConnections: () =>
      admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]),
  }
}

/** Address of a host that accepts connections and never answers. */
async function startSilentHost() {
  const attempts: unknown[] = []
  const server = createServer((socket) => attempts.push(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `postgres://auth@127.0.0.1:${(server.address() as AddressInfo).port}/auth`, attempts }
}

const CLOSED = 'postgres://auth@127.0.0.1:1/auth'

function open(url: string, fallbackUrls: string[], more: Partial<DatabaseOptions> = {}) {
  const database = openDatabase({
    ...{ url, fallbackUrls, maxPoolSize: 2, applicationName: 'test', log: silent },
    ...more,
  })
  onTestFinished(() => database.close())
  return {
    ...database,
    nameOf: async () =>
      (await sql<{ name: string }>`select current_database() as name`.execute(database.db)).rows[0]?.name,
  }
}

test('a connection passes over closed hosts and standbys to the first server that accepts writes', async () => {
  const [standby, primary, later] = [await startHost(), await startHost(), await startHost()]
  await standby.refuseWrites()
  const { nameOf, pool } = open(CLOSED, [standby.url, primary.url, later.url])
  expect(await nameOf()).toBe(primary.name)
  expect((await pool.query('select current_database() as name')).rows).toEqual([{ name: primary.name }])
})

test('a silent host costs the first connection its share of the time, and later connections nothing', async () => {
  const [silentHost, host] = [await startSilentHost(), await startHost()]
  const { nameOf, pool } = open(silentHost.url, [host.url], { connectWithinMs: 1_000 })
  expect(await nameOf()).toBe(host.name)
  await host.endConnections()
  await expect.poll(() => pool.totalCount).toBe(0)
  expect(await nameOf()).toBe(host.name)
  expect(silentHost.attempts).toHaveLength(1)
})

test('a former primary is used again only when the server in use fails and it accepts writes', async () => {
  const [first, second] = [await startHost(), await startHost()]
  const { nameOf, pool } = open(first.url, [second.url])
  const reconnect = async () => {
    for (const host of [first, second]) await host.endConnections()
    await expect.poll(() => pool.totalCount).toBe(0)
    return nameOf()
  }
  expect(await nameOf()).toBe(first.name)
  await first.refuseWrites()
  expect(await reconnect()).toBe(second.name)
  await first.acceptWrites()
  expect(await reconnect()).toBe(second.name)
  await second.refuseWrites()
  expect(await reconnect()).toBe(first.name)
})

test('a server that becomes read-only under open connections is left at the first refused write', async () => {
  const [first, second] = [await startHost(), await startHost()]
  const { nameOf, pool } = open(first.url, [second.url])
  const clients = [await pool.connect(), await pool.connect()]
  for (const client of clients) await client.query('set default_transaction_read_only = on')
  await first.refuseWrites()
  for (const client of clients) client.release()
  await expect(pool.query('create table refused ()')).rejects.toThrow('read-only')
  await expect.poll(nameOf).toBe(second.name)
})

test('without a server that accepts writes a connection fails as unavailable, after one attempt of each', async () => {
  const [standby, silentHost] = [await startHost(), await startSilentHost()]
  await standby.refuseWrites()
  for (const fallbacks of [[silentHost.url], [silentHost.url, CLOSED]]) {
    const { nameOf } = open(standby.url, fallbacks, { connectWithinMs: 500 })
    const failure = await nameOf().catch((error) => error)
    expect([String(failure), isDatabaseUnavailable(failure)]).toEqual([expect.stringContaining('rror'), true])
  }
  expect(silentHost.attempts).toHaveLength(2)
})

test('a refused user is reported, and no other address is asked', async () => {
  const [first, second] = [await startHost(), await startSilentHost()]
  const url = new URL(first.url)
  url.pathname = '/missing'
  const { nameOf } = open(url.href, [second.url])
  await expect(nameOf()).rejects.toThrow('does not exist')
  expect(second.attempts).toEqual([])
})

test('a change of host is logged with the new host', async () => {
  const lines: object[] = []
  const log = pino({ level: 'warn', base: {} }, { write: (line) => lines.push(JSON.parse(line)) })
  const [first, second] = [await startHost(), await startHost()]
  const way = await startWay(second.url)
  onTestFinished(way.close)
  const { nameOf, pool } = open(first.url, [way.url], { log })
  await nameOf()
  await first.refuseWrites()
  await first.endConnections()
  await expect.poll(() => pool.totalCount).toBe(0)
  lines.length = 0
  expect(await nameOf()).toBe(second.name)
  const { port } = new URL(way.url)
  expect(lines).toEqual([expect.objectContaining({ host: `127.0.0.1:${port}`, msg: 'database host changed' })])
})

test('LISTEN moves to the server that accepts writes', async () => {
  const [first, second] = [await startHost(), await startHost()]
  const heard: string[] = []
  const listener = await keepListening({
    ...{ url: first.url, fallbackUrls: [second.url], applicationName: 'listener', channel: 'news', log: silent },
    onNotification: (payload) => void heard.push(payload),
    onListening: () => void heard.push('listening'),
    execute: async () => {},
  })
  onTestFinished(() => listener.close())
  expect(heard).toEqual(['listening'])
  await first.refuseWrites()
  await first.endConnections()
  await expect.poll(() => heard).toEqual(['listening', 'listening'])
  await open(second.url, []).pool.query(`notify news, 'from the second'`)
  await expect.poll(() => heard).toEqual(['listening', 'listening', 'from the second'])
})
