import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import Fastify from 'fastify'
import { sql } from 'kysely'
import { pino } from 'pino'
import { SMTPServer } from 'smtp-server'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { healthRoutes } from '../http/health.routes.ts'
import { explainStartFailure } from '../process/explain-start-failure.ts'
import { answerWithin } from '../request-deadline.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { PLANNED_EACH_TIME } from './connection.ts'
import { openDatabase, waitForDatabase } from './pool.ts'

test('closing ends connections that no built query has used', async () => {
  const { pool, close } = openDatabase({
    url: inject('databaseServerUrl'),
    maxPoolSize: 1,
    applicationName: 'test',
    log: pino({ level: 'silent' }),
  })
  await pool.query('select 1')
  await close()
  expect(pool.totalCount).toBe(0)
})

// Behind a pooler that does not track them, statements of all processes meet in the connections of the server.
test('a name stands for one statement, in whatever order processes prepare them', async () => {
  const texts = ['select $1::int as one', 'select $1::int as two', 'select $1::int as three']
  const prepare = async (order: string[]) => {
    const { pool, close } = openDatabase({
      ...{ url: inject('databaseServerUrl'), maxPoolSize: 1, applicationName: 'test' },
      log: pino({ level: 'silent' }),
    })
    const client = await pool.connect()
    for (const text of order) await client.query(text, [1])
    const { rows } = await client.query('select name, statement from pg_prepared_statements')
    client.release()
    await close()
    return new Map(rows.map(({ name, statement }) => [name, statement]))
  }
  const [one, other] = [await prepare(texts), await prepare(texts.toReversed())]
  expect(one.size).toBe(3)
  expect(other).toEqual(one)
})

test('a statement that is planned for its values has no name, under which PostgreSQL would reuse a plan', async () => {
  const { db, pool, close } = openDatabase<{ numbers: { n: number } }>({
    ...{ url: inject('databaseServerUrl'), maxPoolSize: 1, applicationName: 'test' },
    log: pino({ level: 'silent' }),
  })
  const numbers = db.selectFrom(sql<{ n: number }>`generate_series(1, 9)`.as<'n'>('n')).select('n')
  await numbers.where('n', '=', 1).modifyFront(sql.raw(PLANNED_EACH_TIME)).execute()
  await numbers.where('n', '=', 2).execute()
  const { rows } = await pool.query('select statement from pg_prepared_statements')
  await close()
  expect(rows.map(({ statement }) => statement)).toEqual([expect.not.stringContaining('planned')])
})

describe('a statement of an expired request', () => {
  test.for<[string, string, (url: string) => Promise<Detour>]>([
    ['a server', '', async (url) => ({ url, takeNoMore: () => {}, close: () => {} })],
    ['a way that takes TLS only', '?sslmode=no-verify', (url) => startDetour(url, asTls)],
  ])('is cancelled through %s', async ([, query, open]) => {
    await using stage = await abandonedOn(query, open)
    await stage.abandon()
    await expect.poll(() => stage.sleeping()).toBe(0)
    expect(stage.lines).toEqual([])
  })

  test('is logged when it cannot be cancelled', async () => {
    await using stage = await abandonedOn('', (url) => startDetour(url, async (socket) => socket))
    await stage.abandon(() => stage.detour.takeNoMore())
    await expect.poll(() => stage.lines).toEqual(['statement could not be cancelled'])
  })
})

test('closing a database twice leaves the idle connections of the next one checked', async () => {
  const log = pino({ level: 'silent' })
  const options = { url: inject('databaseServerUrl'), maxPoolSize: 2, applicationName: 'test', log }
  const first = openDatabase(options)
  await first.close()
  const { pool, close } = openDatabase(options)
  await first.close()
  const clients = [await pool.connect(), await pool.connect()]
  for (const client of clients) await client.query('set default_transaction_read_only = on')
  for (const client of clients) client.release()
  await expect(pool.query('create table refused ()')).rejects.toThrow('read-only')
  await expect.poll(() => pool.totalCount).toBe(0)
  await close()
})

/** Readiness of a service whose pool has one connection, by a way that the test can block. It is ready. */
async function startReadiness() {
  const ways: Socket[] = []
  const detour = await startDetour(inject('databaseServerUrl'), async (socket) => {
    ways.push(socket)
    return socket
  })
  const log = pino({ level: 'silent' })
  const { pool, close } = openDatabase({ url: detour.url, maxPoolSize: 1, applicationName: 'test', log })
  const app = Fastify()
  healthRoutes(app, { pool, isStopping: () => false })
  const ready = async () => (await app.inject('/health/ready')).statusCode
  onTestFinished(async () => {
    await app.close()
    await close()
    detour.close()
  })
  await expect.poll(ready).toBe(200)
  return { ways, ready }
}

test('a silent connection makes the service unready and is dropped by that check', async () => {
  const { ways, ready } = await startReadiness()
  for (const way of ways) way.unpipe()
  expect(await ready()).toBe(503)
  await expect.poll(ready).toBe(200)
})

test('a slow server makes the service unready and keeps its connections', async () => {
  const { ways, ready } = await startReadiness()
  for (const way of ways) way.pause()
  expect(await ready()).toBe(503)
  for (const way of ways) way.resume()
  await expect.poll(ready).toBe(200)
  expect(ways).toHaveLength(1)
})

describe('a start fails at once', () => {
  test.for<[string, string, (socket: Socket) => Promise<Duplex | undefined>, string]>([
    ['by a certificate that is not trusted', '?sslmode=verify-full', asTls, 'is not trusted'],
    ['by a password that is missing', '', askForPassword, 'password must be a string'],
  ])('%s', async ([, query, accept, reason]) => {
    const detour = await startDetour(inject('databaseServerUrl'), accept)
    const url = new URL(detour.url + query)
    url.password = ''
    const lines: string[] = []
    const log = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line).msg) })
    const { pool, close } = openDatabase({ url: url.href, maxPoolSize: 1, applicationName: 'test', log })
    const failure: Error = await waitForDatabase(pool, log).then(
      () => new Error('it started'),
      (error) => error,
    )
    expect(explainStartFailure(failure, {}) ?? failure.message).toContain(reason)
    expect(lines).toEqual(['database connection failed'])
    await close()
    detour.close()
  })
})

/** A database behind a way to it, and a request that asks it to sleep. */
async function abandonedOn(query: string, open: (url: string) => Promise<Detour>) {
  const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_database`, async () => {})
  const detour = await open(database.url)
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line).msg) })
  const options = { maxPoolSize: 2, applicationName: 'test', log }
  const through = openDatabase({ ...options, url: detour.url + query })
  const beside = openDatabase({ ...options, url: database.url })
  const sleeping = async () =>
    (
      await sql`select from pg_stat_activity
        where datname = current_database() and query like 'select pg_sleep%' and state = 'active'`.execute(beside.db)
    ).rows.length
  await sql`select 1`.execute(through.db)
  const app = Fastify()
  const limit = Promise.withResolvers<() => void>()
  answerWithin(app, 1_000, (end) => {
    limit.resolve(end)
    return setTimeout(() => {}, 0)
  })
  app.get('/', async () => sql`select pg_sleep(600)`.execute(through.db))
  return {
    detour,
    lines,
    sleeping,
    /**
     * Asks, does `meanwhile` when the statement runs, ends the time of the request, and has the answer that it took too
     * long.
     */
    async abandon(meanwhile = () => {}) {
      const answer = app.inject('/')
      await expect.poll(sleeping).toBe(1)
      meanwhile()
      const endTime = await limit.promise
      endTime()
      expect((await answer).statusCode).toBe(500)
    },
    async [Symbol.asyncDispose]() {
      await app.close()
      // Nothing else ends a statement that could not be cancelled before its time limit.
      await sql`select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query like 'select pg_sleep%'`.execute(beside.db)
      await Promise.all([through.close(), beside.close()])
      detour.close()
      await database.drop()
    },
  }
}

interface Detour {
  url: string
  takeNoMore(): void
  close(): void
}

async function startDetour(url: string, accept: (socket: Socket) => Promise<Duplex | undefined>): Promise<Detour> {
  const { hostname, port: databasePort } = new URL(url)
  const sockets = new Set<Duplex>()
  const server = createServer(async (socket) => {
    socket.on('error', () => {})
    const accepted = await accept(socket)
    if (!accepted) return socket.destroy()
    const onward = connect(Number(databasePort), hostname)
    for (const end of [accepted, onward]) {
      sockets.add(end)
      end.on('error', () => {})
      end.on('close', () => {
        accepted.destroy()
        onward.destroy()
      })
    }
    accepted.pipe(onward).pipe(accepted)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const detour = new URL(url)
  detour.port = String((server.address() as AddressInfo).port)
  detour.searchParams.delete('host')
  return {
    url: detour.href,
    takeNoMore: () => server.close(),
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** PostgreSQL documentation, "SSL Session Encryption". The mail server brings a certificate for tests. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
const secureContext = new SMTPServer().secureContext.get('*')

/** AuthenticationSASL and AuthenticationSASLContinue (PostgreSQL documentation, "Message Formats"). */
async function askForPassword(socket: Socket): Promise<undefined> {
  await once(socket, 'data')
  socket.write(Buffer.from('R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0'))
  await once(socket, 'data')
  socket.write(Buffer.from('R\0\0\0\x09\0\0\0\x0bx'))
  await once(socket, 'close')
}

async function asTls(socket: Socket): Promise<Duplex | undefined> {
  const [first] = await once(socket, 'data')
  if (!SSL_REQUEST.equals(first)) return undefined
  socket.write('S')
  return new TLSSocket(socket, { isServer: true, secureContext })
}
