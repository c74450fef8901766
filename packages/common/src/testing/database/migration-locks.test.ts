import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { longLocks } from './migration-locks.ts'
import { cloneTemplate } from './template-database.ts'

const ALONE = '-- alone\n'
const BATCH = 'update things set size = 1 where id in (select id from things where size is null limit 900);'

test.each([
  ['an index that is built concurrently', `${ALONE}create index concurrently if not exists i on things (name);`, []],
  ['a column with a default', 'alter table things add column more integer not null default 0;', []],
  ['batches', `${ALONE}-- repeat\n${BATCH}`, []],
  ['a constraint that is validated later', `${ALONE}alter table things add check (id > 0) not valid;`, []],
  ['an index', 'create index on things (name);', ['reads or writes things while writers of things wait']],
  ['a constraint', 'alter table things add check (id > 0);', ['reads or writes things while writers of things wait']],
  ['all rows', 'update things set size = 1;', ['changes more than 1000 rows of things at once']],
  ['all rows alone', `${ALONE}update things set size = 1;`, ['changes more than 1000 rows of things at once']],
])('the locks of a migration with %s', async (_, sql, found) => {
  const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_locks`, async () => {})
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  await writeFile(join(folder, '0001-things.sql'), 'create table things (id integer, name text, size integer);')
  await writeFile(join(folder, '0002-next.sql'), sql)
  const fill = 'insert into things (id) select generate_series(1, 1500);'
  const expected = found.map((text) => `0002-next: ${text}`)
  expect(await longLocks({ url: database.url, folder, from: '0001-things', fill })).toEqual(expected)
  await database.drop()
  await rm(folder, { recursive: true })
})
