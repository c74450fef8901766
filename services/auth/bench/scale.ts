import { createHash } from 'node:crypto'
import pg from 'pg'
import { deriveKey } from '../src/core/keys/derive-key.ts'
import { formatRefreshToken } from '../src/core/sessions/refresh-token.ts'
import { type BenchUser, SECRET } from './load.ts'

export const SESSIONS_EACH = 3
const STEP = 100_000

/** Ids that the database and this process derive the same way, so that none has to be read back. */
const idOf = (name: string) =>
  createHash('md5')
    .update(name)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

/**
 * Loads users `from` to `to`, each with an identity and three sessions, as the service would have stored them. All have
 * the password of `passwordHash`.
 */
export async function loadUsers(url: string, from: number, to: number, passwordHash: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (let first = from; first < to; first += STEP) {
    const last = Math.min(first + STEP, to) - 1
    await client.query(
      `with made as (
         insert into users (id, aud, role, email, password_hash, email_confirmed_at, last_sign_in_at, app_metadata,
                            user_metadata, created_at, updated_at)
         select md5('user ' || i)::uuid, 'authenticated', 'authenticated', 'user-' || i || '@example.com', $3, now(), now(),
                '{"provider": "email", "providers": ["email"]}', jsonb_build_object('name', 'User ' || i), now(), now()
         from generate_series($1::int, $2::int) i returning id, email
       )
       insert into identities (id, user_id, provider, provider_id, identity_data, last_sign_in_at, created_at, updated_at)
       select gen_random_uuid(), id, 'email', id::text, jsonb_build_object('sub', id, 'email', email), now(), now(), now()
       from made`,
      [first, last, passwordHash],
    )
    await client.query(
      `insert into sessions (id, user_id, amr, refreshed_at, user_agent, ip, created_at)
       select md5('session ' || i)::uuid, md5('user ' || i / ${SESSIONS_EACH})::uuid, '[{"method":"password","timestamp":1}]',
              now(), $3, '198.51.100.7', now()
       from generate_series($1::int, $2::int) i`,
      // A browser's typical length.
      [first * SESSIONS_EACH, (last + 1) * SESSIONS_EACH - 1, 'Mozilla/5.0 '.padEnd(110, 'x')],
    )
  }
  // Autovacuum would have run before a measurement in production.
  for (const table of ['users', 'identities', 'sessions']) await client.query(`vacuum (analyze) ${table}`)
  await client.query('checkpoint')
  await client.end()
}

/** Selects `count` of the loaded users `from` to `to`, evenly, each with its n-th session as loaded. */
export function drawUsers(count: number, from: number, to: number, nth = 0): BenchUser[] {
  const key = deriveKey(SECRET, 'refresh-token')
  const stride = Math.max(1, Math.floor((to - from) / count))
  return Array.from({ length: Math.min(count, to - from) }, (_, index) => {
    const user = from + index * stride
    const sessionId = idOf(`session ${user * SESSIONS_EACH + nth}`)
    return {
      id: idOf(`user ${user}`),
      email: `user-${user}@example.com`,
      accessToken: '', // with the first refresh
      refreshToken: formatRefreshToken(key, { sessionId, counter: 0 }),
    }
  })
}
