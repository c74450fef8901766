import { ConfigError } from './config.ts'
import { isDatabaseRefusal } from './database-errors.ts'

/** Codes of TLS for a certificate of nobody known, of somebody else, or of another time. */
const UNTRUSTED =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|(ERR_TLS_)?CERT_.*|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(GET|VERIFY)_.*)$/

const AUTHORITY =
  'If it is that of PostgreSQL, name the file of its authority in DATABASE_URL: ?sslmode=verify-full&sslrootcert=/path/ca.crt'

/**
 * Why a service could not start, if an operator can mend it: "Port 8081 is in use. Set AUTH_PORT to another one." or the
 * problems of the configuration. `variables` names the setting of each port.
 */
export function explainStartFailure(error: unknown, variables: Record<number, string>): string | undefined {
  if (error instanceof ConfigError) return error.message
  const { message } = error as Error
  if (isDatabaseRefusal(error)) return `The database refuses what it is asked by DATABASE_URL: ${message}`
  const { code, port, path } = error as { code?: string; port?: number; path?: string }
  if (UNTRUSTED.test(String(code))) return `The certificate of a server is not trusted: ${message}. ${AUTHORITY}`
  // Docker makes a folder of a file that it is to mount and does not find, such as `.env`.
  if (path !== undefined || code === 'EISDIR') return `A file or folder that is needed cannot be used: ${message}`
  if (port === undefined) return undefined
  const remedy = `Set ${variables[port] ?? 'its variable'} to another one.`
  if (code === 'EADDRINUSE') return `Port ${port} is in use. ${remedy}`
  if (code === 'EACCES') return `Port ${port} needs more rights. ${remedy}`
  return undefined
}

/** 78 (EX_CONFIG of sysexits.h) also for settings that turn out wrong only when what they name is read. */
export const failureCode = (error: unknown): number => (error instanceof ConfigError ? 78 : 1)
