// SQL on pg-boss's own tables: turns of tenants, jobs found by their data, and counts, which its API gives late or not at all.
// The one rule: no other file of the sources names its tables or columns. pg-boss-tables.test.ts fails when an upgrade
// changes them; the statements are tested through the queue, in queue.test.ts.
import { sql, type Transaction } from 'kysely'
import type { PgBoss } from 'pg-boss'
import { DEAD } from './declare-queue.ts'

// biome-ignore lint/suspicious/noExplicitAny: transactions of every service's schema
export type AnyTransaction = Transaction<any>

interface JobTable {
  schema: string
  /** Name of the queue. */
  name: string
}

/** Tenants take turns, a job each: `group_id` is the tenant, `priority` the turn, negated as the highest is first. */
interface Turn {
  tenant: string
  turn: number
}

/** Options of pg-boss for a job with this turn. */
export const sendOptions = ({ tenant, turn }: Turn) => ({ group: { id: tenant }, priority: -turn })

/**
 * Finds the turn after the tenant's last unfinished job, and no earlier than the current turn of the queue: an idle tenant
 * accumulates no credit. The lock gives two concurrent requests of a tenant different turns.
 */
export async function nextTurn(trx: AnyTransaction, { schema, name }: JobTable, tenant: string): Promise<Turn> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${schema}.${name}`}, 0))`.execute(trx)
  const { rows } = await sql<{ turn: number }>`select greatest(
      coalesce(max(-priority) filter (where group_id = ${tenant}) + 1, 0),
      coalesce(min(-priority) filter (where start_after <= now()), min(-priority), 0)
    ) as turn
    from ${sql.id(schema, 'job')}
    where name = ${name} and state < 'completed' and group_id is not null`.execute(trx)
  return { tenant, turn: rows[0]?.turn ?? 0 }
}

/** Finds the turn of a job; undefined when the job is gone or has no tenant. */
export async function turnOf(trx: AnyTransaction, { schema, name }: JobTable, id: string): Promise<Turn | undefined> {
  const { rows } = await sql<Turn>`select group_id as tenant, -priority as turn
    from ${sql.id(schema, 'job')} where name = ${name} and id = ${id} and group_id is not null`.execute(trx)
  return rows[0]
}

/** Moves the waiting job whose data contains `data` to this turn, unless its own is earlier. */
export async function giveTurn(trx: AnyTransaction, { schema, name }: JobTable, data: object, { tenant, turn }: Turn) {
  await sql`update ${sql.id(schema, 'job')} set priority = ${-turn}, group_id = ${tenant}
    where name = ${name} and state < 'active' and -priority > ${turn} and data @> ${JSON.stringify(data)}::jsonb`.execute(
    trx,
  )
}

/** Whether an unfinished job's data contains `data`. */
export async function hasJob(trx: AnyTransaction, { schema, name }: JobTable, data: object): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`select exists (
    select from ${sql.id(schema, 'job')}
    where name = ${name} and state < 'completed' and data @> ${JSON.stringify(data)}::jsonb
  ) as found`.execute(trx)
  return rows[0]?.found === true
}

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

export async function readFigures(boss: PgBoss, schema: string, names: readonly string[]): Promise<QueueFigures[]> {
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
    [names],
  )
  return rows
}

/** Counts the jobs that have not reached the state `before`; with `tenant` only the tenant's. */
export async function countJobs(
  boss: PgBoss,
  { schema, name }: JobTable,
  before: 'active' | 'completed',
  tenant?: string,
): Promise<number> {
  const text = `select count(*)::int as jobs from ${schema}.job
    where name = $1 and state < '${before}' and ($2::text is null or group_id = $2)`
  const { rows } = await boss.getDb().executeSql(text, [name, tenant ?? null])
  return rows[0].jobs
}
