// Databases of tests: cloned from a template, behind a pooler, or a primary with a standby.
import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { PATIENCE_MS } from '../patience.ts'

/**
 * Clones a database for a test file from a migrated template, in about 10 ms. `migrateTemplate` runs once per `name`
 * and test run, under an advisory lock, so that parallel test files share one template.
 */
export async function cloneTemplate(
  serverUrl: string,
  name: string,
  migrateTemplate: (url: string) => Promise<void>,
): Promise<{ url: string; drop(): Promise<void> }> {
  const admin = await adminsOf(serverUrl).connect()
  try {
    await admin.query('select pg_advisory_lock(hashtext($1))', [name])
    const { rowCount } = await admin.query('select 1 from pg_database where datname = $1', [name])
    if (rowCount === 0) await createTemplate(admin, serverUrl, name, migrateTemplate)
    const clone = `${name}_${randomBytes(6).toString('hex')}`
    await admin.query(`create database ${clone} template ${name} ${await copyingFiles(admin)}`)
    // No test waits for its end: connections take tens of milliseconds to leave, and the run removes what remains.
    const drop = async () => void dropDatabase(serverUrl, clone).catch(() => {})
    return { url: databaseUrl(serverUrl, clone), drop }
  } finally {
    await admin.query('select pg_advisory_unlock_all()').finally(() => admin.release())
  }
}

const pools = new Map<string, pg.Pool>()

/** Pool for creating and dropping databases: a new connection costs as much as a clone. */
function adminsOf(serverUrl: string): pg.Pool {
  const known = pools.get(serverUrl)
  if (known) return known
  const pool = new pg.Pool({ connectionString: serverUrl, idleTimeoutMillis: 2_000, allowExitOnIdle: true })
  // The test server stops while they are idle.
  pool.on('error', () => {})
  pools.set(serverUrl, pool)
  return pool
}

/** Copies files instead of logging them (PostgreSQL 15), which halves the cost of a clone. */
async function copyingFiles(admin: pg.ClientBase): Promise<string> {
  const { rows } = await admin.query(`select current_setting('server_version_num')::int >= 150000 as choose`)
  return rows[0].choose ? 'strategy file_copy' : ''
}

async function createTemplate(
  admin: pg.ClientBase,
  serverUrl: string,
  name: string,
  fill: (url: string) => Promise<void>,
) {
  const draft = `${name}_draft`
  await admin.query(`drop database if exists ${draft} with (force)`)
  await admin.query(`create database ${draft}`)
  await fill(databaseUrl(serverUrl, draft))
  // Renamed when complete, so that a killed run leaves no half-migrated template.
  await admin.query(`alter database ${draft} rename to ${name}`)
}

/** End of the name of a pooler's role, whose connections stay open without clients. */
export const POOLER_ROLE = '_pooler'

/**
 * Waits for open connections before it drops the database, and then forces it. A pool reports itself closed earlier,
 * and a forced end of its connections would raise an unhandled error.
 */
async function dropDatabase(serverUrl: string, name: string) {
  const admins = adminsOf(serverUrl)
  const sessions = `select from pg_stat_activity where datname = $1 and backend_type = 'client backend'
    and usename not like '%${POOLER_ROLE}' limit 1`
  const isInUse = async () => (await admins.query(sessions, [name])).rowCount === 1
  for (const deadline = Date.now() + PATIENCE_MS; Date.now() < deadline && (await isInUse()); ) await setTimeout(25)
  await admins.query(`drop database if exists ${name} with (force)`)
}

function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}
