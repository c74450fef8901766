import Fastify from 'fastify'
import { sql } from 'kysely'
import type pg from 'pg'
import { pino } from 'pino'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { ConfigError } from '../config/variables.ts'
import { keepListening } from '../listen/listener.ts'
import { onMigrationConnection } from '../migrations/migrate.ts'
import { explainStartFailure, failureCode } from '../process/explain-start-failure.ts'
import { openQueue } from '../queue/queue.ts'
import { answerWithin } from '../request-deadline.ts'
import { createLogger } from '../telemetry/logger.ts'
import { LIMITS, startPooledRole } from '../testing/database/pgbouncer.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { type DatabaseOptions, openDatabase, waitForDatabase, withDatabase } from './pool.ts'
import { checkPooler } from './pooler.ts'

const log = createLogger({ name: 'test', level: 'fatal' })
const QUEUE = {
  ...{ name: 'work', retryLimit: 1, retryDelaySeconds: 1, retryDelayMaxSeconds: 1 },
  ...{ expireInSeconds: 60, heartbeatSeconds: 10 },
}

/** A database behind PgBouncer with these settings, and a role with these limits. */
async function startPooled(settings: Record<string, string | number> = {}, limits: Record<string, string> = LIMITS) {
  const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_pooled`, async () => {})
  const pooled = await startPooledRole(database.url, settings, limits)
  onTestFinished(async () => {
    await pooled.stop()
    await database.drop()
  })
  return pooled
}

function open(options: Pick<DatabaseOptions, 'url' | 'pooler'>) {
  const database = openDatabase({ maxPoolSize: 2, applicationName: 'test', log, ...options })
  onTestFinished(database.close)
  return database.pool
}

async function check(options: Pick<DatabaseOptions, 'url' | 'directUrl' | 'pooler'>) {
  const pool = open(options)
  return checkPooler(pool, options)
}

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail('accepted'),
    (error) => ({ text: explainStartFailure(error, {}), code: failureCode(error) }),
  )

describe('PgBouncer in transaction mode', { tags: 'pgbouncer' }, () => {
  const pooler = 'transaction' as const

  test('is accepted when it tracks statements and the role has limits', async () => {
    const { url } = await startPooled()
    await expect(check({ url, pooler })).resolves.toBeUndefined()
  })

  test.each([1, 20])('is refused without tracking, for its setting (%i connections)', async (size) => {
    const { url } = await startPooled({ max_prepared_statements: 0, default_pool_size: size, server_round_robin: 1 })
    // Other connections behind the pooler must not hide it.
    const others = open({ url, pooler })
    await Promise.all([1, 2].map(() => others.query('select pg_sleep(0.01)')))
    const { text, code } = await failureOf(check({ url, pooler }))
    expect(text).toContain('set max_prepared_statements of PgBouncer (1.21 or later) to 200')
    expect(code).toBe(78)
  })

  test('is refused in statement mode, for its setting', async () => {
    const { url } = await startPooled({ pool_mode: 'statement' })
    const { text, code } = await failureOf(check({ url, pooler }))
    expect(text).toContain('needs pool_mode = transaction of PgBouncer')
    expect(code).toBe(78)
  })

  test('is refused with a direct address of another database, as is no pooler', async () => {
    const { url, directUrl } = await startPooled()
    const other = new URL(directUrl)
    other.pathname = '/postgres'
    for (const address of [{ url, pooler }, { url: directUrl }]) {
      const { text, code } = await failureOf(check({ ...address, directUrl: other.href }))
      expect(text).toContain('DATABASE_DIRECT_URL leads to another database')
      expect(code).toBe(78)
    }
    await expect(check({ url, directUrl, pooler })).resolves.toBeUndefined()
  })

  test('is refused by migrations that have no other address', async () => {
    const database = { url: 'postgres://pooler/x', pooler, applicationName: 'test', log }
    const { text, code } = await failureOf(onMigrationConnection(database, '', async () => {}))
    expect(text).toContain('needs DATABASE_DIRECT_URL for migrations')
    expect(code).toBe(78)
  })

  test.each([
    ['statement_timeout', 'idle_in_transaction_session_timeout'],
    ['idle_in_transaction_session_timeout', 'statement_timeout'],
  ])('is refused without %s, with the command that sets it', async (missing, present) => {
    const { url, role, database } = await startPooled({}, { [present]: '15s' })
    const { text, code } = await failureOf(check({ url, pooler }))
    expect(text).toContain(`alter role ${role} in database ${database} set ${missing} = '`)
    expect(text).not.toContain(`set ${present}`)
    expect(code).toBe(78)
  })

  test('is refused at once with DATABASE_POOLER=none, which would set limits on its sessions', async () => {
    const { url } = await startPooled()
    const { text, code } = await failureOf(waitForDatabase(open({ url }), log))
    expect(text).toContain('Set DATABASE_POOLER=transaction')
    expect(code).toBe(78)
  })

  test('forwards the cancel of a statement whose request was answered with a timeout', async () => {
    // The role's limit must not end it instead.
    const { url, directUrl } = await startPooled({}, { ...LIMITS, statement_timeout: '10min' })
    const through = open({ url, pooler })
    const beside = open({ url: directUrl })
    const running = `select from pg_stat_activity where query like 'select pg_sleep%' and datname = current_database()
      and state = 'active'`
    const isRunning = async () => (await beside.query(running)).rowCount === 1
    const app = Fastify()
    const limit = Promise.withResolvers<() => void>()
    answerWithin(app, 1_000, (end) => {
      limit.resolve(end)
      return setTimeout(() => {}, 0)
    })
    app.get('/', async () => {
      const client = await through.connect()
      return client.query('select pg_sleep(600)').finally(() => client.release())
    })
    const answer = app.inject('/')
    await expect.poll(isRunning).toBe(true)
    ;(await limit.promise)()
    await answer
    await expect.poll(isRunning).toBe(false)
    await expect.poll(() => through.totalCount).toBe(0)
    await app.close()
  })

  test('starts a job at once, by a notification past it', async () => {
    const { url, directUrl } = await startPooled()
    const lines: string[] = []
    const options = {
      ...{ url, directUrl, pooler, schema: 'jobs', applicationName: 'test', queues: [QUEUE], supervise: false },
      log: pino({ level: 'warn' }, { write: (line) => lines.push(line) }),
    }
    await (await openQueue({ ...options, migrate: true })).stop(0)
    const queue = await openQueue({ ...options, migrate: false })
    onTestFinished(() => queue.stop(0))
    const begun = Promise.withResolvers<unknown>()
    // No poll comes in time.
    await queue.work('work', { concurrency: 1, pollSeconds: 3_600 }, async ({ data }) => begun.resolve(data))
    const { db, close } = openDatabase({ url, pooler, maxPoolSize: 1, applicationName: 'test', log })
    onTestFinished(close)
    await db.transaction().execute((trx) => queue.send(trx, 'work', { id: 1 }))
    expect(await begun.promise).toEqual({ id: 1 })
    expect(lines).toEqual([])
  })

  test('is reported as deaf where it stands in the way of LISTEN', async () => {
    const { url } = await startPooled()
    const pool = open({ url, pooler })
    const lines: string[] = []
    const listener = await keepListening({
      ...{ url, applicationName: 'test', channel: 'news' },
      log: pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line).msg) }),
      onNotification: () => {},
      onListening: () => {},
      execute: (text, values) => pool.query(text, values),
    })
    onTestFinished(() => listener.close())
    await expect.poll(() => lines).toEqual([expect.stringContaining('set DATABASE_DIRECT_URL')])
  })

  test('is not in the way of migrations and commands, which outlast the limits of the role', async () => {
    const { url, directUrl } = await startPooled({}, { ...LIMITS, statement_timeout: '100ms' })
    const database = { url, directUrl, pooler, applicationName: 'test', log } as const
    const limit = async (through: pg.Pool) => (await through.query('show statement_timeout')).rows[0].statement_timeout
    expect(await limit(open({ url, pooler }))).toBe('100ms')
    const show = sql<{ statement_timeout: string }>`show statement_timeout`
    const rows = await Promise.all([
      onMigrationConnection(database, '', ({ db }) => show.execute(db)),
      withDatabase({ ...database, maxPoolSize: 1, statementWithinMs: 60_000 }, (db) => show.execute(db)),
    ])
    expect(rows.map(({ rows: [row] }) => row?.statement_timeout)).toEqual(['0', '1min'])
  })
})

test('a direct connection needs no tracking of statements', async () => {
  const { url, drop } = await cloneTemplate(
    inject('databaseServerUrl'),
    `${inject('testRunId')}_direct`,
    async () => {},
  )
  onTestFinished(drop)
  const limited = new URL(url)
  limited.searchParams.set('options', '-c statement_timeout=15s -c idle_in_transaction_session_timeout=16s')
  await expect(check({ url: limited.href, pooler: 'transaction' })).resolves.toBeUndefined()
  await expect(check({ url, pooler: 'transaction' })).rejects.toThrow(ConfigError)
})
