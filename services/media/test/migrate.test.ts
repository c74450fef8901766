import { tmpdir } from 'node:os'
import { cloneTemplate } from '@services/common/testing/database/template-database'
import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { mediaHere } from './command-line.ts'
import { gif } from './gif-bytes.ts'
import { settingsOf, startTestService } from './service.ts'

/** A database without tables. */
async function emptyDatabase(): Promise<string> {
  const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_empty`, async () => {})
  onTestFinished(() => database.drop())
  return database.url
}

async function schemasIn(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(
    `select distinct table_schema as name from information_schema.tables
     where table_schema not in ('pg_catalog', 'information_schema') order by 1`,
  )
  await client.end()
  return rows.map(({ name }) => name)
}

test('migrate --dry-run shows the SQL and applies nothing, migrate applies it once, migrate status reports when', async () => {
  const began = Date.now()
  const url = await emptyDatabase()
  const settings = settingsOf(url, tmpdir())
  const media = async (...args: string[]) => (await mediaHere(args, settings)).stdout

  const sql = await media('migrate', '--dry-run')
  expect(sql).toMatch(/^-- 0001-tokens\n[\s\S]*create table api_tokens[\s\S]*\n-- 0002-/)
  expect(await media('migrate', 'status')).toMatch(/^pending +0001-tokens\npending +0002-/)
  expect(await schemasIn(url)).toEqual([])
  expect(await mediaHere(['tokens', 'list'], settings)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^A table is missing: run `migrate` \(.*"api_tokens".*\)\n$/),
  })

  const { applied } = JSON.parse(await media('migrate', '--json'))
  expect(applied).toEqual([...sql.matchAll(/^-- (\d{4}-\S+)$/gm)].map(([, name]) => name))
  expect(await schemasIn(url)).toEqual(['media_queue', 'public'])
  const status = JSON.parse(await media('migrate', 'status', '--json'))
  expect(status.map(({ name }: { name: string }) => name)).toEqual(applied)
  for (const { applied_at: at } of status) expect(Date.parse(at)).toBeGreaterThan(began - 60_000)
  expect(await media('migrate', '--dry-run')).toBe('')
  expect(await media('migrate')).toBe('nothing to apply\n')

  // Which does not migrate by itself, and finds the tables of the queue too.
  const service = await startTestService({ MEDIA_DATABASE_URL: url })
  expect((await service.upload(gif(44, 20, [{ delay: 10 }]))).status).toBe(201)
  await service.close()
})
