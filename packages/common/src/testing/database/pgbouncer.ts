// A real PgBouncer in transaction mode, in front of every database of a server.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { findFreePort } from '../../dev/dev-ports.ts'
import { findProgram } from '../run/needs.ts'
import { POOLER_ROLE } from './template-database.ts'

/** Settings for the services, as in docs/run-behind-pgbouncer.md. */
const SETTINGS = {
  pool_mode: 'transaction',
  max_prepared_statements: 200,
  query_wait_timeout: 5,
  server_login_retry: 1,
}

/**
 * Starts PgBouncer; `settings` replace the recommended ones, and those of `user` connect to PostgreSQL. `urlOf` leads
 * to the database of a direct address.
 */
export async function startPgbouncer(
  serverUrl: string,
  settings: Record<string, string | number> = {},
  user: { username: string; password: string } = new URL(serverUrl),
) {
  const { hostname, port: serverPort } = new URL(serverUrl)
  const folder = await mkdtemp(join(tmpdir(), 'pgbouncer-'))
  const port = await findFreePort()
  const lines = Object.entries({ ...SETTINGS, ...settings }).map(([name, value]) => `${name} = ${value}`)
  await writeFile(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${hostname} port=${serverPort} user=${user.username} password=${decodeURIComponent(user.password)}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
${lines.join('\n')}
`,
  )
  await chmod(folder, 0o755)
  // PgBouncer refuses to run as root.
  const asUser = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const program = findProgram('pgbouncer') ?? 'pgbouncer'
  const child = spawn(program, [...asUser, join(folder, 'pgbouncer.ini')], { stdio: ['ignore', 'ignore', 'pipe'] })
  const exit = once(child, 'exit')
  // A run that fails leaves nothing behind.
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  let output = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-10_000)
      if (output.includes('process up')) resolve()
    })
    child.once('error', reject).once('exit', () => reject(new Error(`PgBouncer did not start: ${output}`)))
  })
  return {
    urlOf: (databaseUrl: string) => {
      const url = new URL(databaseUrl)
      url.host = `127.0.0.1:${port}`
      url.searchParams.delete('host') // a socket would bypass it
      return url.href
    },
    stop: async () => {
      process.off('exit', kill)
      kill()
      await exit
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export const LIMITS = { statement_timeout: '15s', idle_in_transaction_session_timeout: '16s' }

/** Starts PgBouncer for a role of its own, with these limits in this database. */
export async function startPooledRole(
  databaseUrl: string,
  settings: Record<string, string | number> = {},
  limits: Record<string, string> = LIMITS,
) {
  const database = new URL(databaseUrl).pathname.slice(1)
  const role = `${database}${POOLER_ROLE}`
  const user = { username: role, password: 'pooled' }
  const admin = new pg.Client({ connectionString: databaseUrl })
  await admin.connect()
  await admin.query(`create role ${role} superuser login password '${user.password}'`)
  for (const [name, value] of Object.entries(limits)) {
    await admin.query(`alter role ${role} in database ${database} set ${name} = '${value}'`)
  }
  await admin.end()
  const pooler = await startPgbouncer(databaseUrl, settings, user)
  const directUrl = Object.assign(new URL(databaseUrl), user).href
  return { url: pooler.urlOf(directUrl), directUrl, database, role, stop: pooler.stop }
}
