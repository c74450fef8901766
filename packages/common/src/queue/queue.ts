// The job queue of a service, on pg-boss: retries, back-off, dead-letter queues, turns between tenants. A job is
// written in the transaction of the rows it belongs to, so that a crash loses nothing. Settings of a queue:
// queue-definition.ts. SQL that pg-boss does not offer: pg-boss-tables.ts. One job's run: run-job.ts. Another worker
// runs the job of a killed one within 20 s; rows whose job is lost are their service's matter (rescue-source.ts).
import type pg from 'pg'
import { fromKysely, type Job, PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import { withTimeout } from '../concurrency/with-timeout.ts'
import type { AnyTransaction } from '../database/after-commit.ts'
import { recordRefusedStatement } from '../database/missing-right.ts'
import { openDatabase } from '../database/pool.ts'
import { type DatabaseAddress, pastPooler } from '../database/pooler.ts'
import type { NotifyMode } from '../database/settings.ts'
import { createNotifications } from '../listen/batched-notify.ts'
import { keepListening } from '../listen/listener.ts'
import { tracedJob, withTrace } from '../telemetry/spans.ts'
import { type Announcements, createAnnouncements } from './announcements.ts'
import { createGroupTurns } from './group-turns.ts'
import { makeIndexes } from './job-indexes.ts'
import { type ListedJobs, listedJobs } from './listed-jobs.ts'
import {
  channelOf,
  countUnfinished,
  countUpTo,
  countWaitingOf,
  giveTurn,
  hasJob,
  hasSchema,
  indexesOf,
  type Members,
  nextTurn,
  putBehind,
  type QueueFigures,
  RETRIES,
  readFigures,
  sendOptions,
  type TurnRequest,
  turnOf,
  waitsForOther,
} from './pg-boss-tables.ts'
import { declareQueue, type QueueDefinition } from './queue-definition.ts'
import { type QueueJob, runJob } from './run-job.ts'
import { createWaker } from './wake-slots.ts'

export interface WorkOptions {
  concurrency: number
  /** Jobs of one tenant or group at once in this process; below `concurrency`, so that none takes every slot. */
  maxPerTenant?: number
  /** Slots that take retries, behind the first attempts; the others take first attempts alone. All without it. */
  maxRetries?: number
  /** Interval of polls, one per lane of slots, for jobs that are due or whose notification was lost. */
  pollSeconds?: number
}

export interface Queue extends Announcements, ListedJobs {
  /**
   * Writes a job in the caller's transaction and trace; it begins after `afterSeconds`. Tenants take turns. The n-th
   * job of a tenant comes after the n-th job of every other, so a newcomer waits for little more than the running
   * jobs. A job with a `weight` takes the turns of as many usual jobs, and begins with the last of them. A job
   * without a tenant comes next. A job `inPlaceOf` another (by id) takes its tenant and turn, if that one still
   * exists. Finding a turn takes the tenant's lock until the commit: send last in the transaction, for one tenant in
   * the same. A `group` costs no statement: its turns are those of this process (group-turns.ts). `isRetry`: a job
   * of the caller's own that repeats another one, and goes where retries go (`maxRetries`).
   */
  send(
    trx: AnyTransaction,
    name: string,
    data: object,
    how?: Partial<TurnRequest> & { afterSeconds?: number; inPlaceOf?: string; group?: string; isRetry?: boolean },
  ): Promise<void>
  /** Writes the first attempts of many jobs in one statement; each has its turn in its group, as by `send`. */
  sendMany(trx: AnyTransaction, name: string, jobs: readonly { data: object; group: string }[]): Promise<void>
  /**
   * Moves another tenant's waiting job with these members of its data to the tenant's next turn, if earlier. Call it
   * last.
   */
  advance(trx: AnyTransaction, name: string, data: Members, turn: TurnRequest): Promise<void>
  /** Runs `handle` per job; an error means a retry, a lost database a rerun in this attempt once it accepts writes. */
  work<Data extends object>(
    name: string,
    options: WorkOptions,
    handle: (job: QueueJob<Data>) => Promise<void>,
  ): Promise<void>
  /**
   * Whether an unfinished job's data has these members. Under a lock in `trx`, two callers cannot both find none and
   * send.
   */
  has(trx: AnyTransaction, name: string, data: Members): Promise<boolean>
  /** Counts the jobs that wait, up to `max`: counting all takes as long as there are jobs. */
  waiting(name: string, max: number): Promise<number>
  /** Counts a tenant's waiting jobs, up to `max`. After a `send` in `trx`, no other is sent for it until the commit. */
  waitingOf(trx: AnyTransaction, name: string, tenant: string, max: number): Promise<number>
  /** Counts the running jobs with a tenant, up to `max`. */
  running(name: string, max: number): Promise<number>
  /** Counts all unfinished jobs, or those of a tenant, by reading every job. */
  depth(name: string, tenant?: string): Promise<number>
  /** Counts the jobs of all queues, in one statement. */
  figures(): Promise<QueueFigures[]>
  /** Stops taking jobs and waits up to `graceMs` for running ones; unfinished jobs return to the queue. */
  stop(graceMs: number): Promise<void>
}

export interface QueueOptions extends DatabaseAddress {
  schema: string
  applicationName: string
  queues: readonly QueueDefinition[]
  log: Logger
  migrate: boolean
  notify?: NotifyMode
  /** Whether this process supervises expired jobs and heartbeats: true where workers run. */
  supervise: boolean
  /** Clock of the groups' turns. */
  nowMs?: () => number
}

/** Fetching and completing take milliseconds; the second connection is for the supervisor. */
const CONNECTIONS = 2
const CONNECT_WITHIN_MS = 10_000
/** Longest time that a silent connection holds a worker. */
const STATEMENT_WITHIN_MS = 10_000

/**
 * Time limit of the supervisor's transactions, which grow with the table: deleting a million finished jobs took 2 s. An
 * interrupted one deletes nothing. A connection that goes silent within one stops the supervision this long.
 */
const MAINTENANCE_WITHIN_MS = 600_000
const BEGIN = /^\s*BEGIN;/
/** Set in the transaction, the limit replaces the role's, which applies behind a pooler. */
const limited = (text: string) =>
  BEGIN.test(text)
    ? {
        text: text.replace(BEGIN, `$& set local statement_timeout = ${MAINTENANCE_WITHIN_MS};`),
        query_timeout: MAINTENANCE_WITHIN_MS,
      }
    : { text, query_timeout: STATEMENT_WITHIN_MS }

/** Interval of deletions of finished jobs, an hour old. pg-boss's default of a day would keep 25 times as many. */
const DELETE_EVERY_SECONDS = 60

/** Intervals of polls with and without notifications. */
const POLL_SECONDS = { batched: 5, each: 5, none: 0.5 }

/** Interval of pg-boss's own polls. It would let every idle slot search. */
const SLOT_POLL_SECONDS = 86_400

/** Interval of supervision; with heartbeats of 10 s a killed worker's job restarts within 20 s. */
const SUPERVISE_EVERY_SECONDS = 3

export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { log, migrate, schema, notify = 'batched', nowMs } = options
  const applicationName = `${options.applicationName} queue`
  const { pool, close } = openDatabase({
    ...(migrate ? pastPooler(options) : options),
    ...{ applicationName, log },
    ...{ maxPoolSize: CONNECTIONS, connectWithinMs: CONNECT_WITHIN_MS },
    // Limits are set per statement; migrations have none.
    statementWithinMs: 0,
  })
  const executeSql = async (text: string, values?: unknown[]) => {
    try {
      return await pool.query({ ...(migrate ? { text } : limited(text)), values } as pg.QueryConfig)
    } catch (error) {
      recordRefusedStatement(error, text)
      throw error
    }
  }
  const boss: PgBoss = new PgBoss({
    // pg-boss's own pool waits forever for a silent server, and its listener leaves errors unhandled.
    db: {
      executeSql,
      // pg-boss would wake every slot of the queue.
      listen: (channel) =>
        keepListening({
          ...{ ...pastPooler(options), applicationName, channel, execute: executeSql },
          onNotification: (payload) => announcements.heard(payload) || waker.notified(payload),
          onListening: () => {
            waker.all()
            announcements.all()
          },
        }),
    },
    schema,
    useListenNotify: notify !== 'none',
    migrate,
    // Even `if not exists` needs the right to create schemas, which a role with a schema of its own may lack.
    createSchema: migrate && !(await hasSchema(pool, schema)),
    schedule: false,
    supervise: options.supervise,
    superviseIntervalSeconds: SUPERVISE_EVERY_SECONDS,
    monitorIntervalSeconds: SUPERVISE_EVERY_SECONDS,
    maintenanceIntervalSeconds: DELETE_EVERY_SECONDS,
  })
  const waker = createWaker(boss)
  const announcements = createAnnouncements({ channel: channelOf(schema), mode: notify })
  boss.on('error', (err) => log.warn({ err }, 'queue error'))
  boss.on('warning', (warning) => log.warn({ warning: warning.message }, 'queue warning'))
  try {
    await boss.start()
    if (migrate) {
      for (const queue of options.queues) await declareQueue(boss, queue)
      await makeIndexes(pool, schema, indexesOf(options.queues))
    }
  } catch (error) {
    await close()
    throw error
  }
  const notifications = createNotifications({ channel: channelOf(schema), mode: notify, execute: executeSql, log })
  const groupTurns = createGroupTurns(nowMs)
  const worked = new Set<string>()
  const polls: NodeJS.Timeout[] = []
  const stopping = new AbortController()
  return {
    send: async (trx, name, data, { afterSeconds = 0, tenant, weight, inPlaceOf, group, isRetry } = {}) => {
      const taken = inPlaceOf === undefined ? undefined : await turnOf(trx, { schema, name }, inPlaceOf)
      const found =
        taken ?? (tenant === undefined ? undefined : await nextTurn(trx, { schema, name }, { tenant, weight }))
      const turn = group === undefined ? found : { tenant: group, turn: groupTurns.next(`${name} ${group}`) }
      await boss.send(name, withTrace(data), {
        db: fromKysely(trx),
        startAfter: afterSeconds,
        ...(turn && sendOptions(turn)),
        ...(isRetry && { priority: RETRIES }),
      })
      if (afterSeconds === 0) await notifications.send(trx, name)
    },
    sendMany: async (trx, name, jobs) => {
      if (jobs.length === 0) return
      const rows = jobs.map(({ data, group: tenant }) => {
        return { data: withTrace(data), ...sendOptions({ tenant, turn: groupTurns.next(`${name} ${tenant}`) }) }
      })
      await boss.insert(name, rows, { db: fromKysely(trx) })
      await notifications.send(trx, name)
    },
    advance: async (trx, name, data, request) => {
      // A caller may ask repeatedly, and finding a turn takes the tenant's lock.
      if (!(await waitsForOther(trx, { schema, name }, data, request.tenant))) return
      const turn = await nextTurn(trx, { schema, name }, request)
      if (await giveTurn(trx, { schema, name }, data, turn)) await notifications.send(trx, name)
    },
    work: async <Data extends object>(
      name: string,
      work: WorkOptions,
      handle: (job: QueueJob<Data>) => Promise<void>,
    ) => {
      const { concurrency, maxPerTenant, maxRetries, pollSeconds } = work
      const laneOptions = {
        ...(maxPerTenant !== undefined && { localGroupConcurrency: maxPerTenant }),
        perJobResults: true,
        pollingIntervalSeconds: SLOT_POLL_SECONDS,
        // Applies while a queue is declared by a version that notified in the transaction.
        notifyPollingIntervalSeconds: SLOT_POLL_SECONDS,
      } as const
      worked.add(name)
      const runAll = async (jobs: Job<Data>[]) => {
        waker.found(name)
        const run = (job: Job<Data>) => {
          const jobLog = log.child({ queue: name, jobId: job.id })
          const demote = async () => {
            // Every failure demotes: a first attempt that was cut off could not.
            if (maxRetries !== undefined) await putBehind(boss, { schema, name }, job.id)
          }
          return tracedJob(name, job, (span) =>
            runJob(boss, job, handle, { span, log: jobLog, stopping: stopping.signal, demote }),
          )
        }
        const results = await Promise.all(jobs.map(run))
        waker.ended(name)
        return results
      }
      const retrying = maxRetries ?? concurrency
      const first = concurrency - retrying
      if (first > 0) {
        await boss.work(name, { ...laneOptions, localConcurrency: first, minPriority: RETRIES + 1 }, runAll)
      }
      await boss.work(name, { ...laneOptions, localConcurrency: retrying }, runAll)
      polls.push(setInterval(() => waker.poll(name), spread(pollSeconds ?? POLL_SECONDS[notify]) * 1_000))
    },
    has: (trx, name, data) => hasJob(trx, { schema, name }, data),
    waiting: (name, max) => countUpTo(boss, { schema, name }, 'waiting', max),
    waitingOf: (trx, name, tenant, max) => countWaitingOf(trx, { schema, name }, tenant, max),
    running: (name, max) => countUpTo(boss, { schema, name }, 'running', max),
    depth: (name, tenant) => countUnfinished(boss, { schema, name }, tenant),
    figures: () => readFigures(boss, schema, options.queues),
    ...listedJobs(boss, schema),
    ...announcements.doors,
    stop: async (graceMs) => {
      stopping.abort()
      for (const poll of polls) clearInterval(poll)
      // pg-boss's own wait polls its workers twice a second.
      await withTimeout(graceMs, Promise.all([...worked].map((name) => boss.offWork(name))))
      await notifications.flush()
      await boss.stop({ graceful: false, close: false })
      await close()
    },
  }
}

/** Adds up to a half: polling in step, the same process would come first each time, even to jobs that it cannot do. */
const spread = (seconds: number) => seconds * (1 + Math.random() / 2)
