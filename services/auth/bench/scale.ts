import { createHash } from 'node:crypto'
import pg from 'pg'
import { deriveKey } from '../src/jwks/derive-key.ts'
import { formatRefreshToken } from '../src/sessions/refresh-token.ts'
import { openConnection } from './http-client.ts'
import { SECRET } from './load.ts'

const SESSIONS_EACH = 3
const STEP = 100_000

/** Ids that the database and this process make alike, so that none has to be read back. */
const sessionId = (index: number) =>
  createHash('md5')
    .update(`session ${index}`)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

/** Users `from` to `to`, each with an identity and three sessions, as the service would have stored them. */
export async function loadUsers(url: string, from: number, to: number): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (let first = from; first < to; first += STEP) {
    const last = Math.min(first + STEP, to) - 1
    await client.query(
      `with made as (
         insert into users (id, aud, role, email, email_confirmed_at, app_metadata, user_metadata, created_at, updated_at)
         select md5('user ' || i)::uuid, 'authenticated', 'authenticated', 'user-' || i || '@example.com', now(),
                '{"provider": "email", "providers": ["email"]}', jsonb_build_object('name', 'User ' || i), now(), now()
         from generate_series($1::int, $2::int) i returning id, email
       )
       insert into identities (id, user_id, provider, provider_id, identity_data, created_at, updated_at)
       select gen_random_uuid(), id, 'email', id::text, jsonb_build_object('sub', id, 'email', email), now(), now() from made`,
      [first, last],
    )
    await client.query(
      `insert into sessions (id, user_id, amr, refreshed_at, created_at)
       select md5('session ' || i)::uuid, md5('user ' || i / ${SESSIONS_EACH})::uuid, '[{"method":"password","timestamp":1}]', now(), now()
       from generate_series($1::int, $2::int) i`,
      [first * SESSIONS_EACH, (last + 1) * SESSIONS_EACH - 1],
    )
  }
  // What autovacuum would have done by the time anybody measures.
  for (const table of ['users', 'identities', 'sessions']) await client.query(`vacuum (analyze) ${table}`)
  await client.query('checkpoint')
  await client.end()
}

/** How many refreshes a percentile is taken from: as many as the first thousand users have sessions. */
const SAMPLES = 3_000

/**
 * The 99th percentile in milliseconds of refreshes of sessions drawn evenly from those of users `from` to `to`, which have
 * been refreshed `counter` times before.
 */
export async function refreshP99(base: string, from: number, to: number, counter = 0): Promise<number> {
  const key = deriveKey(SECRET, 'refresh-token')
  const times: number[] = []
  const stride = Math.floor(((to - from) * SESSIONS_EACH) / SAMPLES)
  let next = 0
  const loop = async () => {
    const send = openConnection(base)
    while (next < SAMPLES) {
      const token = formatRefreshToken(key, { sessionId: sessionId(from * SESSIONS_EACH + next++ * stride), counter })
      const startedAt = performance.now()
      const { status, body } = await send({
        method: 'POST',
        path: '/token?grant_type=refresh_token',
        body: JSON.stringify({ refresh_token: token }),
      })
      if (status !== 200) throw new Error(`refresh: ${status} ${body}`)
      times.push(performance.now() - startedAt)
    }
  }
  await Promise.all(Array.from({ length: 4 }, loop))
  times.sort((a, b) => a - b)
  return times[Math.floor(times.length * 0.99)] as number
}
