// The queue alone: jobs that it takes, and the delay of a lone job. `node bench/queue.ts` measures only this.
// The modes of DB_NOTIFY are measured in turns, because a disk's rate of commits varies more than they differ.
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from '@services/common/bench/median'
import { rateOf } from '@services/common/bench/rate-of'
import { startReport } from '@services/common/bench/report'
import { type Database, openDatabase } from '@services/common/database/pool'
import { NOTIFY_MODES, type NotifyMode } from '@services/common/database/settings'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { openQueue, type Queue } from '@services/common/queue/queue'
import { createLogger } from '@services/common/telemetry/logger'
import { TRANSCODE_QUEUE } from '../src/make/jobs/queues.ts'

const ROUNDS = 5
const ROUND_MS = 2_000
const MAX_AT_ONCE = 32

/** Waiting clips; about the `MEDIA_QUEUE_LIMIT` of an installation with a hundred slots. */
const FEW_WAITING = 1_000
const MANY_WAITING = 100_000
const TOKENS = 16

const LONE_JOBS = 50
/** Longer than the interval of notifications, so that each job is the first after a pause. */
const PAUSE_MS = 100
/** No poll begins a measured job. */
const NEVER_SECONDS = 3_600

const log = createLogger({ name: 'bench', level: 'error' })
const { name } = TRANSCODE_QUEUE

export async function measureQueue(report: ReturnType<typeof startReport>, url: string): Promise<void> {
  const database = openDatabase({ url, maxPoolSize: MAX_AT_ONCE, applicationName: 'bench', log, statementWithinMs: 0 })
  const open = (notify: NotifyMode, migrate = false) =>
    openQueue({
      ...{ url, schema: 'bench_queue', applicationName: 'bench', queues: [TRANSCODE_QUEUE], log, notify },
      ...{ migrate, supervise: false },
    })
  const queue = await open('batched', true)
  await admissions(report, database, queue)
  await modes(report, database, open)
  await loneJobs(report, database, queue)
  await queue.stop(0)
  await database.close()
}

/** Jobs a second, from several tokens and without a worker. */
async function admissions(report: ReturnType<typeof startReport>, database: Database<unknown>, queue: Queue) {
  let sent = 0
  const admit = () => send(database, queue, { tenant: `token ${sent++ % TOKENS}` })
  report.figure('admissions', {
    what: `jobs the queue lets in, ${TOKENS} tokens at once, about ${FEW_WAITING} waiting`,
    unit: 'a second',
    value: await rateOf(TOKENS, ROUND_MS, admit),
  })
  await fill(database)
  report.figure('admissions-many-jobs', {
    what: `jobs the queue lets in, ${TOKENS} tokens at once, ${MANY_WAITING} waiting`,
    unit: 'a second',
    value: await rateOf(TOKENS, ROUND_MS, admit),
  })
  await database.pool.query('truncate bench_queue.job')
}

/** Jobs a second in each mode. */
async function modes(
  report: ReturnType<typeof startReport>,
  database: Database<unknown>,
  open: (notify: NotifyMode) => Promise<Queue>,
) {
  const queues = await Promise.all(NOTIFY_MODES.map(open))
  for (const atOnce of [8, MAX_AT_ONCE]) {
    const rates = NOTIFY_MODES.map(() => [] as number[])
    for (let round = 0; round < ROUNDS; round++) {
      for (const [i, queue] of queues.entries())
        rates[i]?.push(await rateOf(atOnce, ROUND_MS, () => send(database, queue)))
    }
    const [batched = 0, each = 0, none = 0] = rates.map(median)
    report.row({
      ...{ id: `jobs-${atOnce}`, what: `jobs committed, ${atOnce} at once`, against: 'NOTIFY in the transaction' },
      ...{ unit: '/s', ours: batched, theirs: each, compared: 'ratio' },
      goal: atOnce === MAX_AT_ONCE ? { atLeast: 1.5 } : {},
    })
    report.figure(`jobs-${atOnce}-none`, {
      what: `jobs committed without NOTIFY, ${atOnce} at once`,
      unit: 'a second',
      value: none,
    })
  }
  await Promise.all(queues.map((queue) => queue.stop(0)))
  await database.pool.query('truncate bench_queue.job')
}

async function loneJobs(report: ReturnType<typeof startReport>, database: Database<unknown>, queue: Queue) {
  let begin = () => {}
  await queue.work(name, { concurrency: 1, pollSeconds: NEVER_SECONDS }, async () => begin())
  const delays: number[] = []
  while (delays.length < LONE_JOBS) {
    const begun = new Promise<void>((resolve) => {
      begin = resolve
    })
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    await send(database, queue)
    const sentAt = performance.now()
    await begun
    delays.push(performance.now() - sentAt)
  }
  report.row({
    ...{ id: 'lone-job', what: 'commit to begin of a lone job, longest of 50', against: 'the bound', unit: 'ms' },
    ...{ ours: Math.max(...delays), theirs: 100, compared: 'ratio', goal: { atMost: 1 } },
  })
  report.figure('lone-job', { what: 'commit to begin of a lone job, p50', unit: 'ms', value: median(delays) })
}

const send = ({ db }: Database<unknown>, queue: Queue, how?: { tenant: string }) =>
  db.transaction().execute((trx) => queue.send(trx, name, { sourceId: randomUUID() }, how))

async function fill({ pool }: Database<unknown>): Promise<void> {
  await pool.query(
    `insert into bench_queue.job (name, data, group_id, priority)
      select $1, jsonb_build_object('sourceId', gen_random_uuid()), 'token ' || i % 1000, -(i / 1000)
        from generate_series(1, $2::int) i`,
    [name, MANY_WAITING],
  )
}

if (import.meta.main) {
  const directory = await mkdtemp(join(tmpdir(), 'bench-queue-'))
  const postgres = await startEmbeddedPostgres({ dataDir: join(directory, 'postgres'), database: 'bench' })
  const report = startReport('media', [])
  try {
    await measureQueue(report, postgres.url)
  } finally {
    await postgres.stop()
    await rm(directory, { recursive: true, force: true })
    report.print()
  }
}
