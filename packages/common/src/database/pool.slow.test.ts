import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { startEmbeddedPostgres } from '../dev/embedded-postgres.ts'
import { PATIENCE_MS } from '../testing/patience.ts'
import { openDatabase } from './pool.ts'

test('a server that stops is logged before the pool closes, and not while it closes', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'database-test-'))
  const postgres = await startEmbeddedPostgres({ dataDir, durable: false })
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line).msg) })
  const open = async () => {
    const options = { maxPoolSize: 20, connectWithinMs: PATIENCE_MS, applicationName: 'test', log }
    const database = openDatabase({ ...options, url: postgres.url })
    await Promise.all(Array.from({ length: 20 }, () => sql`select pg_sleep(0.05)`.execute(database.db)))
    return database
  }
  const [leaving, staying] = await Promise.all([open(), open()])
  await Promise.all([leaving.close(), postgres.stop()])
  await expect.poll(() => lines).toEqual(Array.from({ length: 20 }, () => 'database connection lost'))
  await staying.close()
  await rm(dataDir, { recursive: true, force: true })
})
