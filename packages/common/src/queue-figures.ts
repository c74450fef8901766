// How many jobs there are. Counted in pg-boss' table of jobs: its own figures may be a minute old, too late for a limit.
import type { PgBoss } from 'pg-boss'
import { DEAD } from './declare-queue.ts'

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

/** Of the queues `names` by one statement; `schema` is that of the table. */
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

/** Jobs that have not come as far as `before`, of one share where one is named. */
export async function countJobs(
  boss: PgBoss,
  schema: string,
  { name, before, share }: { name: string; before: 'active' | 'completed'; share?: string },
): Promise<number> {
  const text = `select count(*)::int as jobs from ${schema}.job
    where name = $1 and state < '${before}' and ($2::text is null or group_id = $2)`
  const { rows } = await boss.getDb().executeSql(text, [name, share ?? null])
  return rows[0].jobs
}
