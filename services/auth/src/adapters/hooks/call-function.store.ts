import { type Kysely, sql } from 'kysely'
import type { FunctionTarget } from './hook-uri.ts'

// biome-ignore lint/suspicious/noExplicitAny: the function may be in any database
type AnyDatabase = Kysely<any>

export interface FunctionCall {
  target: FunctionTarget
  /** JSON; the function takes json or jsonb. */
  argument: string
  withinMs: number
  /** Whether a transaction continues after a failure. */
  hasSavepoint?: boolean | undefined
  /** Nothing that the function writes stays. */
  isUndone?: boolean | undefined
}

/**
 * Calls a function and returns its JSON as text, null for NULL. Outside a transaction the call has one of its own,
 * because the time limit is local to one.
 */
export async function callFunction(db: AnyDatabase, call: FunctionCall): Promise<string | null> {
  if (!db.isTransaction) return callAlone(db, call)
  if (!call.hasSavepoint) return callWithin(db, call)
  await sql`savepoint hook`.execute(db)
  try {
    const answer = await callWithin(db, call)
    await (call.isUndone ? sql`rollback to savepoint hook` : sql`release savepoint hook`).execute(db)
    return answer
  } catch (error) {
    // Fails only with the connection, whose error is the better one.
    await sql`rollback to savepoint hook`.execute(db).catch(() => {})
    throw error
  }
}

/** Ends the transaction of a call that is undone. */
class Undone extends Error {
  override readonly name = 'Undone'
}

async function callAlone(db: AnyDatabase, call: FunctionCall): Promise<string | null> {
  let answer: string | null = null
  const called = db.transaction().execute(async (trx) => {
    answer = await callWithin(trx, call)
    if (call.isUndone) throw new Undone()
  })
  await called.catch((error) => {
    if (!(error instanceof Undone)) throw error
  })
  return answer
}

/** Calls with the function's time limit. A limit holds from the next statement on, so the call itself restores it. */
async function callWithin(db: AnyDatabase, { target, argument, withinMs }: FunctionCall): Promise<string | null> {
  const before = await sql<{ previous: string }>`
    select current_setting('statement_timeout') as previous,
      set_config('statement_timeout', ${String(Math.ceil(withinMs))}, true)`.execute(db)
  // The argument has no type, so that PostgreSQL finds the function by its own.
  const { rows } = await sql<{ answer: string | null }>`
    select ${sql.id(target.schema, target.name)}(${argument})::text as answer,
      set_config('statement_timeout', ${before.rows[0]?.previous ?? '0'}, true)`.execute(db)
  return rows[0]?.answer ?? null
}
