import { pino } from 'pino'
import { expect, inject, test } from 'vitest'
import { openDatabase } from '../database/pool.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { openQueue } from './queue.ts'

test('deleting many finished jobs may exceed the time limits of other statements, also behind a pooler', async () => {
  const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_deletion`, async () => {})
  const lines: unknown[] = []
  const log = pino({ level: 'warn' }, { write: (line) => lines.push(JSON.parse(line)) })
  const { pool, close } = openDatabase({ url: database.url, maxPoolSize: 1, applicationName: 'test', log })
  const limits = {
    retryLimit: 1,
    retryDelaySeconds: 1,
    retryDelayMaxSeconds: 1,
    expireInSeconds: 60,
    heartbeatSeconds: 10,
  }
  const options = {
    url: database.url,
    schema: 'jobs',
    applicationName: 'test',
    log,
    queues: [{ name: 'done', ...limits }],
  }
  const migrating = await openQueue({ ...options, migrate: true, supervise: false })
  await migrating.stop(0)
  await pool.query(`insert into jobs.job (name, state, completed_on, deletion_seconds)
    values ('done', 'completed', now() - interval '1 day', 3600)`)
  await pool.query(`create function jobs.dawdle() returns trigger language plpgsql as
    'begin perform pg_sleep(14); return old; end'`)
  await pool.query('create trigger dawdle before delete on jobs.job for each row execute function jobs.dawdle()')
  // The role's limit, which applies behind a pooler.
  await pool.query(
    "do $$ begin execute format('alter database %I set statement_timeout = %L', current_database(), '5s'); end $$",
  )
  const queue = await openQueue({ ...options, pooler: 'transaction', migrate: false, supervise: true })
  await expect.poll(async () => (await pool.query('select from jobs.job')).rowCount).toBe(0)
  expect(lines).toEqual([])
  await queue.stop(0)
  await close()
  await database.drop()
})
