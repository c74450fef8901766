import type { Logger } from '@services/common/telemetry/logger'
import { type Kysely, sql } from 'kysely'
import type pg from 'pg'
import type { DB } from './tables.ts'

/** Interval of readings; unless it is set, a machine's clock drifts by milliseconds meanwhile. */
const EVERY_MS = 60_000

/** Readings per measurement; the one with the shortest round trip is the most exact. */
const READINGS = 3

/** Tolerated difference: clocks kept by NTP agree better than a loaded machine can measure. */
const TOLERATED_MS = 1_000

/**
 * Follows the database's time: the machine's clock, corrected when it differs. All replicas write and compare times by
 * it, so one replica's wrong clock neither ends sessions nor prolongs codes. It is read in the background: no request
 * waits, and the last correction stays while the database is unavailable.
 */
export async function followDatabaseClock(pool: pg.Pool, log: Logger, machineNow: () => Date = () => new Date()) {
  let correctionMs = 0
  const measure = async () => {
    const aheadMs = await databaseAheadMs(pool, machineNow)
    if (aheadMs === undefined) return
    const wanted = Math.abs(aheadMs) > TOLERATED_MS ? aheadMs : 0
    if (Math.abs(wanted - correctionMs) > TOLERATED_MS) {
      log.warn(
        { databaseAheadSeconds: Math.round(aheadMs / 1000) },
        "machine clock differs from the database's: using the database's time",
      )
    }
    correctionMs = wanted
  }
  await measure()
  const timer = setInterval(() => {
    measure().catch((err) => log.debug({ err }, "reading the database's clock failed"))
  }, EVERY_MS)
  timer.unref()
  return { now: () => new Date(machineNow().getTime() + correctionMs), stop: () => clearInterval(timer) }
}

export async function readDatabaseTime(db: Kysely<DB>): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select now()`.execute(db)
  return (rows[0] as { now: Date }).now
}

/** Difference in ms; undefined if all round trips were too long, because the error is half of one. */
async function databaseAheadMs(pool: pg.Pool, machineNow: () => Date): Promise<number | undefined> {
  let best = { roundTripMs: Number.POSITIVE_INFINITY, aheadMs: 0 }
  for (let i = 0; i < READINGS; i++) {
    const started = machineNow().getTime()
    const { rows } = await pool.query('select extract(epoch from clock_timestamp())::float8 * 1000 as ms')
    const ended = machineNow().getTime()
    const roundTripMs = ended - started
    if (roundTripMs < best.roundTripMs) best = { roundTripMs, aheadMs: rows[0].ms - (started + ended) / 2 }
  }
  return best.roundTripMs > TOLERATED_MS ? undefined : best.aheadMs
}
