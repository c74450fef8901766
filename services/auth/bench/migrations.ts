// `node bench/migrations.ts`: the longest wait of a request during each pending migration. Statements of sign-ups, sign-ins,
// refreshes and reads run all the time, as an older version has them. Loads BENCH_USERS (1,000,000) users and ten audit entries
// each into a PostgreSQL of its own; with BENCH_DATABASE_URL it migrates that database, which must be a copy.
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { createLogger } from '@services/common/logger'
import { migrate, onMigrationConnection, pendingMigrations } from '@services/common/migrate'
import { readMigrations } from '@services/common/migration-files'
import pg from 'pg'
import { loadUsers } from './scale.ts'

const USERS = Number(process.env.BENCH_USERS || 1_000_000)
const FOLDER = fileURLToPath(new URL('../migrations', import.meta.url))

/** The last migration before the load. */
const LOADED_AT = '0018-rows-for-nobody'

/** Time between two statements of one kind, so that the load is the same on every machine. */
const PAUSE_MS = 5

const ENTRY = `insert into audit_log_entries (id, payload, created_at)
  select gen_random_uuid(), jsonb_build_object('actor_id', id, 'actor_username', email, 'action', 'login'), now() from target`
const TARGET = 'target as (select id, email from users where id = $1)'
const STATEMENTS = {
  read: 'select u.*, i.* from users u left join identities i on i.user_id = u.id where u.id = $1',
  'sign-in': `with ${TARGET},
    signed_in as (update users set last_sign_in_at = now() where id = $1),
    opened as (insert into sessions (id, user_id, amr, refreshed_at, created_at)
      select gen_random_uuid(), id, '[]', now(), now() from target) ${ENTRY}`,
  refresh: `with ${TARGET}, rotated as (
    update sessions set refresh_counter = refresh_counter + 1, refreshed_at = now()
    where id = (select id from sessions where user_id = $1 limit 1)) ${ENTRY}`,
  'sign-up': `insert into users (id, aud, role, email, created_at, updated_at)
    select gen_random_uuid(), 'authenticated', 'authenticated', gen_random_uuid() || '@example.com', now(), now()
    from users where id = $1`,
}

const given = process.env.BENCH_DATABASE_URL
const dataDir = await mkdtemp(join(tmpdir(), 'bench-postgres-'))
const workDir = await mkdtemp(join(tmpdir(), 'bench-migrations-'))
const postgres = given ? undefined : await startEmbeddedPostgres({ dataDir, database: 'bench' })
const url = given ?? postgres?.url ?? ''
try {
  if (postgres) await load(url)
  const probes = await startProbes(url)
  await new Promise((resolve) => setTimeout(resolve, 10_000))
  print('without a migration, 10 s')
  const log = createLogger({ name: 'bench', level: 'warn' })
  for (const { name } of await readMigrations(FOLDER, undefined)) {
    await copyFile(join(FOLDER, `${name}.sql`), join(workDir, `${name}.sql`))
    const beganAt = performance.now()
    const known = { url, applicationName: 'bench', log }
    const pending = await onMigrationConnection(known, workDir, async (migrations) => {
      const pending = await pendingMigrations(migrations)
      await migrate(migrations, log)
      return pending
    })
    if (pending.length > 0) print(`${name}, ${((performance.now() - beganAt) / 1000).toFixed(1)} s`)
  }
  await probes.stop()

  function print(during: string) {
    const waits = Object.entries(probes.longest()).map(([kind, ms]) => `${kind} ${Math.round(ms)}`)
    console.log(`${during}: longest wait in ms: ${waits.join(', ')}`)
  }
} finally {
  await postgres?.stop()
  for (const folder of [dataDir, workDir]) await rm(folder, { recursive: true, force: true })
}

async function load(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create table schema_migrations (name varchar(255) primary key, timestamp varchar(255) not null)')
  for (const { name, sql } of await readMigrations(FOLDER, undefined)) {
    if (name > LOADED_AT) break
    await client.query(sql)
    await client.query('insert into schema_migrations values ($1, $2)', [name, new Date().toISOString()])
  }
  await loadUsers(url, 0, USERS, 'x')
  for (let turn = 0; turn < 10; turn++) {
    await client.query(`insert into audit_log_entries (id, payload, ip_address, created_at)
      select gen_random_uuid(), jsonb_build_object('actor_id', id, 'actor_username', email, 'action', 'token_refreshed',
        'log_type', 'token', 'user_agent', rpad('Mozilla/5.0', 110, 'x')), '198.51.100.7', now() from users`)
  }
  await client.query('vacuum (analyze)')
  await client.end()
}

/** Runs each statement again and again on a connection of its own, for users at random. */
async function startProbes(url: string) {
  const pool = new pg.Pool({ connectionString: url, max: Object.keys(STATEMENTS).length })
  const { rows } = await pool.query('select id from users limit 1000')
  let longest: Record<string, number> = {}
  let isStopping = false
  const running = Object.entries(STATEMENTS).map(async ([kind, text]) => {
    for (let turn = 0; !isStopping; turn++) {
      const beganAt = performance.now()
      await pool.query({ name: kind, text, values: [rows[turn % rows.length]?.id] })
      longest[kind] = Math.max(longest[kind] ?? 0, performance.now() - beganAt)
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  })
  return {
    /** Returns the longest wait of each kind since the last call. */
    longest() {
      const result = longest
      longest = {}
      return result
    },
    async stop() {
      isStopping = true
      await Promise.all(running)
      await pool.end()
    },
  }
}
