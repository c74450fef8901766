import { randomUUID, randomUUIDv7 } from 'node:crypto'
import { hash, verify } from 'argon2'
import { type CompiledQuery, Kysely, type LogEvent, PostgresDialect } from 'kysely'
import pg from 'pg'
import { findCaller } from '../src/core/sessions/find-callers.store.ts'
import { rotateSessions } from '../src/core/sessions/rotate-session.store.ts'
import type { DB } from '../src/db/tables.ts'
import type { BenchUser } from './load.ts'

/** The service's default parameters. */
export const SERVICE_HASHING = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }

/** Lower bound of a sign-in: one verification with the service's default parameters. */
export async function bareArgon2(): Promise<() => Promise<void>> {
  const digest = await hash('correct horse battery', SERVICE_HASHING)
  return async () => void (await verify(digest, 'correct horse battery'))
}

/** The refresh statement of the service, captured from its store and sent through bare `pg`, on separate sessions. */
export async function bareRotations(url: string, users: BenchUser[]) {
  const COUNTER = 770_001
  const sample = { sessionId: randomUUID(), auditId: randomUUID(), counter: COUNTER }
  const times = {
    now: new Date(),
    reusableSince: new Date(Date.now() - 10_000),
    startedAfter: null,
    activeAfter: null,
    wereAccepted: false,
  }
  const ofSession = { userAgent: null, ip: '127.0.0.1', oauthClientId: null, thumbprint: null }
  const query = await capture(url, (db) =>
    rotateSessions(db, [{ ...sample, ...ofSession }], times, {
      singlePerUser: false,
      comparesAddress: true,
    }),
  )
  const pool = new pg.Pool({ connectionString: url, max: users.length })
  const sessions = users.map(() => randomUUIDv7())
  const counters = users.map(() => 0)
  for (const [index, user] of users.entries()) {
    await pool.query(
      `insert into sessions (id, user_id, amr, refreshed_at, created_at) values ($1, $2, '[{"method":"password","timestamp":1}]', now(), now())`,
      [sessions[index], user.id],
    )
  }
  const run = async (index = 0) => {
    const counter = counters[index] as number
    const values = query.parameters.map((value) => {
      const [only] = [value].flat()
      if (only === COUNTER) return [counter]
      if (only === sample.sessionId) return [sessions[index]]
      if (only === sample.auditId) return [randomUUIDv7()]
      return value instanceof Date ? new Date() : value
    })
    const { rowCount } = await pool.query({ name: 'rotate', text: query.sql, values })
    if (rowCount !== 1) throw new Error('the bare rotation refused')
    counters[index] = counter + 1
  }
  return { run, close: () => pool.end() }
}

/** The statement behind GET /user, sent through bare `pg`. */
export async function bareSelects(url: string, users: BenchUser[]) {
  const [sampleId, sampleSession] = [randomUUID(), randomUUID()]
  const query = await capture(url, (db) =>
    findCaller(db, { userId: sampleId, sessionId: sampleSession }, { singlePerUser: false }),
  )
  const pool = new pg.Pool({ connectionString: url, max: users.length })
  const run = async (index = 0) => {
    const values = query.parameters.map((value) => ([value].flat()[0] === sampleId ? [users[index]?.id] : value))
    const { rowCount } = await pool.query({ name: 'caller', text: query.sql, values })
    if (rowCount !== 1) throw new Error('the bare select found nobody')
  }
  return { run, close: () => pool.end() }
}

/** Runs a store function once and returns the statement it sent. */
async function capture(url: string, call: (db: Kysely<DB>) => Promise<unknown>): Promise<CompiledQuery> {
  let query: CompiledQuery | undefined
  const log = (event: LogEvent) => {
    query = event.query
  }
  const dialect = new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) })
  const db = new Kysely<DB>({ dialect, log })
  await call(db)
  await db.destroy()
  if (!query) throw new Error('no statement was sent')
  return query
}
