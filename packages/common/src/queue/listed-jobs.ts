// Jobs as administrators see them: those that run, the tenants of those that wait, and the dead letters. The other SQL
// on pg-boss's tables is in pg-boss-tables.ts.
import { sql } from 'kysely'
import type { PgBoss } from 'pg-boss'
import type { AnyTransaction } from '../database/after-commit.ts'
import { withoutTrace } from '../telemetry/spans.ts'
import { GIVEN_UP } from './pg-boss-tables.ts'

/** Job whose attempts are used up, or whose workers died each time. */
export interface DeadJob {
  id: string
  /** Queue that it was sent to. */
  queue: string
  data: Record<string, unknown>
  /** Tenant or group that it was sent with. */
  tenant: string | null
  /** Microseconds since 1970 at which it was given up, as text: a number would lose the last digit. */
  at: string
  attempts: number
  /** Message of the last failure; null where no worker survived. */
  reason: string | null
}

export interface RunningJob {
  data: Record<string, unknown>
  tenant: string | null
  startedAt: Date
}

export interface ListedJobs {
  /** Running jobs of a queue, longest first. */
  listRunning(name: string, limit: number): Promise<RunningJob[]>
  /** Tenants with the most jobs among the first `counted` that wait in a queue. */
  listTenants(name: string, how: { counted: number; limit: number }): Promise<{ tenant: string | null; jobs: number }[]>
  /** Dead letters of all queues, newest first, after one of them. */
  listDead(how: { after: Pick<DeadJob, 'at' | 'id'> | undefined; limit: number }): Promise<DeadJob[]>
  /** Takes a dead letter away; undefined when there is none. */
  takeDead(trx: AnyTransaction, id: string): Promise<DeadJob | undefined>
}

const DEAD_COLUMNS = `id, source_name as queue, data, group_id as tenant,
  (extract(epoch from created_on) * 1000000)::bigint::text as at, source_retry_count + 1 as attempts,
  left(coalesce(source_output ->> 'message', source_output -> 'value' ->> 'message'), 500) as reason`

export function listedJobs(boss: PgBoss, schema: string): ListedJobs {
  const rowsOf = async (text: string, values: unknown[]) => (await boss.getDb().executeSql(text, values)).rows
  return {
    listRunning: async (name, limit) => {
      const text = `select data, group_id as tenant, started_on as "startedAt" from ${schema}.job
        where name = $1 and state = 'active' order by started_on, id limit $2`
      return (await rowsOf(text, [name, limit])).map(plain)
    },
    listTenants: (name, { counted, limit }) =>
      rowsOf(
        `select tenant, count(*)::int as jobs from (select group_id as tenant from ${schema}.job
            where name = $1 and state < 'active' and not blocked order by priority desc limit $2) as counted
          group by tenant order by jobs desc, tenant limit $3`,
        [name, counted, limit],
      ),
    listDead: async ({ after, limit }) => {
      const text = `select ${DEAD_COLUMNS} from ${schema}.job where ${GIVEN_UP}
        ${after ? `and (created_on, id) < (timestamptz 'epoch' + $2::bigint * interval '1 microsecond', $3::uuid)` : ''}
        order by created_on desc, id desc limit $1`
      return (await rowsOf(text, [limit, ...(after ? [after.at, after.id] : [])])).map(plain)
    },
    takeDead: async (trx, id) => {
      const { rows } = await sql<DeadJob>`delete from ${sql.id(schema, 'job')}
        where id = ${id} and ${sql.raw(GIVEN_UP)} returning ${sql.raw(DEAD_COLUMNS)}`.execute(trx)
      return rows[0] && plain(rows[0])
    },
  }
}

const plain = <Row extends { data: Record<string, unknown> }>(row: Row): Row => ({
  ...row,
  data: withoutTrace(row.data ?? {}),
})
