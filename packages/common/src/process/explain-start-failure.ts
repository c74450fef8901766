import { ConfigError } from '../config/variables.ts'
import { isDatabaseRefusal, isMissingTable, isParameterRefused } from '../database/errors.ts'
import { explainMissingRight } from '../database/missing-right.ts'

/** TLS error codes for a certificate of an unknown authority, another host or another time. */
const UNTRUSTED =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|(ERR_TLS_)?CERT_.*|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET|VERIFY)_.*)$/

const AUTHORITY = 'For PostgreSQL, name its CA file in DATABASE_URL: ?sslmode=verify-full&sslrootcert=/path/ca.crt'

const POOLER =
  'Set DATABASE_POOLER=transaction behind PgBouncer in transaction mode, or name statement_timeout and ' +
  'idle_in_transaction_session_timeout in its ignore_startup_parameters in session mode.'

/** SQLSTATE. */
const UNKNOWN_COLUMN = '42703'

const EARLIER = '`migrate status` compares; in development delete .data (or DEV_DATA_DIR) to start afresh.'

/** Settings of every service that listens. */
export interface PortSettings {
  server: { port: number }
  telemetry: { prometheus: { port: number } }
}

/** Variables that set the ports, by port. */
export const portVariables = (prefix: string, { server, telemetry }: PortSettings): Record<number, string> => ({
  [telemetry.prometheus.port]: `${prefix}OTEL_EXPORTER_PROMETHEUS_PORT`,
  [server.port]: `${prefix}PORT`,
})

/** Explains a failed start that the operator can fix, such as "Port 8081 is in use. Set AUTH_PORT to another one." */
export function explainStartFailure(error: unknown, variables: Record<number, string>): string | undefined {
  if (error instanceof ConfigError) return error.message
  const { message } = error as Error
  if (isParameterRefused(error)) return `A pooler refuses time limits for the session: ${message}. ${POOLER}`
  const missingRight = explainMissingRight(error)
  if (missingRight) return missingRight
  if (isDatabaseRefusal(error)) return `The database refuses the user of DATABASE_URL: ${message}`
  const { code, port, path } = error as { code?: string; port?: number; path?: string }
  if (isMissingTable(error) || code === UNKNOWN_COLUMN)
    return `The database has tables of another version: ${message}. ${EARLIER}`
  if (UNTRUSTED.test(String(code))) return `The certificate of a server is not trusted: ${message}. ${AUTHORITY}`
  // Docker creates a folder in place of a missing file to mount, such as `.env`.
  if (path !== undefined || code === 'EISDIR') return `A required file or folder cannot be used: ${message}`
  if (port === undefined) return undefined
  const remedy = `Set ${variables[port] ?? 'its variable'} to another one.`
  if (code === 'EADDRINUSE') return `Port ${port} is in use. ${remedy}`
  if (code === 'EACCES') return `Port ${port} needs more privileges. ${remedy}`
  return undefined
}

/** Exit code: 78 (EX_CONFIG of sysexits.h) for wrong settings, else 1. */
export const failureCode = (error: unknown): number =>
  error instanceof ConfigError || isParameterRefused(error) ? 78 : 1
