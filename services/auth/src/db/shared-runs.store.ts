import type { Kysely } from 'kysely'
import type { DB } from './tables.ts'

/** Reports whether no process has run this kind or is running it. It locks nothing. */
export async function isRunDue(db: Kysely<DB>, kind: string, now: Date): Promise<boolean> {
  const run = await db.selectFrom('shared_runs').select('due_at').where('kind', '=', kind).executeTakeFirst()
  return !run || run.due_at <= now
}

/** Claims a due run until this time; of processes that try at once, one gets true. It locks the row. */
export async function claimRun(
  db: Kysely<DB>,
  kind: string,
  { now, until }: { now: Date; until: Date },
): Promise<boolean> {
  const claimed = await db
    .insertInto('shared_runs')
    .values({ kind, due_at: until })
    .onConflict((conflict) =>
      conflict.column('kind').doUpdateSet({ due_at: until }).where('shared_runs.due_at', '<=', now),
    )
    .returning('kind')
    .executeTakeFirst()
  return claimed !== undefined
}

export async function setDue(db: Kysely<DB>, kind: string, dueAt: Date): Promise<void> {
  await db.updateTable('shared_runs').set({ due_at: dueAt }).where('kind', '=', kind).execute()
}
