// Rates with a receiver of events, beside those without one. The receiver takes each event at once, in a thread of its
// own. Alone: `node bench/events.ts`, on an embedded PostgreSQL and without a row in results/.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from '@services/common/bench/median'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import pg from 'pg'
import { type BenchUser, createUsers, refreshes, runFor, signIns, startService, userReads } from './load.ts'
import { startMessageSinks } from './message-sinks.ts'

const ROUNDS = 5
const DATABASE = 'events'
const RATES = { 'sign-ins': signIns, refreshes, 'GET /user': userReads }

/** Returns each rate with and without a receiver. Their services have a database each, because a receiver is a row. */
export async function measureEvents(databaseUrl: string, seconds: number, concurrency: number) {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  await pool.query(`create database ${DATABASE}`)
  await pool.end()
  const ownUrl = new URL(databaseUrl)
  ownUrl.pathname = `/${DATABASE}`
  const sinks = await startMessageSinks()
  const services = [
    await startService(ownUrl.href, {
      AUTH_WEBHOOK_URL: sinks.settings.AUTH_SMS_HTTP_URL as string,
      AUTH_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
      AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
    }),
    await startService(databaseUrl),
  ]
  try {
    const rows: { what: string; withEvents: number; without: number }[] = []
    const users: BenchUser[][] = []
    for (const { base } of services) users.push(await createUsers(base, concurrency, 'events'))
    for (const [what, callsOf] of Object.entries(RATES)) {
      const calls = services.map(({ base }, index) => callsOf(base, users[index] ?? []))
      for (const call of calls) await runFor(seconds, concurrency, call)
      const rates: number[][] = [[], []]
      // Alternating, so that other load on the machine affects both.
      for (let round = 0; round < ROUNDS; round++) {
        for (const [index, call] of calls.entries()) {
          rates[index]?.push((await runFor(seconds, concurrency, call)).rate)
        }
      }
      const [withEvents = 0, without = 0] = rates.map(median)
      rows.push({ what, withEvents, without })
    }
    await requireDeliveries(ownUrl.href)
    return rows
  } finally {
    for (const { stop } of services) await stop()
    await sinks.stop()
  }
}

async function requireDeliveries(connectionString: string): Promise<void> {
  const pool = new pg.Pool({ connectionString, max: 1 })
  const { rows } = await pool.query<{ state: string; count: number }>(
    'select state, count(*)::integer as count from webhook_deliveries group by state',
  )
  await pool.end()
  const countOf = (state: string) => rows.find((row) => row.state === state)?.count ?? 0
  // A dispatcher that falls behind costs the sign-ins little.
  if (countOf('waiting') > countOf('delivered') / 100) throw new Error(`events wait: ${JSON.stringify(rows)}`)
}

if (import.meta.main) {
  const dataDir = await mkdtemp(join(tmpdir(), 'bench-postgres-'))
  const postgres = await startEmbeddedPostgres({ dataDir, database: 'bench' })
  try {
    for (const { what, withEvents, without } of await measureEvents(postgres.url, 3, 16)) {
      const ratio = (withEvents / without).toFixed(2)
      console.log(`${what}, with events | without: ${withEvents.toFixed(1)} | ${without.toFixed(1)} a second, ${ratio}`)
    }
  } finally {
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
