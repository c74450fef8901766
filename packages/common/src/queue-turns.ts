// Whose job is next where callers share a queue: each has a share, and shares take turns, a job of each. Of pg-boss' columns
// `group_id` holds the share and `priority` the turn, negative, because the highest comes first.
import { sql, type Transaction } from 'kysely'

// biome-ignore lint/suspicious/noExplicitAny: any schema's transaction will do
export type AnyTransaction = Transaction<any>

interface QueueOfJobs {
  /** Of pg-boss' tables. */
  schema: string
  name: string
}

interface Turn {
  share: string
  turn: number
}

/** As pg-boss wants to hear it of a job that is sent. */
export const sendOptions = ({ share, turn }: Turn) => ({ group: { id: share }, priority: -turn })

/**
 * The turn after the last one of this share that is not over, and not before the one that is under way (or comes next,
 * where all wait for something): who had nothing to do for long is owed nothing. In turn itself, so that two requests of
 * one share at once do not get the same one.
 */
export async function nextTurn(trx: AnyTransaction, { schema, name }: QueueOfJobs, share: string): Promise<Turn> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${schema}.${name}`}, 0))`.execute(trx)
  const { rows } = await sql<{ turn: number }>`select greatest(
      coalesce(max(-priority) filter (where group_id = ${share}) + 1, 0),
      coalesce(min(-priority) filter (where start_after <= now()), min(-priority), 0)
    ) as turn
    from ${sql.id(schema, 'job')}
    where name = ${name} and state < 'completed' and group_id is not null`.execute(trx)
  return { share, turn: rows[0]?.turn ?? 0 }
}

/** Of the job `id`, if it is there and has a share. */
export async function turnOf(
  trx: AnyTransaction,
  { schema, name }: QueueOfJobs,
  id: string,
): Promise<Turn | undefined> {
  const { rows } = await sql<Turn>`select group_id as share, -priority as turn
    from ${sql.id(schema, 'job')} where name = ${name} and id = ${id} and group_id is not null`.execute(trx)
  return rows[0]
}

/** Gives it to the waiting job whose data holds these members, if it is earlier than its own. */
export async function giveTurn(
  trx: AnyTransaction,
  { schema, name }: QueueOfJobs,
  data: object,
  { share, turn }: Turn,
): Promise<void> {
  await sql`update ${sql.id(schema, 'job')} set priority = ${-turn}, group_id = ${share}
    where name = ${name} and state < 'active' and -priority > ${turn} and data @> ${JSON.stringify(data)}::jsonb`.execute(
    trx,
  )
}
