// `node bench/migrations.ts`: the longest wait of a request during each pending migration. Loads BENCH_USERS (1,000,000) users
// and ten audit entries each, unless BENCH_DATABASE_URL names a copy of a database.
import { fileURLToPath } from 'node:url'
import { measureMigrations } from '@services/common/bench/migrations'
import pg from 'pg'
import { loadUsers } from './scale.ts'

const USERS = Number(process.env.BENCH_USERS || 1_000_000)

const ENTRY = `insert into audit_log_entries (id, payload, created_at)
  select gen_random_uuid(), jsonb_build_object('actor_id', id, 'actor_username', email, 'action', 'login'), now() from target`
const TARGET = 'target as (select id, email from users where id = $1)'
const STATEMENTS = {
  read: 'select u.*, i.* from users u left join identities i on i.user_id = u.id where u.id = $1',
  'sign-in': `with ${TARGET},
    signed_in as (update users set last_sign_in_at = now() where id = $1),
    opened as (insert into sessions (id, user_id, amr, refreshed_at, created_at)
      select gen_random_uuid(), id, '[]', now(), now() from target) ${ENTRY}`,
  refresh: `with ${TARGET}, rotated as (
    update sessions set refresh_counter = refresh_counter + 1, refreshed_at = now()
    where id = (select id from sessions where user_id = $1 limit 1)) ${ENTRY}`,
  'sign-up': `insert into users (id, aud, role, email, created_at, updated_at)
    select gen_random_uuid(), 'authenticated', 'authenticated', gen_random_uuid() || '@example.com', now(), now()
    from users where id = $1`,
}

await measureMigrations({
  folder: fileURLToPath(new URL('../migrations', import.meta.url)),
  loadedAt: '0007-limits',
  load,
  statements: STATEMENTS,
  ids: 'select id from users limit 1000',
})

async function load(url: string): Promise<void> {
  await loadUsers(url, 0, USERS, 'x')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (let turn = 0; turn < 10; turn++) {
    await client.query(`insert into audit_log_entries (id, payload, ip_address, created_at)
      select gen_random_uuid(), jsonb_build_object('actor_id', id, 'actor_username', email, 'action', 'token_refreshed',
        'log_type', 'token', 'user_agent', rpad('Mozilla/5.0', 110, 'x')), '198.51.100.7', now() from users`)
  }
  await client.query('vacuum (analyze)')
  await client.end()
}
