// A real PgBouncer in transaction mode, in front of every database of a server.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '../dev/dev-ports.ts'
import { findProgram } from './needs.ts'

/** Settings for the services, as in docs/run-behind-pgbouncer.md. */
const SETTINGS = {
  pool_mode: 'transaction',
  max_prepared_statements: 200,
  query_wait_timeout: 5,
  server_login_retry: 1,
}

/**
 * Starts PgBouncer; `settings` replace the recommended ones, and those of `user` connect to PostgreSQL. `urlOf` leads to the
 * database of a direct address.
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
  let output = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-10_000)
      if (output.includes('process up')) resolve()
    })
    child.once('error', reject).once('exit', () => reject(new Error(`PgBouncer did not start: ${output}`)))
  })
  return {
    pid: child.pid as number,
    urlOf: (databaseUrl: string) => {
      const url = new URL(databaseUrl)
      url.host = `127.0.0.1:${port}`
      url.searchParams.delete('host') // a socket would bypass it
      return url.href
    },
    stop: async () => {
      child.kill('SIGKILL')
      await exit
      await rm(folder, { recursive: true, force: true })
    },
  }
}
