// Counts of sign-ups, sign-ins, messages and the queue for the console's overview, by hour and day. Each process counts
// in memory and writes once a minute, so no request has a further statement. A crash loses at most its last minute.
// Stored rows cannot say it: an ended session leaves none, and past an hourly limit refusals are in the log alone.
import { startRounds } from '@services/common/housekeeping/rounds'
import type { Queue } from '@services/common/queue/queue'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { CountedEvent, DB } from '../../db/tables.ts'
import { followCounts } from '../../metrics.ts'
import { type HourlyCount, writeCounts } from './counts.store.ts'

const EVERY_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

/** Begin of the hour or day of UTC that a time is in. */
export const beginOf = (unitMs: number, time: Date): Date => new Date(time.getTime() - (time.getTime() % unitMs))

/**
 * Age past which an unwritten hour is lost, after an outage. It is shorter than the age of hours that housekeeping adds
 * to their day: one that is written later would count twice.
 */
const LATEST_MS = DAY_MS

export type Statistics = NonNullable<ReturnType<typeof createStatistics>>

interface StatisticsDeps {
  db: Kysely<DB>
  queue: Pick<Queue, 'figures'>
  log: Logger
  now: () => Date
  newId: () => string
  config: { console: { enabled: boolean }; server: { workersEnabled: boolean } }
}

/** Undefined while the console is disabled: then nothing is counted. */
export function createStatistics({ db, queue, log, now, newId, config }: StatisticsDeps) {
  if (!config.console.enabled) return undefined
  const process = newId()
  const counts = new Map<string, HourlyCount & { written: number }>()

  function change(event: CountedEvent, method: string, result: string, next: (count: number) => number): void {
    const hour = beginOf(HOUR_MS, now())
    const key = JSON.stringify([hour, event, method, result])
    const counted = counts.get(key) ?? { hour, event, method, result, count: 0, written: 0 }
    counts.set(key, Object.assign(counted, { count: next(counted.count) }))
  }

  function forgetPast(): void {
    const hour = beginOf(HOUR_MS, now()).getTime()
    for (const [key, { hour: counted, count, written }] of counts) {
      const age = hour - counted.getTime()
      if (age > LATEST_MS || (age > 0 && written >= count)) counts.delete(key)
    }
  }

  /** Counts an event; a sign-in by PKCE where its way is proven, and not again where its code is exchanged. */
  function count(event: CountedEvent, method: string, result: string): void {
    if (event === 'sign_in' && method === 'pkce' && result === 'ok') return
    change(event, method, result, (counted) => counted + 1)
  }

  /** Writes what this process has counted and not written yet. */
  async function write(): Promise<void> {
    forgetPast()
    const pending = [...counts.values()].filter((each) => each.count > each.written)
    if (pending.length === 0) return
    const sent = pending.map(({ written: _, ...counted }) => counted)
    await writeCounts(db, process, sent)
    for (const [i, each] of pending.entries()) each.written = sent[i]?.count ?? 0
  }

  /** Notes the longest queue of the hour. All processes see the same one, so those with workers suffice. */
  async function lookAtQueue(): Promise<void> {
    const figures = await queue.figures()
    const jobs = figures.reduce((sum, { waiting, retrying }) => sum + waiting + retrying, 0)
    const oldest = Math.max(0, ...figures.map(({ oldestWaitingSeconds }) => Math.floor(oldestWaitingSeconds)))
    change('queue', 'all', 'jobs', (most) => Math.max(most, jobs))
    change('queue', 'all', 'oldest_seconds', (most) => Math.max(most, oldest))
  }

  async function round(): Promise<void> {
    try {
      if (config.server.workersEnabled) await lookAtQueue()
      await write()
    } catch (err) {
      log.warn({ err }, 'statistics not written: retrying in a minute')
    }
  }

  return {
    count,
    lookAtQueue,
    write,
    /** Counts, and writes once a minute, until the returned function is called, which writes the rest. */
    start(): () => Promise<void> {
      const unfollow = followCounts(count)
      const stopRounds = startRounds(round, { log, firstMs: EVERY_MS, everyMs: EVERY_MS })
      return async () => {
        unfollow()
        await stopRounds()
        await write()
      }
    },
  }
}
