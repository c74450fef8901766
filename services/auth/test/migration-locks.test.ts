import { fileURLToPath } from 'node:url'
import { migrate, onMigrationConnection } from '@services/common/migrations/migrate'
import { createLogger } from '@services/common/telemetry/logger'
import { longLocks } from '@services/common/testing/database/migration-locks'
import { cloneTemplate } from '@services/common/testing/database/template-database'
import pg from 'pg'
import { expect, inject, test } from 'vitest'

const FOLDER = fileURLToPath(new URL('../migrations', import.meta.url))

const emptyDatabase = () => cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_empty`, async () => {})

test('no migration keeps requests waiting for as long as a table is large', async () => {
  const database = await emptyDatabase()
  const found = await longLocks({
    url: database.url,
    folder: FOLDER,
    // The others create the tables. This one's statements are also run by hand, on tables in use.
    from: '0007-limits',
    fill: `
      insert into users (id, aud, role, email, created_at, updated_at)
        select md5(n::text)::uuid, 'a', 'r', n || '@example.com', now(), now() from generate_series(1, 1500) n;
      insert into identities (id, user_id, provider, provider_id, identity_data, created_at, updated_at)
        select id, id, 'email', id, '{}', now(), now() from users;
      insert into sessions (id, user_id, amr, refreshed_at, created_at) select id, id, '[]', now(), now() from users;
      insert into one_time_tokens (user_id, purpose, relates_to, expires_at, created_at)
        select id, 'recovery', email, now(), now() from users;
      insert into messages (id, user_id, channel, kind, created_at, updated_at)
        select id, id, 'mail', 'recovery', now(), now() from users;
      insert into audit_log_entries (id, payload, created_at) select id, '{}', now() from users;`,
  })
  expect(found).toEqual([])
  await database.drop()
})

test('a role that may not create pg_trgm migrates without its indexes', async () => {
  const database = await emptyDatabase()
  const admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  const role = `limited_${inject('testRunId')}`
  await admin.query(`create role ${role} login password 'pw'`)
  await admin.query(`grant create on schema public to ${role}`)
  const url = new URL(database.url)
  Object.assign(url, { username: role, password: 'pw' })
  const log = createLogger({ name: 'test', level: 'fatal' })
  const known = { url: url.href, applicationName: 'test', log }
  await onMigrationConnection(known, FOLDER, (migrations) => migrate(migrations, log))
  const { rows } = await admin.query(`select relname from pg_class where relname like 'users\\_%\\_idx' order by 1`)
  expect(rows.map(({ relname }) => relname)).toEqual([
    'users_anonymous_idx',
    'users_aud_created_at_idx',
    'users_email_pattern_idx',
    'users_full_name_pattern_idx',
    'users_phone_pattern_idx',
  ])
  await admin.query(`drop owned by ${role}`)
  await admin.query(`drop role ${role}`)
  await admin.end()
  await database.drop()
})
