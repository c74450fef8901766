import { sql, type Transaction } from 'kysely'
import { fromKysely, type Job, type JobResult, PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import { keepListening } from './keep-listening.ts'
import { waitAtMost } from './wait-at-most.ts'

/**
 * The outbox and job queue of a service: a job is written in the same transaction as the rows it belongs to and is
 * delivered by pg-boss workers with retries, back-off and a dead-letter queue (`<name>.dead`). A crash between commit
 * and delivery loses nothing, because the job is a row.
 */
export interface QueueDefinition {
  name: string
  /** Tries after the first one before the job goes to the dead-letter queue. */
  retryLimit: number
  /** Wait before the first retry; doubles up to `retryDelayMaxSeconds`. */
  retryDelaySeconds: number
  retryDelayMaxSeconds: number
  /** A job running longer is taken away from its worker. */
  expireInSeconds: number
  /** Seconds without a sign of life (sent for the handler by pg-boss) after which a killed worker's job is given to another; at least 10. */
  heartbeatSeconds: number
}

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
  batchSize?: number
}

export interface Queue {
  /**
   * Writes a job inside the caller's transaction; it is gone when the transaction rolls back. Nobody begins it before
   * `afterSeconds`. With `share` the jobs of one share take turns with those of the others, however many each has: the
   * n-th job of a share comes after the n-th one of every other, so that a newcomer waits for what is under way and little
   * else. A job without one comes next. On a queue of few thousand jobs, because the turn is counted out, one at a time: send
   * it last in a transaction. A job `inPlaceOf` another (by id) has the share and the turn of that one, if it is still there.
   */
  send(
    // biome-ignore lint/suspicious/noExplicitAny: any schema's transaction will do
    trx: Transaction<any>,
    name: string,
    data: object,
    how?: { afterSeconds?: number; share?: string; inPlaceOf?: string },
  ): Promise<void>
  /**
   * Gives the waiting job whose data holds these members the next turn of this share, and to this share, if that turn is
   * earlier than its own. Last in a transaction, too.
   */
  advance(
    // biome-ignore lint/suspicious/noExplicitAny: any schema's transaction will do
    trx: Transaction<any>,
    name: string,
    data: object,
    share: string,
  ): Promise<void>
  /** Runs `handle` for each job; a thrown error means a retry. */
  work<Data extends object>(
    name: string,
    options: WorkOptions,
    handle: (job: QueueJob<Data>) => Promise<void>,
  ): Promise<void>
  /**
   * Whether a job whose data holds these members waits, runs or is to be tried again. Inside the caller's transaction, so
   * that under a lock two of them cannot both find none and send one each.
   */
  has(
    // biome-ignore lint/suspicious/noExplicitAny: any schema's transaction will do
    trx: Transaction<any>,
    name: string,
    data: object,
  ): Promise<boolean>
  /** Jobs that no worker has begun, by queue name. */
  waiting(name: string): Promise<number>
  /** Jobs waiting or running, by queue name, of one share where one is named. */
  depth(name: string, share?: string): Promise<number>
  /** How all queues are at this moment, by one question to the database. */
  figures(): Promise<QueueFigures[]>
  /** Stops taking jobs, waits up to `graceMs` for running ones; what is unfinished then goes back to the queue. */
  stop(graceMs: number): Promise<void>
}

export interface QueueFigures {
  queue: string
  /** Could begin now and have never been tried. */
  waiting: number
  /** Not to begin before a moment that was asked for. */
  scheduled: number
  running: number
  /** Have failed and will be tried again. */
  retrying: number
  /** Since it could have begun; 0 when none waits. */
  oldestWaitingSeconds: number
  /** Since it was sent, of those that are to be tried again; 0 when there is none. */
  oldestRetryingSeconds: number
  /** Given up and not looked after since. */
  dead: number
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

/** Looks for dead workers and expired jobs this often; with 10 s of heartbeat a killed worker's job starts again within 20 s. */
const SUPERVISE_EVERY_SECONDS = 3

/** What the names of dead-letter queues end with. */
const DEAD = '.dead'

export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { log, migrate } = options
  const boss = new PgBoss({
    connectionString: options.url,
    schema: options.schema,
    application_name: `${options.applicationName} queue`,
    // Fetching and completing take milliseconds each, so that a second connection is only for the supervisor's turn.
    max: 2,
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
  // pg-boss' own listener leaves a connection it says goodbye to without anybody who hears its errors.
  boss.getDb().listen = (channel, onNotification, onListening) =>
    keepListening({
      url: options.url,
      applicationName: `${options.applicationName} queue`,
      ...{ channel, log, onNotification, onListening },
    })
  await boss.start()
  if (migrate) for (const queue of options.queues) await declareQueue(boss, queue)
  /** Counted here: pg-boss' own figures may be a minute old, too late for a limit. */
  const count = async (name: string, before: 'active' | 'completed', share?: string) => {
    const text = `select count(*)::int as jobs from ${options.schema}.job
      where name = $1 and state < '${before}' and ($2::text is null or group_id = $2)`
    const { rows } = await boss.getDb().executeSql(text, [name, share ?? null])
    return rows[0].jobs as number
  }
  const figures = async (): Promise<QueueFigures[]> => {
    const names = options.queues.map(({ name }) => name)
    const { rows } = await boss.getDb().executeSql(
      `select queue.name as queue,
        count(*) filter (where state = 'created' and start_after <= now())::int as waiting,
        count(*) filter (where state = 'created' and start_after > now())::int as scheduled,
        count(*) filter (where state = 'active')::int as running,
        count(*) filter (where state = 'retry')::int as retrying,
        coalesce(extract(epoch from now() - min(start_after) filter (where state = 'created' and start_after <= now())), 0)::float8
          as "oldestWaitingSeconds",
        coalesce(extract(epoch from now() - min(created_on) filter (where state = 'retry')), 0)::float8 as "oldestRetryingSeconds",
        (select count(*)::int from ${options.schema}.job as given_up
          where given_up.name = queue.name || '${DEAD}' and given_up.state < 'completed') as dead
      from unnest($1::text[]) as queue(name)
      left join ${options.schema}.job on job.name = queue.name and job.state < 'completed'
      group by queue.name`,
      [names],
    )
    return rows
  }
  const worked = new Set<string>()
  /**
   * The turn after the last one of this share that is not over, and not before the one that is under way (or comes next,
   * where all wait for something): who had nothing to do for long is owed nothing. In turn itself, so that two requests of one share at once do not get the same one.
   */
  // biome-ignore lint/suspicious/noExplicitAny: any schema's transaction will do
  const nextTurn = async (trx: Transaction<any>, name: string, share: string) => {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`${options.schema}.${name}`}, 0))`.execute(trx)
    const { rows } = await sql<{ turn: number }>`select greatest(
        coalesce(max(-priority) filter (where group_id = ${share}) + 1, 0),
        coalesce(min(-priority) filter (where start_after <= now()), min(-priority), 0)
      ) as turn
      from ${sql.id(options.schema, 'job')}
      where name = ${name} and state < 'completed' and group_id is not null`.execute(trx)
    return rows[0]?.turn ?? 0
  }
  // biome-ignore lint/suspicious/noExplicitAny: any schema's transaction will do
  const turnOf = async (trx: Transaction<any>, name: string, id: string) => {
    const { rows } = await sql<{ share: string; turn: number }>`select group_id as share, -priority as turn
      from ${sql.id(options.schema, 'job')} where name = ${name} and id = ${id} and group_id is not null`.execute(trx)
    return rows[0]
  }
  return {
    send: async (trx, name, data, { afterSeconds = 0, share, inPlaceOf } = {}) => {
      const taken = inPlaceOf === undefined ? undefined : await turnOf(trx, name, inPlaceOf)
      const place = taken ?? (share === undefined ? undefined : { share, turn: await nextTurn(trx, name, share) })
      const turn = place && { group: { id: place.share }, priority: -place.turn }
      await boss.send(name, data, { db: fromKysely(trx), startAfter: afterSeconds, ...turn })
    },
    advance: async (trx, name, data, share) => {
      const turn = await nextTurn(trx, name, share)
      await sql`update ${sql.id(options.schema, 'job')} set priority = ${-turn}, group_id = ${share}
        where name = ${name} and state < 'active' and -priority > ${turn} and data @> ${JSON.stringify(data)}::jsonb`.execute(
        trx,
      )
    },
    work: async <Data extends object>(
      name: string,
      work: WorkOptions,
      handle: (job: QueueJob<Data>) => Promise<void>,
    ) => {
      const workOptions = {
        localConcurrency: 1,
        batchSize: work.batchSize ?? 1,
        perJobResults: true,
        // LISTEN wakes workers at once; polling only covers a lost notification.
        pollingIntervalSeconds: 2,
        notifyPollingIntervalSeconds: 5,
      } as const
      const openSlot = async () => {
        let id: string | undefined
        id = await boss.work(name, workOptions, async (jobs: Job<Data>[]) => {
          const results = await Promise.all(
            jobs.map((job) => settle(job, handle, log.child({ queue: name, jobId: job.id }))),
          )
          // A worker that has done its job would sleep until the next notification, however many jobs are waiting.
          if (id) boss.notifyWorker(id)
          return results
        })
      }
      worked.add(name)
      // A worker each, because waking one of a group wakes always the same.
      for (let slot = 0; slot < work.concurrency; slot++) await openSlot()
    },
    has: async (trx, name, data) => {
      const job = sql.id(options.schema, 'job')
      const { rows } = await sql<{ found: boolean }>`select exists (
        select from ${job} where name = ${name} and state < 'completed' and data @> ${JSON.stringify(data)}::jsonb
      ) as found`.execute(trx)
      return rows[0]?.found === true
    },
    waiting: (name) => count(name, 'active'),
    depth: (name, share) => count(name, 'completed', share),
    figures,
    stop: async (graceMs) => {
      // Not pg-boss' own waiting, which looks twice a second whether its workers are done.
      await waitAtMost(graceMs, Promise.all([...worked].map((name) => boss.offWork(name))))
      await boss.stop({ graceful: false, close: true })
    },
  }
}

async function declareQueue(boss: PgBoss, queue: QueueDefinition): Promise<void> {
  const dead = queue.name + DEAD
  await boss.createQueue(dead, { retentionSeconds: 30 * 86_400 })
  const settings = {
    retryLimit: queue.retryLimit,
    retryDelay: queue.retryDelaySeconds,
    retryDelayMax: queue.retryDelayMaxSeconds,
    retryBackoff: true,
    expireInSeconds: queue.expireInSeconds,
    heartbeatSeconds: queue.heartbeatSeconds,
    deleteAfterSeconds: 3_600,
    deadLetter: dead,
    notify: true,
  }
  await boss.createQueue(queue.name, settings)
  await boss.updateQueue(queue.name, settings)
}

/** A job that no retry can save; it goes to the dead-letter queue at once. */
export class PermanentFailure extends Error {
  override readonly name = 'PermanentFailure'
}

async function settle<Data>(
  job: QueueJob<Data>,
  handle: (job: QueueJob<Data>) => Promise<void>,
  log: Logger,
): Promise<JobResult> {
  try {
    await handle(job)
    return { id: job.id, status: 'completed' }
  } catch (err) {
    if (err instanceof PermanentFailure) {
      log.error({ err }, 'job failed for good')
      return { id: job.id, status: 'deadletter', output: { message: err.message } }
    }
    log.warn({ err, retryCount: job.retryCount }, 'job failed, will be retried unless its tries are used up')
    return { id: job.id, status: 'failed', output: { message: (err as Error).message } }
  }
}
