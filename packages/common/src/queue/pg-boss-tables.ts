// SQL on pg-boss's own tables: turns of tenants, jobs found by their data, and counts, which its API gives late or not
// at all. No other file of the sources but listed-jobs.ts names its tables or columns. An upgrade that changes them
// fails pg-boss-tables.test.ts; the statements are tested through the queue, in queue.test.ts.
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type pg from 'pg'
import type { PgBoss } from 'pg-boss'
import type { AnyTransaction } from '../database/after-commit.ts'
import { LATEST_TURN } from './group-turns.ts'
import { DEAD, type QueueDefinition } from './queue-definition.ts'

/** Members of a job's data, by which it is found. */
export type Members = Record<string, string>

export interface JobIndex {
  name: string
  /** Columns and condition. */
  on: string
}

/** Table with the rows of `job`: its only partition, unless a queue asks for its own. */
export const ROWS_OF_JOBS = 'job_common'

/** Channel on which pg-boss listens for names of queues with new jobs. */
export const channelOf = (schema: string) => `pgboss_${createHash('sha224').update(schema).digest('hex').slice(0, 24)}`

interface JobTable {
  schema: string
  /** Name of the queue. */
  name: string
}

/** Tenants take turns: `group_id` is the tenant, `priority` the turn, negated as the highest is first. */
interface Turn {
  tenant: string
  turn: number
}

/** A job that asks for a turn. */
export interface TurnRequest {
  tenant: string
  /** Cost of the job in usual jobs, a whole number from 1. */
  weight?: number
}

/** Options of pg-boss for a job with this turn. */
export const sendOptions = ({ tenant, turn }: Turn) => ({ group: { id: tenant }, priority: -turn })

/** Priority of retries in a queue that puts them behind all first attempts. */
export const RETRIES = -LATEST_TURN - 1

/** Puts a running job behind every first attempt of its queue, unless it is there. */
export async function putBehind(boss: PgBoss, { schema, name }: JobTable, id: string): Promise<void> {
  await boss
    .getDb()
    .executeSql(
      `update ${schema}.job set priority = $3 where name = $1 and id = $2 and state = 'active' and priority > $3`,
      [name, id, RETRIES],
    )
}

/** Unfinished jobs with a tenant: the condition of both indexes on turns, in the words that the planner compares. */
const TAKING_TURNS = `state < 'completed' and group_id is not null`

/**
 * Indexes on pg-boss's table of jobs, for the questions of this file that it has none for. The turn's is negated like
 * the priority, so that the planner takes neither for the other's question.
 */
const turnIndexes: readonly JobIndex[] = [
  { name: 'job_last_turn', on: `(name, group_id, priority) where ${TAKING_TURNS}` },
  { name: 'job_current_turn', on: `(name, (-priority)) where ${TAKING_TURNS}` },
]

/** Dead letters: only copies in their queues have a source. */
export const GIVEN_UP = `source_name is not null and state < 'active'`

const deadIndex: JobIndex = { name: 'job_dead', on: `(created_on desc, id desc) where ${GIVEN_UP}` }

/** Index for jobs that are looked for by this member of their data. */
const memberIndex = (member: string): JobIndex => ({
  name: `job_by_${member.toLowerCase()}`,
  on: `(name, (data ->> '${member}')) where state < 'completed'`,
})

/**
 * Retries and postponed jobs keep their turns. The search for a job that is due passes over so many of them at most.
 */
const MAX_SCHEDULED = 100

/**
 * Turns from a tenant's usual job to its next one. Finished jobs are forgotten, so jobs that a tenant sends one at a
 * time are a turn apart. With more turns they would overtake more jobs of others, with fewer a newcomer waits longer.
 */
const TURNS_PER_JOB = 3

/**
 * Finds the turn of a job: `greatest(last, current + 1 - TURNS_PER_JOB) + TURNS_PER_JOB * weight`.
 *
 * `last` is the turn of the tenant's last unfinished job. Its jobs keep their order, and a costly one delays the next.
 *
 * `current` is the turn of the first job that is due, running or not. When the first MAX_SCHEDULED are scheduled, it is
 * that of the first of all. An idle tenant accumulates no credit, and a newcomer's usual job gets the next turn.
 *
 * Every job begins in bounded time, whatever other tenants send. A later job gets a turn after `current`, so those of
 * the current turn are finite. They are the first to begin, and `current` rises when they end. Any job becomes the
 * first after at most `TURNS_PER_JOB * weight` such steps, counted from its tenant's last. Before it each other tenant
 * begins as many usual jobs at most.
 *
 * The lock gives two concurrent requests of a tenant different turns, and other tenants do not wait for it.
 */
export async function nextTurn(
  trx: AnyTransaction,
  { schema, name }: JobTable,
  { tenant, weight = 1 }: TurnRequest,
): Promise<Turn> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${schema}.${name} ${tenant}`}, 0))`.execute(trx)
  const jobs = sql`${sql.id(schema, 'job')} where name = ${name} and ${sql.raw(TAKING_TURNS)}`
  const first = sql`select -priority as turn, start_after from ${jobs} order by -priority`
  const { rows } = await sql<{ turn: number }>`select greatest(
      (select -priority from ${jobs} and group_id = ${tenant} order by priority limit 1),
      coalesce(
        (select turn from (${first} limit ${sql.lit(MAX_SCHEDULED)}) as next where start_after <= now() order by turn limit 1),
        (select turn from (${first} limit 1) as next),
        -1
      ) + 1 - ${sql.lit(TURNS_PER_JOB)}
    ) as turn`.execute(trx)
  return { tenant, turn: (rows[0]?.turn ?? 0) + TURNS_PER_JOB * weight }
}

/** Finds the turn of a job; undefined when the job is gone or has no tenant. */
export async function turnOf(trx: AnyTransaction, { schema, name }: JobTable, id: string): Promise<Turn | undefined> {
  const { rows } = await sql<Turn>`select group_id as tenant, -priority as turn
    from ${sql.id(schema, 'job')} where name = ${name} and id = ${id} and group_id is not null`.execute(trx)
  return rows[0]
}

/** Whether the job whose data has these members waits in the turn of another tenant. */
export async function waitsForOther(
  trx: AnyTransaction,
  { schema, name }: JobTable,
  data: Members,
  tenant: string,
): Promise<boolean> {
  const { rows } = await sql`select from ${sql.id(schema, 'job')}
    where name = ${name} and state < 'active' and group_id <> ${tenant} and ${hasMembers(data)} limit 1`.execute(trx)
  return rows.length > 0
}

/**
 * Moves the waiting job whose data has these members to this turn, unless its own is earlier. Returns whether it moved.
 */
export async function giveTurn(
  trx: AnyTransaction,
  { schema, name }: JobTable,
  data: Members,
  { tenant, turn }: Turn,
): Promise<boolean> {
  const { numAffectedRows } = await sql`update ${sql.id(schema, 'job')} set priority = ${-turn}, group_id = ${tenant}
    where name = ${name} and state < 'active' and -priority > ${turn} and ${hasMembers(data)}`.execute(trx)
  return numAffectedRows !== undefined && numAffectedRows > 0n
}

/** Whether an unfinished job's data has these members. */
export async function hasJob(trx: AnyTransaction, { schema, name }: JobTable, data: Members): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`select exists (
    select from ${sql.id(schema, 'job')} where name = ${name} and state < 'completed' and ${hasMembers(data)}
  ) as found`.execute(trx)
  return rows[0]?.found === true
}

/** The names are literals, as in the index. */
const hasMembers = (data: Members) =>
  sql.join(
    Object.entries(data).map(([member, value]) => sql`data ->> ${sql.lit(member)} = ${value}`),
    sql` and `,
  )

export interface QueueFigures {
  queue: string
  /** Jobs that could begin now and were never attempted. */
  waiting: number
  /** Jobs that begin later, because they were sent so. */
  scheduled: number
  running: number
  /** Jobs that failed and will be retried. */
  retrying: number
  /** Seconds since the oldest waiting job could begin; 0 without one. */
  oldestWaitingSeconds: number
  /** Seconds since the oldest retrying job was sent; 0 without one. */
  oldestRetryingSeconds: number
  dead: number
}

export async function readFigures(
  boss: PgBoss,
  schema: string,
  queues: readonly { name: string }[],
): Promise<QueueFigures[]> {
  const { rows } = await boss.getDb().executeSql(
    `select queue.name as queue,
      count(*) filter (where state = 'created' and start_after <= now())::int as waiting,
      count(*) filter (where state = 'created' and start_after > now())::int as scheduled,
      count(*) filter (where state = 'active')::int as running,
      count(*) filter (where state = 'retry')::int as retrying,
      coalesce(extract(epoch from now() - min(start_after) filter (where state = 'created' and start_after <= now())), 0)::float8
        as "oldestWaitingSeconds",
      coalesce(extract(epoch from now() - min(created_on) filter (where state = 'retry')), 0)::float8 as "oldestRetryingSeconds",
      (select count(*)::int from ${schema}.job as given_up
        where given_up.name = queue.name || '${DEAD}' and given_up.state < 'completed') as dead
    from unnest($1::text[]) as queue(name)
    left join ${schema}.job on job.name = queue.name and job.state < 'completed'
    group by queue.name`,
    [queues.map(({ name }) => name)],
  )
  return rows
}

/**
 * Conditions of pg-boss's own indexes, each in an order of its index: without it the planner may read the whole table.
 */
const COUNTED = {
  waiting: `state < 'active' and not blocked order by priority desc`,
  running: `state = 'active' and group_id is not null order by group_id`,
}

export async function countUpTo(
  boss: PgBoss,
  { schema, name }: JobTable,
  counted: keyof typeof COUNTED,
  max: number,
): Promise<number> {
  const text = `select count(*)::int as jobs
    from (select from ${schema}.job where name = $1 and ${COUNTED[counted]} limit $2) as counted`
  const { rows } = await boss.getDb().executeSql(text, [name, max])
  return rows[0].jobs
}

/** Counts the waiting jobs of a tenant, up to `max`, from the index of turns. */
export async function countWaitingOf(
  trx: AnyTransaction,
  { schema, name }: JobTable,
  tenant: string,
  max: number,
): Promise<number> {
  const waiting = sql`select from ${sql.id(schema, 'job')} where name = ${name} and ${sql.raw(TAKING_TURNS)}
    and group_id = ${tenant} and state < 'active' limit ${max}`
  const { rows } = await sql<{ jobs: number }>`select count(*)::int as jobs from (${waiting}) as counted`.execute(trx)
  return rows[0]?.jobs ?? 0
}

export async function countUnfinished(boss: PgBoss, { schema, name }: JobTable, tenant?: string): Promise<number> {
  const text = `select count(*)::int as jobs from ${schema}.job
    where name = $1 and state < 'completed' and ($2::text is null or group_id = $2)`
  const { rows } = await boss.getDb().executeSql(text, [name, tenant ?? null])
  return rows[0].jobs
}

export async function hasSchema(pool: pg.Pool, schema: string): Promise<boolean> {
  const { rows } = await pool.query('select from pg_namespace where nspname = $1', [schema])
  return rows.length > 0
}

export function indexesOf(queues: readonly QueueDefinition[]) {
  const members = new Set(queues.map(({ soughtBy }) => soughtBy).filter((member) => member !== undefined))
  const turns = queues.some(({ hasTenants }) => hasTenants) ? turnIndexes : []
  return [deadIndex, ...turns, ...[...members].map(memberIndex)]
}
