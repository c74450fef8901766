/** Selects the database and, where the role may ask, the cluster. A standby has those of its primary. */
const IDENTITY = `select current_database() as database, case when has_function_privilege('pg_control_system()', 'execute')
  then (select system_identifier::text from pg_control_system()) end as cluster`

type RunsSql = (text: string) => Promise<{ rows: readonly unknown[] }>

/** Whether two connections lead to one database, of one server or of its standbys. */
export async function isSameDatabase(one: RunsSql, other: RunsSql): Promise<boolean> {
  const [first, second] = await Promise.all([one(IDENTITY), other(IDENTITY)])
  return JSON.stringify(first.rows) === JSON.stringify(second.rows)
}
