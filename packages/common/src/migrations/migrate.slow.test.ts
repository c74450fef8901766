import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, inject, onTestFinished, test } from 'vitest'
import { openDatabase } from '../database/pool.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { migrate, onMigrationConnection } from './migrate.ts'

test.each([
  { kind: 'ordinary', directive: '' },
  { kind: 'lone', directive: '-- alone\n-- Not concurrently, because a new column takes no time.\n' },
])(
  'an $kind statement that waits for a long transaction lets requests pass, and runs when that ends',
  async ({ directive }) => {
    const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_waits`, async () => {})
    const folder = await mkdtemp(join(tmpdir(), 'migrations-'))
    await writeFile(join(folder, '0001-more.sql'), `${directive}alter table things add column more text;`)
    const lines: string[] = []
    const log = pino({}, { write: (line) => lines.push(JSON.parse(line).msg) })
    const options = { url: database.url, applicationName: 'test', log }
    const { pool, close } = openDatabase({ ...options, maxPoolSize: 3 })
    onTestFinished(async () => {
      await close()
      await database.drop()
      await rm(folder, { recursive: true })
    })
    await pool.query('create table things (id integer)')
    const reader = await pool.connect()
    await reader.query('begin')
    await reader.query('select from things')

    const migrating = onMigrationConnection(options, folder, (own) => migrate(own, log))
    await expect.poll(() => lines).toContain('migration postponed: a transaction holds a lock')
    await pool.query('insert into things values (1)')

    await reader.query('commit')
    reader.release()
    await migrating
    expect((await pool.query('select more from things')).rows).toEqual([{ more: null }])
    expect(lines.at(-1)).toBe('migration applied')
  },
)
