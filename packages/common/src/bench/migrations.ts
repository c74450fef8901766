import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { startEmbeddedPostgres } from '../dev/embedded-postgres.ts'
import { migrate, onMigrationConnection, pendingMigrations } from '../migrations/migrate.ts'
import { readMigrations } from '../migrations/migration-files.ts'
import { createLogger } from '../telemetry/logger.ts'

/** Time between two statements of one kind, so that the load is the same on every machine. */
const PAUSE_MS = 5

export interface MeasuredMigrations {
  folder: string
  /** The last migration before the load. */
  loadedAt: string
  load: (url: string) => Promise<void>
  /** SQL of requests to the running version; the keys name them. $1 is one of `ids`. */
  statements: Record<string, string>
  /** Query of ids. */
  ids: string
}

/**
 * Prints the longest wait of each statement during each pending migration, while all of them run again and again. The database
 * is loaded into an embedded PostgreSQL, or is that of BENCH_DATABASE_URL, which must be a copy.
 */
export async function measureMigrations({ folder, loadedAt, load, statements, ids }: MeasuredMigrations) {
  const given = process.env.BENCH_DATABASE_URL
  const directory = await mkdtemp(join(tmpdir(), 'bench-migrations-'))
  const dataDir = join(directory, 'postgres')
  const workDir = await mkdtemp(join(directory, 'migrations-'))
  const postgres = given ? undefined : await startEmbeddedPostgres({ dataDir, database: 'bench' })
  const url = given ?? postgres?.url ?? ''
  try {
    if (postgres) {
      await migrateTo(url, folder, loadedAt)
      await load(url)
    }
    const probes = await startProbes(url, statements, ids)
    await new Promise((resolve) => setTimeout(resolve, 10_000))
    print('without a migration, 10 s', probes.longest())
    const log = createLogger({ name: 'bench', level: 'warn' })
    for (const { name } of await readMigrations(folder, undefined)) {
      await copyFile(join(folder, `${name}.sql`), join(workDir, `${name}.sql`))
      const beganAt = performance.now()
      const known = { url, applicationName: 'bench', log }
      const pending = await onMigrationConnection(known, workDir, async (migrations) => {
        const pending = await pendingMigrations(migrations)
        await migrate(migrations, log)
        return pending
      })
      const seconds = (performance.now() - beganAt) / 1000
      if (pending.length > 0) print(`${name}, ${seconds.toFixed(1)} s`, probes.longest())
    }
    await probes.stop()
  } finally {
    await postgres?.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

function print(during: string, longest: Record<string, number>) {
  const waits = Object.entries(longest).map(([kind, ms]) => `${kind} ${Math.round(ms)}`)
  console.log(`${during}: longest wait in ms: ${waits.join(', ')}`)
}

async function migrateTo(url: string, folder: string, last: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create table schema_migrations (name varchar(255) primary key, timestamp varchar(255) not null)')
  for (const { name, sql } of await readMigrations(folder, undefined)) {
    if (name > last) break
    await client.query(sql)
    await client.query('insert into schema_migrations values ($1, $2)', [name, new Date().toISOString()])
  }
  await client.end()
}

/** Runs each statement again and again on a connection of its own. */
async function startProbes(url: string, statements: Record<string, string>, ids: string) {
  const pool = new pg.Pool({ connectionString: url, max: Object.keys(statements).length })
  const { rows } = await pool.query<{ id: string }>(ids)
  let longest: Record<string, number> = {}
  let isStopping = false
  const running = Object.entries(statements).map(async ([kind, text]) => {
    for (let turn = 0; !isStopping; turn++) {
      const beganAt = performance.now()
      // Without a name, so that a migration may add a column to a prepared `select *`.
      await pool.query(text, [rows[turn % rows.length]?.id])
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
