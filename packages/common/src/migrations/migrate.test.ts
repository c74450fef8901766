import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, inject, onTestFinished, test } from 'vitest'
import { openDatabase } from '../database/pool.ts'
import { cloneTemplate } from '../testing/database/template-database.ts'
import { migrate, migrationStates, onMigrationConnection, pendingMigrations } from './migrate.ts'

const THINGS = 'create table {{prefix}}things (id integer primary key, name text, size integer);'

/** An empty database and a folder of migrations. */
async function scene(files: Record<string, string>) {
  const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_migrate`, async () => {})
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  const lines: string[] = []
  const log = pino({}, { write: (line) => lines.push(JSON.parse(line).msg) })
  const options = { url: database.url, applicationName: 'test', log }
  const { db, pool, close } = openDatabase({ ...options, maxPoolSize: 5 })
  onTestFinished(async () => {
    await close()
    await database.drop()
    await rm(folder, { recursive: true })
  })
  const write = async (more: Record<string, string>) => {
    await mkdir(folder, { recursive: true })
    for (const [name, text] of Object.entries(more)) await writeFile(join(folder, `${name}.sql`), text)
  }
  await write(files)
  return {
    lines,
    pool,
    write,
    run: (namespace?: string) => onMigrationConnection({ ...options, namespace }, folder, (own) => migrate(own, log)),
    pending: async () => (await pendingMigrations({ db, folder })).map(({ name }) => name),
    states: () => migrationStates({ db, folder }),
    rows: async (text: string) => (await pool.query({ text, rowMode: 'array' })).rows,
  }
}

const INDEX = '-- alone\ncreate index concurrently if not exists {{prefix}}things_name_idx on {{prefix}}things (name);'
const INDEXES = `select indexrelid::regclass::text, indisvalid from pg_index
  where indrelid = 'things'::regclass and not indisprimary`

test('a file that runs alone may build an index concurrently, and is recorded like any other', async () => {
  const { run, pending, states, rows } = await scene({ '0001-things': THINGS, '0002-index': INDEX })
  expect(await pending()).toEqual(['0001-things', '0002-index'])
  await run()
  expect(await rows(INDEXES)).toEqual([['things_name_idx', true]])
  expect(await pending()).toEqual([])
  expect(await states()).toMatchObject([
    { name: '0001-things', file: { isAlone: false }, appliedAt: expect.any(Date) },
    { name: '0002-index', file: { isAlone: true }, appliedAt: expect.any(Date) },
  ])
})

test('a namespace has its own tables, indexes and records', async () => {
  const { run, rows } = await scene({ '0001-things': THINGS, '0002-index': INDEX })
  await run('acme')
  await run('other')
  expect(await rows('select name from acme_schema_migrations order by 1')).toEqual([['0001-things'], ['0002-index']])
  expect(await rows(`select relname from pg_class where relname like '%name_idx' order by 1`)).toEqual([
    ['acme_things_name_idx'],
    ['other_things_name_idx'],
  ])
})

test('a repeated statement commits each batch and ends when it changes no row', async () => {
  const { run, rows } = await scene({
    '0001-things': `${THINGS}\ninsert into things (id) select generate_series(1, 25);`,
    '0002-sizes': `-- alone
-- Sizes of before.
-- repeat
update things set size = pg_current_xact_id()::text::int where id in (select id from things where size is null limit 10);

-- if false
drop table things;

-- if exists (select from things where size is not null)
update things set name = 'done' where id = 1;`,
  })
  await run()
  const batches = await rows('select count(*) from things group by size order by 1')
  expect(batches).toEqual([[5], [10], [10]])
  expect(await rows('select id from things where name is not null')).toEqual([[1]])
})

test('a run that fails keeps earlier files, undoes an ordinary one and resumes', async () => {
  const { run, write, pending, rows } = await scene({
    '0001-things': THINGS,
    '0002-broken': 'alter table things add column other text;\nselect 1 / 0;',
  })
  await expect(run()).rejects.toThrow('division by zero')
  expect(await pending()).toEqual(['0002-broken'])
  expect(await rows(`select to_regclass('things') is not null`)).toEqual([[true]])
  await expect(rows('select other from things')).rejects.toThrow('does not exist')
  await write({ '0002-broken': 'alter table things add column other text;' })
  await run()
  expect(await rows('select other from things')).toEqual([])
})

test('statements that ran alone before a failure stay, and an index that it left invalid is built again', async () => {
  const { run, pending, pool, rows } = await scene({
    '0001-things': `${THINGS}\ninsert into things (id, name) values (1, 'same'), (2, 'same');`,
    '0002-unique': `-- alone\n${THINGS.replace('things', 'others').replace('table', 'table if not exists')}

create unique index concurrently if not exists things_name_key on things (name);`,
  })
  await expect(run()).rejects.toThrow('could not create unique index')
  expect(await rows(`select to_regclass('others') is not null`)).toEqual([[true]])
  expect(await rows(INDEXES)).toEqual([['things_name_key', false]])
  expect(await pending()).toEqual(['0002-unique'])
  await pool.query('delete from things where id = 2')
  await run()
  expect(await rows(INDEXES)).toEqual([['things_name_key', true]])
  expect(await pending()).toEqual([])
})

test('replicas that start at once apply each migration once, and none blocks a concurrent build of another', async () => {
  const { run, rows, lines } = await scene({
    '0001-things': `${THINGS}\ninsert into things select n from generate_series(1, 20000) n;`,
    '0002-index': INDEX,
    '0003-more': 'insert into things (id) values (0);',
  })
  await Promise.all([run(), run(), run(), run()])
  expect(await rows('select name from schema_migrations order by 1')).toHaveLength(3)
  expect(lines.filter((line) => line === 'migration applied')).toHaveLength(3)
  expect(await rows(INDEXES)).toEqual([['things_name_idx', true]])
})

test('a database that a newer version has migrated is accepted, and the unknown migration is listed', async () => {
  const { run, states, pending, pool, rows } = await scene({ '0001-things': THINGS })
  await run()
  await pool.query(`insert into schema_migrations values ('0002-newer', '2030-01-01')`)
  expect(await pending()).toEqual([])
  await run()
  expect(await states()).toMatchObject([
    { name: '0001-things', file: { name: '0001-things' } },
    { name: '0002-newer', file: undefined, appliedAt: new Date('2030-01-01') },
  ])
  expect(await rows('select name from schema_migrations order by 1')).toHaveLength(2)
})

test('a migration that precedes an applied one is refused by name', async () => {
  const { run, write, pending } = await scene({ '0002-things': THINGS })
  await run()
  await write({ '0001-late': 'select 1;' })
  await expect(run()).rejects.toThrow('0001-late cannot be applied: 0002-things')
  await expect(pending()).rejects.toThrow('0001-late cannot be applied: 0002-things')
})
