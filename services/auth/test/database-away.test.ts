// A database unavailable in other ways than closed connections: it accepts no writes, or no logins.
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { startWay } from '@services/common/testing/database/way-to-server'
import pg from 'pg'
import { describe, expect, inject, onTestFinished } from 'vitest'
import { createDatabase, startImpatient, startTestService, type TestService, test } from './service.ts'

const UNAVAILABLE = { status: 503, body: { error_code: 'service_unavailable' }, headers: { 'retry-after': '1' } }

const refresh = (service: TestService, refresh_token: string) =>
  service.post('/token?grant_type=refresh_token', { refresh_token })

/** Lines of a log so far; the last one may still be on its way. */
const linesOf = async (file: string) =>
  (await readFile(file, 'utf8'))
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

describe('connections that lead to a server which accepts no writes any more', () => {
  /** Behaves like a replaced primary to open connections. New connections lead to its successor. */
  async function replacePrimary({ deps: { pool, config } }: TestService) {
    const clients = await Promise.all(Array.from({ length: config.database.maxPoolSize }, () => pool.connect()))
    for (const client of clients) await client.query('set default_transaction_read_only = on')
    for (const client of clients) client.release()
  }

  /** Its own sessions, which a pooler would share. */
  async function startDirect(): Promise<TestService> {
    const service = await startTestService({ AUTH_DATABASE_POOLER: 'none' })
    onTestFinished(() => service.close())
    return service
  }

  test('are all given up by the first request that is refused', async () => {
    const service = await startDirect()
    const { refreshToken } = await service.signedIn()
    await replacePrimary(service)
    expect(await refresh(service, refreshToken)).toMatchObject(UNAVAILABLE)
    const answers = await Promise.all(Array.from({ length: 8 }, () => refresh(service, refreshToken)))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
  })

  test('make the service unready, and are given up by that question', async () => {
    const service = await startDirect()
    const ready = async () => (await service.get('/health/ready')).status
    expect(await ready()).toBe(200)
    await replacePrimary(service)
    expect(await ready()).toBe(503)
    expect(await ready()).toBe(200)
  })
})

test('a statement that the database cut off is 503, and its line has the SQLSTATE and where it was sent', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'database-away-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const logFile = join(folder, 'log')
  const service = await startTestService({ AUTH_LOG_LEVEL: 'warn', AUTH_LOG_FILE: logFile })
  onTestFinished(() => service.close())
  const { refreshToken, userId } = await service.signedIn()
  const holder = await service.deps.pool.connect()
  await holder.query('begin')
  await holder.query('select from sessions where user_id = $1 for update', [userId])
  const answer = refresh(service, refreshToken)
  await expect.poll(() => countLockWaits(holder)).toBe(1)
  await holder.query(`select pg_cancel_backend(pid) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`)
  expect(await answer).toMatchObject(UNAVAILABLE)
  await holder.query('rollback')
  holder.release()
  await expect
    .poll(() => linesOf(logFile))
    .toMatchObject([
      { level: 'warn', msg: 'request refused', err: { code: '57014', stack: expect.stringContaining('rotate') } },
    ])
})

test('a refresh whose answer the database lost is repeated after the reuse interval, and ends no session', async ({
  service,
}) => {
  const way = await startWay(service.deps.config.database.directUrl)
  onTestFinished(way.close)
  const impatient = await startImpatient(service, { AUTH_DATABASE_URL: way.url })
  onTestFinished(() => impatient.close())
  const { refreshToken, userId } = await service.signedIn()
  const session = async () => {
    const { rows } = await service.deps.pool.query('select * from sessions where user_id = $1', [userId])
    return rows[0]
  }
  const holder = await service.deps.pool.connect()
  await holder.query('begin')
  await holder.query('select from sessions where user_id = $1 for update', [userId])
  const answer = refresh(impatient, refreshToken)
  await expect.poll(() => countLockWaits(holder)).toBe(1)
  way.silenceOpen()
  await holder.query('rollback')
  holder.release()
  await expect.poll(session).toMatchObject({ refresh_counter: 1 })
  service.clock.advance({ seconds: 11 })
  expect((await answer).status).toBe(504)
  expect((await refresh(impatient, refreshToken)).status).toBe(200)
  service.clock.advance({ seconds: 9 })
  const repeated = await refresh(service, refreshToken)
  expect(repeated.status).toBe(200)
  expect((await refresh(service, repeated.body.refresh_token)).status).toBe(200)
  expect(await session()).toMatchObject({ refresh_counter: 2 })
})

describe('a database that accepts no login is 503 with Retry-After, and no line of a request has a stack:', () => {
  const admin = async (work: (client: pg.Client) => Promise<void>) => {
    const client = new pg.Client({ connectionString: inject('databaseServerUrl') })
    await client.connect()
    await work(client).finally(() => client.end())
  }
  const nameOf = (url: string) => new URL(url).pathname.slice(1)
  const endConnections = (client: pg.Client, name: string) =>
    client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])

  test.for<[string, string, (client: pg.Client, name: string, role: string) => Promise<() => Promise<unknown>>]>([
    [
      '55000',
      'it takes no connections',
      async (client, name) => {
        await client.query(`alter database ${name} with allow_connections false`)
        await endConnections(client, name)
        return () => client.query(`alter database ${name} with allow_connections true`)
      },
    ],
    [
      '3D000',
      'it was renamed',
      async (client, name) => {
        await client.query(`alter database ${name} with allow_connections false`)
        await endConnections(client, name)
        await client.query(`alter database ${name} rename to ${name}_away`)
        return async () => {
          await client.query(`alter database ${name}_away rename to ${name}`)
          await client.query(`alter database ${name} with allow_connections true`)
        }
      },
    ],
    [
      '28P01',
      'the password was replaced',
      async (client, name, role) => {
        await client.query(`alter role ${role} password 'other'`)
        await endConnections(client, name)
        return () => client.query(`alter role ${role} password 'first'`)
      },
    ],
  ])('%s, %s', async ([state, , close]) => {
    const database = await createDatabase()
    const role = `${inject('testRunId')}_${randomBytes(4).toString('hex')}`
    const url = new URL(database.url)
    Object.assign(url, { username: role, password: 'first' })
    await admin(async (client) => void (await client.query(`create role ${role} superuser login password 'first'`)))
    onTestFinished(async () => {
      await database.drop()
      await admin(async (client) => void (await client.query(`drop role ${role}`)))
    })
    const folder = await mkdtemp(join(tmpdir(), 'database-away-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const logFile = join(folder, 'log')
    const log = { AUTH_LOG_LEVEL: 'info', AUTH_LOG_FILE: logFile }
    const service = await startTestService({ AUTH_DATABASE_URL: url.href, AUTH_WORKERS_ENABLED: 'false', ...log })
    onTestFinished(() => service.close())
    const { refreshToken } = await service.signedIn()
    await admin(async (client) => {
      const open = await close(client, nameOf(database.url), role)
      try {
        await expect.poll(() => service.deps.pool.totalCount).toBe(0)
        for (let number = 0; number < 3; number++) {
          expect(await refresh(service, refreshToken)).toMatchObject(UNAVAILABLE)
          expect((await service.get('/health/ready')).status).toBe(503)
        }
      } finally {
        await open()
      }
    })
    expect((await refresh(service, refreshToken)).status).toBe(200)
    expect((await service.get('/health/ready')).status).toBe(200)
    await expect
      .poll(async () => (await linesOf(logFile)).filter(({ msg }) => msg === 'request refused'))
      .toMatchObject([{ sqlState: state }, { sqlState: state }, { sqlState: state }])
    const lines = await linesOf(logFile)
    const ofRequests = lines.filter(({ err, reqId }) => err && reqId)
    expect(ofRequests).toEqual([])
    expect(lines.filter(({ msg }) => msg === 'database connection failed')).toMatchObject([
      { level: 'warn', err: { code: state } },
    ])
  })
})
