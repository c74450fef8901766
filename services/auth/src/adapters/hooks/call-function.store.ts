import { type Kysely, sql } from 'kysely'
import type { FunctionTarget } from './hook-uri.ts'

// biome-ignore lint/suspicious/noExplicitAny: the function may be in any database
type AnyDatabase = Kysely<any>

export interface FunctionCall {
  target: FunctionTarget
  /** JSON; the function takes json or jsonb. */
  argument: string
  withinMs: number
}

/**
 * Calls a function and returns its JSON as text, null for NULL. In a transaction a failure undoes the function alone.
 * Elsewhere the call has a transaction of its own, because the time limit is local to one.
 */
export async function callFunction(db: AnyDatabase, call: FunctionCall): Promise<string | null> {
  if (!db.isTransaction) return db.transaction().execute(async (trx) => (await callWithin(trx, call)).answer)
  await sql`savepoint hook`.execute(db)
  try {
    const { answer, previousLimit } = await callWithin(db, call)
    await sql`select set_config('statement_timeout', ${previousLimit}, true)`.execute(db)
    await sql`release savepoint hook`.execute(db)
    return answer
  } catch (error) {
    // Fails only with the connection, whose error is the better one.
    await sql`rollback to savepoint hook`.execute(db).catch(() => {})
    throw error
  }
}

async function callWithin(db: AnyDatabase, { target, argument, withinMs }: FunctionCall) {
  const before = await sql<{ previous: string }>`
    select current_setting('statement_timeout') as previous,
      set_config('statement_timeout', ${String(Math.ceil(withinMs))}, true)`.execute(db)
  // The argument has no type, so that PostgreSQL finds the function by its own.
  const { rows } = await sql<{ answer: string | null }>`
    select ${sql.id(target.schema, target.name)}(${argument})::text as answer`.execute(db)
  return { answer: rows[0]?.answer ?? null, previousLimit: before.rows[0]?.previous ?? '0' }
}
