import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { openDatabase } from '../database/pool.ts'
import { createLogger } from '../telemetry/logger.ts'
import { pooledAddress } from '../testing/database/pooled.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { openQueue } from './queue.ts'

// An upgrade of pg-boss that fails here needs a reading of pg-boss-tables.ts against the new tables.
let database: Awaited<ReturnType<typeof cloneTemplate>>
let opened: ReturnType<typeof openDatabase>

beforeAll(async () => {
  const log = createLogger({ name: 'test', level: 'fatal' })
  database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_tables`, async () => {})
  const options = { url: database.url, applicationName: 'test', log }
  const queue = await openQueue({ ...options, schema: 'jobs', queues: [], migrate: true, supervise: false })
  await queue.stop(0)
  opened = openDatabase({ ...options, ...pooledAddress(database.url), maxPoolSize: 1 })
})

afterAll(async () => {
  await opened.close()
  await database.drop()
})

const valuesOf = async (text: string) => (await opened.pool.query({ text, rowMode: 'array' })).rows

test('the schema of pg-boss has the version that our SQL was written for', async () => {
  expect(await valuesOf('select version from jobs.version')).toEqual([[43]])
})

test('the states of a job have the order by which our SQL compares them', async () => {
  const states = ['created', 'retry', 'active', 'completed', 'cancelled', 'failed']
  expect(await valuesOf('select unnest(enum_range(null::jobs.job_state))::text')).toEqual(
    states.map((state) => [state]),
  )
})

test('the table of jobs has the columns that our SQL reads and writes', async () => {
  const columns = await valuesOf(`select column_name, udt_name from information_schema.columns
    where table_schema = 'jobs' and table_name = 'job'`)
  expect(Object.fromEntries(columns)).toMatchObject({
    ...{ id: 'uuid', name: 'text', data: 'jsonb', state: 'job_state' },
    ...{ group_id: 'text', priority: 'int4', blocked: 'bool', start_after: 'timestamptz', created_on: 'timestamptz' },
    ...{ started_on: 'timestamptz', source_name: 'text', source_output: 'jsonb', source_retry_count: 'int4' },
  })
})
