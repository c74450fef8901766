import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate, onMigrationConnection } from '@services/common/migrations/migrate'
import { createLogger } from '@services/common/telemetry/logger'
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
  expect(sql).toMatch(/^-- 0001-clips\n[\s\S]*create table api_tokens[\s\S]*\n-- 0002-/)
  expect(await media('migrate', 'status')).toMatch(/^pending +0001-clips\npending +0002-/)
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

/** A database of the version that preceded the migration `next`, as namespace `acme`. */
async function migratedBefore(next: string): Promise<{ client: pg.Client; finish(): Promise<void> }> {
  const url = await emptyDatabase()
  const folder = fileURLToPath(new URL('../migrations', import.meta.url))
  const earlier = await mkdtemp(join(tmpdir(), 'migrations-'))
  onTestFinished(() => rm(earlier, { recursive: true }))
  for (const file of await readdir(folder)) {
    if (file < next) await cp(join(folder, file), join(earlier, file))
  }
  const log = createLogger({ name: 'test', level: 'error' })
  const database = { url, namespace: 'acme', applicationName: 'test', log }
  const migrateTo = (folder: string) =>
    onMigrationConnection(database, folder, (migrations) => migrate(migrations, log))
  await migrateTo(earlier)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  // Sources are not needed, nor the work of triggers.
  await client.query(`set session_replication_role = 'replica'`)
  return { client, finish: () => migrateTo(folder) }
}

test('clips of an earlier version are listed by their tags, deleted ones are not', async () => {
  const { client, finish } = await migratedBefore('0011')
  // More than two batches; a third have no tags, and a few of those with tags are deleted.
  await client.query(`
    insert into acme_clips (id, source_id, tag_keys, nsfw, source_kind, created_at, deleted_at)
    select lpad(n::text, 8, '0'), case when n % 100 <> 1 then gen_random_uuid() end,
      case when n % 3 = 0 then '{}' else array['all', 'tag ' || n % 7] end, n % 5 = 0, 'upload',
      timestamptz '2026-01-01' + n * interval '1 s', case when n % 100 = 1 then now() end
    from generate_series(1, 2500) n`)
  await finish()
  const { rows } = await client.query(`
    select (select count(*)::integer from acme_clip_tags) as listed,
      (select count(*)::integer from acme_clips clip, unnest(tag_keys) key
        join acme_clip_tags tag on tag.tag_key = key
        where tag.clip_id = clip.id and deleted_at is null and tag.created_at = clip.created_at and tag.nsfw = clip.nsfw) as right_ones`)
  expect(rows).toEqual([{ listed: 3_300, right_ones: 3_300 }])
  expect((await client.query(`select to_regclass('acme_clip_tags_progress') as left`)).rows).toEqual([{ left: null }])
})

test('clips of an earlier version are searched and sorted, deleted ones are not', async () => {
  const { client, finish } = await migratedBefore('0025')
  // More than two batches; one in a hundred is deleted.
  await client.query(`
    insert into acme_sources (id, sha256, pipeline_version, state, bytes, info, has_audio, clip_count, created_at)
    select md5(n::text)::uuid, sha256(n::text::bytea), 1, 'ready', n, jsonb_build_object('durationSeconds', n / 10.0), false, 1, now()
    from generate_series(1, 500) n;
    insert into acme_clips (id, source_id, title, tags, attribution, nsfw, source_kind, created_at, deleted_at)
    select lpad(n::text, 8, '0'), case when n % 100 <> 1 then md5(n::text)::uuid end,
      case when n % 3 > 0 then 'Élan number ' || n end, case when n % 2 = 0 then '{Red Fox}' else '{}'::text[] end,
      case when n % 5 = 0 then '{"site":"reddit","user":"Ada"}'::jsonb end, n % 7 = 0, 'upload',
      timestamptz '2026-01-01' + n * interval '1 s', case when n % 100 = 1 then now() end
    from generate_series(1, 500) n`)
  await finish()
  const listed = `select clip_id, token_id, created_at, bytes, duration_ms, nsfw, title_key, words::text,
    (select array_agg(word order by word) from acme_clip_words word
      where word.clip_id = listed.clip_id and word.created_at = listed.created_at) as each
    from acme_clip_search listed order by clip_id`
  const { rows } = await client.query(listed)
  expect(rows).toHaveLength(495)
  expect(rows[9]).toMatchObject({
    clip_id: '00000011',
    bytes: '11',
    duration_ms: '1100',
    title_key: 'elan number 11',
    each: ['11', 'elan', 'number'],
  })
  expect(rows[28]).toMatchObject({ title_key: '', each: ['ada', 'fox', 'red'] })
  // The triggers list the same.
  await client.query(`set session_replication_role = 'origin'`)
  await client.query(`
    create table kept as select * from acme_clips;
    delete from acme_clips;
    insert into acme_clips select * from kept`)
  expect((await client.query(listed)).rows).toEqual(rows)
  expect((await client.query(`select to_regclass('acme_clip_words_progress') as left`)).rows).toEqual([{ left: null }])
})
