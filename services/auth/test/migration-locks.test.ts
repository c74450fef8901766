import { fileURLToPath } from 'node:url'
import { longLocks } from '@services/common/testing/migration-locks'
import { cloneTemplate } from '@services/common/testing/template-database'
import { expect, inject, test } from 'vitest'

test('no migration keeps requests waiting for as long as a table is large', async () => {
  const database = await cloneTemplate(inject('databaseServerUrl'), `${inject('testRunId')}_empty`, async () => {})
  const found = await longLocks({
    url: database.url,
    folder: fileURLToPath(new URL('../migrations', import.meta.url)),
    // Earlier ones are older than the rule.
    from: '0018-rows-for-nobody',
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
