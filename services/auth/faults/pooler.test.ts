// A pooler that does not track prepared statements: PgBouncer before 1.21, and later ones with
// max_prepared_statements=0.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '@services/common/database/pool'
import { createLogger } from '@services/common/telemetry/logger'
import { startPgbouncer } from '@services/common/testing/database/pgbouncer'
import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createDatabase, startTestService } from '../test/service.ts'

/** Rounds of requests; a statement is lost within as many, as soon as two processes share a server connection. */
const ROUNDS = 20
const MAX_ROUNDS = 200
const STATEMENTS = 200

/** The service does not know of this pooler, so nothing checks it at start. */
const UNKNOWN_POOLER = {
  default_pool_size: 2,
  max_prepared_statements: 0,
  ignore_startup_parameters: 'statement_timeout,idle_in_transaction_session_timeout',
}

describe('a pooler that loses prepared statements', { tags: 'pgbouncer' }, () => {
  let folder: string
  let database: Awaited<ReturnType<typeof createDatabase>>
  let pooler: Awaited<ReturnType<typeof startPgbouncer>>
  let url: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pooler-'))
    database = await createDatabase()
    pooler = await startPgbouncer(database.url, UNKNOWN_POOLER)
    url = pooler.urlOf(database.url)
  })
  afterEach(async () => {
    await pooler.stop()
    await database.drop()
    await rm(folder, { recursive: true })
  })

  test('lets no process run the statement of another', async () => {
    const log = createLogger({ name: 'test', level: 'fatal' })
    const lost: unknown[] = []
    const ask = async (owner: string) => {
      const { pool, close } = openDatabase({ url, maxPoolSize: 2, applicationName: 'test', log })
      for (let number = 0; number < STATEMENTS; number++) {
        const { rows, code } = await pool
          .query(`select '${owner}' as owner, $1::int as number`, [number])
          .catch(({ code }: pg.DatabaseError) => ({ rows: undefined, code }))
          .then((answer) => ({ code: undefined, ...answer }))
        if (rows) expect(rows).toEqual([{ owner, number }])
        else lost.push(code)
      }
      await close()
    }
    await Promise.all([ask('one'), ask('other'), ask('one'), ask('other')])
    expect(['26000', '42P05']).toEqual(expect.arrayContaining([...new Set(lost)]))
  })

  test('costs 503 and is named in the log', async () => {
    const start = (url: string, logFile: string) =>
      startTestService({
        AUTH_DATABASE_URL: url,
        AUTH_WORKERS_ENABLED: 'false',
        AUTH_LOG_LEVEL: 'error',
        AUTH_LOG_FILE: join(folder, logFile),
      })
    const direct = await start(database.url, 'direct')
    const people = await Promise.all(Array.from({ length: 8 }, () => direct.signedIn()))
    // The first and most frequent statement differs between the processes.
    const [reader, refresher] = [await start(url, 'reader'), await start(url, 'refresher')]
    const seen = { ok: 0, lost: 0 }
    for (let round = 0; round < ROUNDS || (round < MAX_ROUNDS && seen.lost === 0); round++) {
      await Promise.all(
        people.flatMap((person) =>
          [
            reader.get('/user', person.auth).then((answer) => ({ ...answer, user: answer.body })),
            refresher.post('/token?grant_type=refresh_token', { refresh_token: person.refreshToken }).then((answer) => {
              if (answer.status === 200) person.refreshToken = answer.body.refresh_token
              return { ...answer, user: answer.body.user }
            }),
          ].map(async (asked) => {
            const { status, user, headers } = await asked
            expect([200, 503]).toContain(status)
            if (status === 200) expect(user.id).toBe(person.userId)
            else expect(headers['retry-after']).toBe('1')
            seen[status === 200 ? 'ok' : 'lost']++
          }),
        ),
      )
    }
    expect(seen).toEqual({ ok: expect.toSatisfy((count) => count > 0), lost: expect.toSatisfy((count) => count > 0) })
    await Promise.all([direct, reader, refresher].map((service) => service.close()))
    const reports = async () => {
      const logs = await Promise.all(['reader', 'refresher'].map((name) => readFile(join(folder, name), 'utf8')))
      return logs.map((log) => log.split('\n').filter((line) => line.includes('max_prepared_statements')))
    }
    await expect.poll(async () => (await reports()).flat()[0]).toMatch(/"level":"error".*"code":"(26000|42P05)"/)
    for (const ofOne of await reports()) expect(ofOne.length).toBeLessThanOrEqual(1)
  })
})
