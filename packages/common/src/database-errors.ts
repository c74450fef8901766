// Meanings of the database's errors: unavailable for now, refused to this user, or a row that exists.
import pg from 'pg'

/**
 * SQLSTATE classes and codes that say "not now": connection trouble, shutdown, start-up, too many connections, a statement
 * cut off by its time limit, a deadlock or conflict that another try resolves, a lock that is held, a full disk or memory, a
 * server that has just become a standby, a statement whose name a pooler lost.
 */
const UNAVAILABLE_STATES = /^(08...|53...|57P0[1-5]|57014|25P0[34]|25006|55P03|40P01|40001|26000|42P05)$/
const UNAVAILABLE_ERRNO =
  /^(ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|ENOENT)$/
const UNAVAILABLE_TEXT =
  /connection terminated|timeout exceeded when trying to connect|client has encountered a connection error|not queryable|query read timeout/i

/** Errors that servers answered instead of opening a connection. None says anything of the statement that waited for one. */
const refusedConnections = new WeakSet<Error>()

/** Whether the database could not be reached, as opposed to a statement it refused. Such requests are answered 503. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (refusedConnections.has(error)) return true
  const { code, syscall } = error as { code?: unknown; syscall?: unknown }
  if (typeof code === 'string' && UNAVAILABLE_STATES.test(code)) return true
  if (typeof code === 'string' && UNAVAILABLE_ERRNO.test(code) && syscall !== 'open') return true
  if (error instanceof AggregateError) return error.errors.some(isDatabaseUnavailable)
  return UNAVAILABLE_TEXT.test(error.message) || isDatabaseUnavailable(error.cause)
}

/** SQLSTATE of a statement cut off, a transaction left idle, a deadlock, and a conflict. */
const INTERRUPTED_STATES = /^(53[1-4]00|57014|25P0[34]|55P03|40P01|40001)$/

/** Whether an open connection was refused its statement: a mistake of ours, perhaps. */
export function isInterrupted(error: unknown): boolean {
  if (!(error instanceof Error) || refusedConnections.has(error)) return false
  return INTERRUPTED_STATES.test(sqlStateOf(error) ?? '') || isInterrupted(error.cause)
}

/** SQLSTATE of an error that the server answered. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return error instanceof pg.DatabaseError ? error.code : sqlStateOf(error.cause)
}

/** SQLSTATE of a wrong user or password, of a database that does not exist, and of a right that is missing. */
const REFUSAL_STATES = /^(28...|3D000|42501)$/

/** Whether the database does not let this user in, or not do what a migration does: something that only an operator can mend. */
export function isDatabaseRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && REFUSAL_STATES.test(code)) return true
  return error.message === 'The server does not support SSL connections'
}

/** Whether a statement names a table that is not there: migrations are pending. */
export const isMissingTable = (error: unknown): boolean => (error as { code?: unknown } | undefined)?.code === '42P01'

/** Whether the database refused a row because a unique index already holds it; `constraint` names the index. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const { code, constraint: violated } = (error ?? {}) as { code?: string; constraint?: string }
  return code === '23505' && (constraint === undefined || (violated ?? '').endsWith(constraint))
}

/** Notes a server's refusal to open a connection. */
export const noteRefusedConnection = (error: Error): void => void refusedConnections.add(error)
