// The outbox and job queue of a service: a job is written in the same transaction as the rows it belongs to and is delivered
// by pg-boss workers with retries, back-off and a dead-letter queue. A crash between commit and delivery loses nothing, because
// the job is a row. Settings of a queue: declare-queue.ts. Who is next where callers share one: queue-turns.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Span } from '@opentelemetry/api'
import { sql } from 'kysely'
import type pg from 'pg'
import { fromKysely, type Job, type JobResult, PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import { openDatabase } from './database.ts'
import { isDatabaseUnavailable, isInterrupted, sqlStateOf } from './database-errors.ts'
import { declareQueue, type QueueDefinition } from './declare-queue.ts'
import { keepListening } from './keep-listening.ts'
import { countJobs, type QueueFigures, readFigures } from './queue-figures.ts'
import { type AnyTransaction, giveTurn, nextTurn, sendOptions, turnOf } from './queue-turns.ts'
import { errorType, noteFailure, tracedJob, withoutTrace, withTrace } from './tracing.ts'
import { waitAtMost } from './wait-at-most.ts'

export interface QueueJob<Data> {
  id: string
  data: Data
  /** 0 at the first attempt. */
  retryCount: number
  /** Aborted when the claim is lost, the job expires or the worker stops. */
  signal: AbortSignal
}

export interface WorkOptions {
  concurrency: number
  /** Jobs of one share at once in this process; fewer than `concurrency`, so that one share never holds every slot. */
  mostPerShare?: number
  batchSize?: number
  /** Time between two polls for jobs that are due or whose notification was lost. */
  pollSeconds?: number
}

export interface Queue {
  /**
   * Writes a job inside the caller's transaction; it is gone when the transaction rolls back. Nobody begins it before
   * `afterSeconds`. With `share` the jobs of one share take turns with those of the others, however many each has: the
   * n-th job of a share comes after the n-th one of every other, so that a newcomer waits for what is under way and little
   * else. A job without one comes next. On a queue of few thousand jobs, because the turn is counted out, one at a time: send
   * it last in a transaction. The job runs in the trace it is sent in. A job `inPlaceOf` another (by id) has the share and the
   * turn of that one, if it is still there.
   */
  send(
    trx: AnyTransaction,
    name: string,
    data: object,
    how?: { afterSeconds?: number; share?: string; inPlaceOf?: string },
  ): Promise<void>
  /**
   * Gives the waiting job whose data holds these members the next turn of this share, and to this share, if that turn is
   * earlier than its own. Last in a transaction, too.
   */
  advance(trx: AnyTransaction, name: string, data: object, share: string): Promise<void>
  /**
   * Runs `handle` for each job; a thrown error means a retry. A job that lost its database runs again, as the same try, once there
   * is one that takes writes.
   */
  work<Data extends object>(
    name: string,
    options: WorkOptions,
    handle: (job: QueueJob<Data>) => Promise<void>,
  ): Promise<void>
  /**
   * Whether a job whose data holds these members waits, runs or is to be tried again. Inside the caller's transaction, so
   * that under a lock two of them cannot both find none and send one each.
   */
  has(trx: AnyTransaction, name: string, data: object): Promise<boolean>
  /** Jobs that no worker has begun, by queue name. */
  waiting(name: string): Promise<number>
  /** Jobs waiting or running, by queue name, of one share where one is named. */
  depth(name: string, share?: string): Promise<number>
  /** How all queues are at this moment, by one question to the database. */
  figures(): Promise<QueueFigures[]>
  /** Stops taking jobs, waits up to `graceMs` for running ones; what is unfinished then goes back to the queue. */
  stop(graceMs: number): Promise<void>
}

export interface QueueOptions {
  url: string
  /** PostgreSQL schema that holds the queue's tables: one per namespace. */
  schema: string
  applicationName: string
  queues: readonly QueueDefinition[]
  log: Logger
  /** Whether to create or update the queue's own tables; false where `migrate` does it. */
  migrate: boolean
  /** Whether this process looks after expired jobs and failed heartbeats: true where workers run. */
  supervise: boolean
}

/** Fetching and completing take milliseconds each, so that a second connection is only for the supervisor's turn. */
const CONNECTIONS = 2
const CONNECT_WITHIN_MS = 10_000
/** Bounds how long a silent connection holds a worker. */
const STATEMENT_WITHIN_MS = 10_000

/**
 * The supervisor counts, expires and deletes the jobs of all queues in transactions that grow with the table: deleting a million
 * finished jobs took 2 s. One that is cut off deletes nothing and is not repeated for a day. Where its connection falls silent within
 * one, which usually takes milliseconds, this process supervises nothing for as long.
 */
const MAINTENANCE_WITHIN_MS = 600_000
const isMaintenance = (text: string) => /^\s*BEGIN\b/.test(text)

/** Looks for dead workers and expired jobs this often; with 10 s of heartbeat a killed worker's job starts again within 20 s. */
const SUPERVISE_EVERY_SECONDS = 3

/** Pause between two looks for a server that takes writes. The supervisor, which takes away jobs without heartbeats, seldom looks before. */
const LOOK_FOR_SERVER_EVERY_MS = 250
/** Losses of the database that a job survives in one try: one that meets them each time fails as any other does. */
const MOST_LOSSES = 3

export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { log, migrate, schema } = options
  const applicationName = `${options.applicationName} queue`
  const { pool, close } = openDatabase({
    ...{ url: options.url, applicationName, log },
    ...{ maxPoolSize: CONNECTIONS, connectWithinMs: CONNECT_WITHIN_MS },
    // Each has a limit of its own. One that has none, such as a migration, is not cut off.
    statementWithinMs: 0,
  })
  const limitOf = (text: string) => (isMaintenance(text) ? MAINTENANCE_WITHIN_MS : STATEMENT_WITHIN_MS)
  const boss = new PgBoss({
    // pg-boss' own pool waits for ever for a server that is silent, and its listener leaves errors without a listener.
    db: {
      executeSql: (text, values) =>
        pool.query({ text, values, ...(!migrate && { query_timeout: limitOf(text) }) } as pg.QueryConfig),
      listen: (channel, onNotification, onListening) =>
        keepListening({ ...{ url: options.url, applicationName, channel, log }, onNotification, onListening }),
    },
    schema,
    useListenNotify: true,
    migrate,
    createSchema: migrate,
    schedule: false,
    supervise: options.supervise,
    superviseIntervalSeconds: SUPERVISE_EVERY_SECONDS,
    monitorIntervalSeconds: SUPERVISE_EVERY_SECONDS,
  })
  boss.on('error', (err) => log.warn({ err }, 'queue error'))
  boss.on('warning', (warning) => log.warn({ warning: warning.message }, 'queue warning'))
  try {
    await boss.start()
    if (migrate) for (const queue of options.queues) await declareQueue(boss, queue)
  } catch (error) {
    await close()
    throw error
  }
  const worked = new Set<string>()
  const stopping = new AbortController()
  /** Waits until a job that failed by `err` can run again on a server that takes writes. False for another failure, or another owner. */
  const regain = async (job: Job, err: unknown): Promise<boolean> => {
    const signal = AbortSignal.any([job.signal, stopping.signal])
    // A refused or broken connection may be one to another service: a mail server, a receiver.
    let hasLostDatabase = sqlStateOf(err) !== undefined
    while (!signal.aborted) {
      try {
        // Also keeps the supervisor from giving the job, whose heartbeats were lost, to another worker.
        const { affected }: { affected?: number } = await boss.touch(job.name, job)
        return hasLostDatabase && affected === 1
      } catch (error) {
        if (!isDatabaseUnavailable(error)) return false
        hasLostDatabase = true
      }
      await sleep(LOOK_FOR_SERVER_EVERY_MS, undefined, { signal }).catch(() => {})
    }
    return false
  }
  return {
    send: async (trx, name, data, { afterSeconds = 0, share, inPlaceOf } = {}) => {
      const taken = inPlaceOf === undefined ? undefined : await turnOf(trx, { schema, name }, inPlaceOf)
      const turn = taken ?? (share === undefined ? undefined : await nextTurn(trx, { schema, name }, share))
      await boss.send(name, withTrace(data), {
        db: fromKysely(trx),
        startAfter: afterSeconds,
        ...(turn && sendOptions(turn)),
      })
    },
    advance: async (trx, name, data, share) => {
      const turn = await nextTurn(trx, { schema, name }, share)
      await giveTurn(trx, { schema, name }, data, turn)
    },
    work: async <Data extends object>(
      name: string,
      work: WorkOptions,
      handle: (job: QueueJob<Data>) => Promise<void>,
    ) => {
      const { concurrency, mostPerShare, batchSize = 1, pollSeconds } = work
      const workOptions = {
        localConcurrency: concurrency,
        ...(mostPerShare !== undefined && { localGroupConcurrency: mostPerShare }),
        batchSize,
        perJobResults: true,
        // LISTEN wakes workers at once; polling covers lost notifications, and jobs that are to be tried again.
        pollingIntervalSeconds: pollSeconds ?? 2,
        notifyPollingIntervalSeconds: spread(pollSeconds ?? 5),
      } as const
      worked.add(name)
      await boss.work(name, workOptions, async (jobs: Job<Data>[]) => {
        const results = await Promise.all(
          jobs.map((job) =>
            tracedJob(name, job, (span) =>
              settle(job, handle, {
                span,
                log: log.child({ queue: name, jobId: job.id }),
                regain: (err) => regain(job, err),
              }),
            ),
          ),
        )
        // A slot that has done its job would sleep until the next notification, however many jobs are waiting. All are woken,
        // because a handler does not learn which one it is.
        for (const slot of boss.getWipData()) if (slot.name === name) boss.notifyWorker(slot.id)
        return results
      })
    },
    has: async (trx, name, data) => {
      const job = sql.id(schema, 'job')
      const { rows } = await sql<{ found: boolean }>`select exists (
        select from ${job} where name = ${name} and state < 'completed' and data @> ${JSON.stringify(data)}::jsonb
      ) as found`.execute(trx)
      return rows[0]?.found === true
    },
    waiting: (name) => countJobs(boss, schema, { name, before: 'active' }),
    depth: (name, share) => countJobs(boss, schema, { name, before: 'completed', share }),
    figures: () => {
      const names = options.queues.map(({ name }) => name)
      return readFigures(boss, schema, names)
    },
    stop: async (graceMs) => {
      stopping.abort()
      // Not pg-boss' own waiting, which looks twice a second whether its workers are done.
      await waitAtMost(graceMs, Promise.all([...worked].map((name) => boss.offWork(name))))
      await boss.stop({ graceful: false, close: false })
      await close()
    },
  }
}

/** Longer by up to a half: in step, the same process would come first each time, also to jobs that only another one can do. */
const spread = (seconds: number) => seconds * (1 + Math.random() / 2)

/** A job that no retry can save; it goes to the dead-letter queue at once. */
export class PermanentFailure extends Error {
  override readonly name = 'PermanentFailure'
}

async function settle<Data extends object>(
  job: QueueJob<Data>,
  handle: (job: QueueJob<Data>) => Promise<void>,
  {
    span,
    log,
    regain,
    losses = 0,
  }: { span: Span; log: Logger; regain: (err: unknown) => Promise<boolean>; losses?: number },
): Promise<JobResult> {
  const { id, data, retryCount, signal } = job
  try {
    await handle({ id, data: withoutTrace(data), retryCount, signal })
    return { id, status: 'completed' }
  } catch (err) {
    // Its failure could not be written either: nobody would run it before its heartbeats are missed.
    const isLoss = isDatabaseUnavailable(err) && !isInterrupted(err)
    if (isLoss && losses < MOST_LOSSES && (await regain(err))) {
      log.warn({ err }, 'job lost its database, runs again')
      return settle(job, handle, { span, log, regain, losses: losses + 1 })
    }
    noteFailure(span, errorType(err))
    if (err instanceof PermanentFailure) {
      log.error({ err }, 'job failed for good')
      return { id, status: 'deadletter', output: { message: err.message } }
    }
    log.warn({ err, retryCount }, 'job failed, will be retried unless its tries are used up')
    return { id, status: 'failed', output: { message: (err as Error).message } }
  }
}
