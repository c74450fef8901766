import type { Logger } from '@services/common/logger'
import type pg from 'pg'

/** Time between two looks at the database's clock; a machine's clock drifts by milliseconds meanwhile, unless it is set. */
const EVERY_MS = 60_000

/** The look with the shortest round trip is the most exact one. */
const LOOKS = 3

/** Smaller differences are left alone: clocks kept by NTP agree better than a loaded machine can measure. */
const TOLERATED_MS = 1_000

export interface DatabaseClock {
  now(): Date
  stop(): void
}

/**
 * The time of the database, followed by this process: its machine's clock, corrected where it differs. All replicas write and
 * compare times by it, so that a replica whose clock is wrong neither ends sessions nor lengthens codes that another one
 * issued. Asked in the background: no request waits for it, and while the database is away the last correction stays.
 */
export async function followDatabaseClock(
  pool: pg.Pool,
  log: Logger,
  machineNow: () => Date = () => new Date(),
): Promise<DatabaseClock> {
  let correctionMs = 0
  const look = async () => {
    const aheadMs = await databaseAheadMs(pool, machineNow)
    if (aheadMs === undefined) return
    const wanted = Math.abs(aheadMs) > TOLERATED_MS ? aheadMs : 0
    if (Math.abs(wanted - correctionMs) > TOLERATED_MS) {
      log.warn(
        { databaseAheadSeconds: Math.round(aheadMs / 1000) },
        "the clock of this machine differs from the database's, whose time is used",
      )
    }
    correctionMs = wanted
  }
  await look()
  const timer = setInterval(() => {
    look().catch((err) => log.debug({ err }, "the database's clock was not read"))
  }, EVERY_MS)
  timer.unref()
  return {
    now: () => new Date(machineNow().getTime() + correctionMs),
    stop: () => clearInterval(timer),
  }
}

/** Undefined where every look took too long to tell: half of its round trip is the error. */
async function databaseAheadMs(pool: pg.Pool, machineNow: () => Date): Promise<number | undefined> {
  let best = { roundTripMs: Number.POSITIVE_INFINITY, aheadMs: 0 }
  for (let i = 0; i < LOOKS; i++) {
    const started = machineNow().getTime()
    const { rows } = await pool.query('select extract(epoch from clock_timestamp())::float8 * 1000 as ms')
    const ended = machineNow().getTime()
    const roundTripMs = ended - started
    if (roundTripMs < best.roundTripMs) best = { roundTripMs, aheadMs: rows[0].ms - (started + ended) / 2 }
  }
  return best.roundTripMs > TOLERATED_MS ? undefined : best.aheadMs
}
