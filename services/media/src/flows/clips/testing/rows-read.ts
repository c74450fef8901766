// Cost of statements for tests, which no load of the machine changes: the rows that they read.
import type { Kysely, KyselyPlugin, RootOperationNode } from 'kysely'
import type { DB } from '../../../db/tables.ts'
import type { Deps } from '../../../deps.ts'

interface Plan {
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

/** Rows that the last statement of `work` reads, with those that a filter refuses. It runs again, which is undone. */
export async function rowsRead({ db, pool }: Deps, work: (db: Kysely<DB>) => Promise<unknown>): Promise<number> {
  let last: RootOperationNode | undefined
  const noting: KyselyPlugin = {
    transformQuery: ({ node }) => {
      last = node
      return node
    },
    transformResult: async ({ result }) => result,
  }
  await work(db.withPlugin(noting))
  if (!last) throw new Error('no statement was made')
  const { sql, parameters } = db.getExecutor().compileQuery(last, { queryId: 'plan' })
  const client = await pool.connect()
  try {
    await client.query('begin')
    const { rows } = await client.query(`explain (analyze, format json) ${sql}`, [...parameters])
    return rowsOf(rows[0]['QUERY PLAN'][0].Plan)
  } finally {
    await client.query('rollback')
    client.release()
  }
}

function rowsOf(plan: Plan): number {
  const own = plan['Relation Name'] ? plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0) : 0
  return (plan.Plans ?? []).reduce((sum, inner) => sum + rowsOf(inner), own * plan['Actual Loops'])
}
