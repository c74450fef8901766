// Reads from a replica, a standby that streams from the primary. Nothing waits for a replica that is late, away or of
// unknown lag; the primary answers instead. Reads that run on one as it falls silent wait for their limit, once.
import { setTimeout as sleep } from 'node:timers/promises'
import { CompiledQuery, type Kysely, sql } from 'kysely'
import type pg from 'pg'
import { withTimeout } from '../concurrency/with-timeout.ts'
import { isPastDeadline } from '../request-deadline.ts'
import { isDatabaseUnavailable, isInterrupted } from './errors.ts'
import { type DatabaseOptions, openDatabase } from './pool.ts'
import { isSameDatabase } from './same-database.ts'

export interface ReplicaSettings {
  /** Address of the standby itself, past any pooler. */
  url: string
  maxLagSeconds: number
}

type Work<DB, Result> = (db: Kysely<DB>) => Promise<Result>

/** `work` only reads, and runs again on the primary when it fails on the replica. */
export interface Reads<DB> {
  /** Reads everything that was committed before the call. */
  current<Result>(work: Work<DB, Result>): Promise<Result>
  /**
   * Reads what was committed DATABASE_REPLICA_MAX_LAG ago, or later; a result that is not final is read from the
   * primary.
   */
  recent<Result>(work: Work<DB, Result>, isFinal?: (result: Result) => boolean): Promise<Result>
  /** NaN while it cannot be measured; undefined without a replica. */
  lagSeconds(): number | undefined
  close(): Promise<void>
}

const MEASURE_EVERY_MS = 1_000
/** Longest wait for the replica to have a commit that the caller may have made; it usually takes milliseconds. */
const CATCH_UP_WITHIN_MS = 250
const CHECK_AGAIN_AFTER_MS = 10
/** Timeout for connecting and for reading the lag. A slower replica counts as unavailable. */
const ANSWER_WITHIN_MS = 1_000
/** Limit that leaves a request time for the primary. */
const STATEMENT_WITHIN_MS = 3_000
/** Positions of the log, at most an hour of them, that the replica has not replayed. */
const MAX_MARKS = 3_600

export async function openReads<DB>(
  primary: Kysely<DB>,
  {
    replica: settings,
    answerWithinMs = ANSWER_WITHIN_MS,
    ...options
  }: DatabaseOptions & { replica?: ReplicaSettings | undefined; answerWithinMs?: number },
): Promise<Reads<DB>> {
  if (!settings) return readsOf(primary)
  const maxLagMs = settings.maxLagSeconds * 1000
  const replica = openDatabase<DB>({
    ...options,
    ...{ url: settings.url, fallbackUrls: [], pooler: 'none' },
    ...{ connectWithinMs: answerWithinMs, statementWithinMs: STATEMENT_WITHIN_MS },
    // One line for each change, below.
    log: options.log.child({}, { level: 'error' }),
  })
  /** Times at which the primary's log had reached these positions, oldest first. */
  const marks: { position: bigint; at: number }[] = []
  /** Time of the newest mark that the replica has replayed. */
  let replayedAt = Number.NEGATIVE_INFINITY
  /** Unknown at the start and after each failure. */
  let isOfPrimary = false
  let failure: unknown
  let wasUsable: boolean | undefined
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const lagMs = () => performance.now() - replayedAt
  const isUsable = () => failure === undefined && lagMs() <= maxLagMs

  const logChange = () => {
    if (isClosed || isUsable() === wasUsable) return
    wasUsable = isUsable()
    if (wasUsable) options.log.info('replica in use')
    else options.log.warn({ err: failure, lagSeconds: lagSeconds() }, 'replica not in use: late or away')
  }
  const lagSeconds = () => (failure === undefined && Number.isFinite(replayedAt) ? lagMs() / 1000 : Number.NaN)

  const ask = (text: string) => replica.pool.query({ text, query_timeout: answerWithinMs } as pg.QueryConfig)

  const hasReplayed = async (position: string): Promise<boolean> => {
    const { rows } = await ask('select pg_last_wal_replay_lsn()::text as replayed, pg_is_in_recovery() as "isStandby"')
    const [{ replayed, isStandby }] = rows
    if (!isStandby || replayed === null) throw new Error('not a streaming standby, so its lag cannot be measured')
    const reached = toNumber(replayed)
    while (marks[0] && marks[0].position <= reached) replayedAt = marks.shift()?.at as number
    failure = undefined
    return reached >= toNumber(position)
  }

  /** Whether the replica has this position of the primary's log, or gets it soon. A silent one resolves this late. */
  const follow = async (position: string): Promise<boolean> => {
    const deadline = performance.now() + CATCH_UP_WITHIN_MS
    try {
      isOfPrimary ||= await isSameDatabase(ask, (text) => primary.executeQuery(CompiledQuery.raw(text)))
      if (!isOfPrimary) throw new Error('of another cluster or database than the primary')
      while (!(await hasReplayed(position))) {
        if (performance.now() > deadline) return false
        await sleep(CHECK_AGAIN_AFTER_MS)
      }
      return true
    } catch (error) {
      recordFailure(error)
      return false
    }
  }

  const catchesUp = async (position: string) => (await withTimeout(CATCH_UP_WITHIN_MS, follow(position))) === true

  const recordFailure = (error: unknown) => {
    // A statement may be cancelled for its own length, or because it holds up the replica.
    if (isInterrupted(error) || isPastDeadline()) return
    failure = error
    isOfPrimary = false
    logChange()
  }

  const measure = async () => {
    const at = performance.now()
    const position = await positionOf(primary).catch(() => undefined)
    if (position !== undefined) {
      // After a failover that lost commits, the log of the new primary is shorter.
      while ((marks.at(-1)?.position ?? 0n) > toNumber(position)) marks.pop()
      marks.push({ position: toNumber(position), at })
      if (marks.length > MAX_MARKS) marks.shift()
      await follow(position)
    }
    logChange()
    if (!isClosed) timer = setTimeout(measure, Math.min(MEASURE_EVERY_MS, maxLagMs / 4)).unref()
  }

  const onReplica = async <Result>(work: Work<DB, Result>, isFinal = (_result: Result) => true): Promise<Result> => {
    try {
      const result = await work(replica.db)
      if (isFinal(result)) return result
    } catch (error) {
      // The replica may lack a row, or a table of the newest migration.
      if (isDatabaseUnavailable(error)) recordFailure(error)
    }
    return work(primary)
  }

  await measure()
  return {
    current: async (work) => {
      if (!isUsable() || !(await catchesUp(await positionOf(primary)))) return work(primary)
      return onReplica(work)
    },
    recent: async (work, isFinal) => (isUsable() ? onReplica(work, isFinal) : work(primary)),
    lagSeconds,
    close: async () => {
      isClosed = true
      clearTimeout(timer)
      await replica.close()
    },
  }
}

/** Reads from this database alone. */
export const readsOf = <DB>(db: Kysely<DB>): Reads<DB> => ({
  current: (work) => work(db),
  recent: (work) => work(db),
  lagSeconds: () => undefined,
  close: async () => {},
})

/**
 * End of the written log. The end of the inserted log stays ahead while a transaction is open, so that lists would
 * wait.
 */
async function positionOf<DB>(primary: Kysely<DB>): Promise<string> {
  const { rows } = await sql<{ position: string }>`select pg_current_wal_lsn()::text as position`.execute(primary)
  return rows[0]?.position as string
}

/** Parses a pg_lsn such as `16/B374D848`. */
function toNumber(position: string): bigint {
  const [high, low] = position.split('/')
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`)
}
