// PgBouncer in transaction mode, between the service and PostgreSQL. Nothing of ours depends on a session behind it.
// The service refuses to start where the pooler would lose statements or time limits.
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { ConfigError } from '../config/variables.ts'
import { isSameDatabase } from './same-database.ts'

export interface DatabaseAddress {
  url: string
  /** Further addresses; the first that accepts writes is used. */
  fallbackUrls?: readonly string[] | undefined
  /** Address past the pooler. */
  directUrl?: string | undefined
  /** Kind of the pooler behind `url`. */
  pooler?: 'none' | 'transaction' | undefined
}

/**
 * Leads past the pooler, to sessions of our own: for LISTEN, migrations and commands. The fallbacks are further
 * poolers.
 */
export function pastPooler<Address extends DatabaseAddress>(database: Address): Address {
  const { url, directUrl = url } = database
  return directUrl === url ? database : { ...database, url: directUrl, fallbackUrls: [], pooler: 'none' }
}

/**
 * Statement that looks for its own name. PgBouncer with max_prepared_statements renames our statements and prepares
 * them again on any server connection. Without it a statement exists only on the connection that prepared it.
 */
const LOOK = `
  select exists (select from pg_prepared_statements where name = $1) as keeps_our_name,
    current_setting('statement_timeout') = '0' as lacks_statement_timeout,
    current_setting('idle_in_transaction_session_timeout') = '0' as lacks_idle_timeout,
    pg_backend_pid() as pid, quote_ident(current_user) as role, quote_ident(current_database()) as database`

const NO_TRACKING =
  'DATABASE_POOLER=transaction needs a pooler that tracks prepared statements: ' +
  'set max_prepared_statements of PgBouncer (1.21 or later) to 200'

const STATEMENT_MODE = 'DATABASE_POOLER=transaction needs pool_mode = transaction of PgBouncer, not statement'

/** Error code of PgBouncer for `begin` in statement mode. */
const PROTOCOL_VIOLATION = '08P01'

/**
 * Throws a ConfigError with the setting that a pooler in transaction mode lacks, or with an address of another
 * database.
 */
export async function checkPooler(pool: pg.Pool, address: DatabaseAddress): Promise<void> {
  await refuseOtherDatabase(pool, address)
  if (address.pooler !== 'transaction') return
  // A name that no connection behind the pooler can know yet.
  const name = `check ${randomUUID()}`
  const client = await pool.connect()
  const look = async () => {
    await client.query('begin')
    const { rows } = await client.query({ name, text: LOOK, values: [name] })
    await client.query('commit')
    return rows[0]
  }
  const found = await look().catch((error) => {
    client.release(error)
    throw error.code === PROTOCOL_VIOLATION ? new ConfigError([STATEMENT_MODE]) : error
  })
  client.release()
  const { keeps_our_name, lacks_statement_timeout, lacks_idle_timeout, pid, role, database } = found
  // A pooler makes up the process id that it sends to a client.
  const isDirect = (client as unknown as { processID: number }).processID === pid
  const limit = (setting: string, value: string) =>
    `${setting} is unlimited behind the pooler: run ` +
    `\`alter role ${role} in database ${database} set ${setting} = '${value}'\`, then \`reconnect\` in the console of PgBouncer`
  const problems = [
    ...(keeps_our_name && !isDirect ? [NO_TRACKING] : []),
    ...(lacks_statement_timeout ? [limit('statement_timeout', '15s')] : []),
    ...(lacks_idle_timeout ? [limit('idle_in_transaction_session_timeout', '16s')] : []),
  ]
  if (problems.length > 0) throw new ConfigError(problems)
}

/** Time in which the direct address accepts a connection; an unreachable one is reported by its own users. */
const CONNECT_WITHIN_MS = 5_000

/** Migrations of another database would leave this one behind. */
async function refuseOtherDatabase(pool: pg.Pool, { url, directUrl = url }: DatabaseAddress): Promise<void> {
  if (directUrl === url) return
  const direct = new pg.Client({ connectionString: directUrl, connectionTimeoutMillis: CONNECT_WITHIN_MS })
  direct.on('error', () => {})
  try {
    await direct.connect()
  } catch {
    return
  }
  const isSame = await isSameDatabase(
    (text) => pool.query(text),
    (text) => direct.query(text),
  ).finally(() => direct.end())
  if (!isSame) throw new ConfigError(['DATABASE_DIRECT_URL leads to another database than DATABASE_URL'])
}
