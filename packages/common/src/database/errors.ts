// Meanings of the database's errors: unavailable for now, refused to this user, or a row that exists.
import pg from 'pg'

/**
 * SQLSTATE codes that mean "not now": connection failure, shutdown, start-up, too many connections, time limit,
 * deadlock, conflict, held lock. Also a full disk or memory, a server demoted to standby, and a statement name that a
 * pooler lost.
 */
const UNAVAILABLE_STATES = /^(08...|53...|57P0[1-5]|57014|25P0[34]|25006|55P03|40P01|40001|26000|42P05)$/
const UNAVAILABLE_ERRNO =
  /^(ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|ENOENT)$/
const UNAVAILABLE_TEXT =
  /connection terminated|timeout expired|timeout exceeded when trying to connect|client has encountered a connection error|not queryable|query read timeout/i

/** Errors of servers that refused a connection; they say nothing about the statement that needed it. */
const refusedConnections = new WeakSet<Error>()

/** Whether the database was unreachable, as opposed to a refused statement. The request is answered 503. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (refusedConnections.has(error)) return true
  const { code, syscall } = error as { code?: unknown; syscall?: unknown }
  if (typeof code === 'string' && UNAVAILABLE_STATES.test(code)) return true
  const isOfSocket = code !== 'ENOENT' || syscall === 'connect'
  if (typeof code === 'string' && UNAVAILABLE_ERRNO.test(code) && isOfSocket) return true
  if (error instanceof AggregateError) return error.errors.some(isDatabaseUnavailable)
  return UNAVAILABLE_TEXT.test(error.message) || isDatabaseUnavailable(error.cause)
}

/** SQLSTATE of a cancelled statement, an idle transaction, a deadlock, a conflict, and exhausted resources. */
const INTERRUPTED_STATES = /^(53[1-4]00|57014|25P0[34]|55P03|40P01|40001)$/

/** Whether a statement was interrupted on an open connection, possibly by a bug of ours. */
export function isInterrupted(error: unknown): boolean {
  if (!(error instanceof Error) || refusedConnections.has(error)) return false
  return INTERRUPTED_STATES.test(sqlStateOf(error) ?? '') || isInterrupted(error.cause)
}

export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return error instanceof pg.DatabaseError ? error.code : sqlStateOf(error.cause)
}

/** SQLSTATE of a wrong user or password, a missing database, a missing schema or right (missing-right.ts). */
const REFUSAL_STATES = /^(28...|3D000|3F000|42501)$/

/** Whether a pooler refuses the time limits that we set when connecting. */
export const isParameterRefused = (error: unknown): boolean =>
  error instanceof Error && sqlStateOf(error) === '08P01' && /unsupported startup parameter/.test(error.message)

/** Whether the database refuses this user, or a migration's statement: only an operator can fix it. */
export function isDatabaseRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && REFUSAL_STATES.test(code)) return true
  if (isParameterRefused(error)) return true
  return error.message === 'The server does not support SSL connections'
}

/** Whether a table is missing: migrations are pending. */
export const isMissingTable = (error: unknown): boolean => (error as { code?: unknown } | undefined)?.code === '42P01'

/** Whether a unique index refused a row; `constraint` is the end of the index's name. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  const { code, constraint: violated } = (error ?? {}) as { code?: string; constraint?: string }
  return code === '23505' && (constraint === undefined || (violated ?? '').endsWith(constraint))
}

export const recordRefusedConnection = (error: Error): void => void refusedConnections.add(error)
