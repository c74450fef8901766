// Rates of the OAuth server beside those of sessions. Exchange of codes and refresh by an application stand against
// refresh of a session, introspection against GET /user. Alone: `node bench/applications.ts`, on an embedded PostgreSQL
// and without a row in results/.
import { createHash, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from '@services/common/bench/median'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import pg from 'pg'
import { openConnection, type Send } from './http-client.ts'
import { type BenchUser, createUsers, makeAdminToken, refreshes, runFor, startService, userReads } from './load.ts'

const ROUNDS = 5

/** More exchanges a second than any machine does, which the codes in store must suffice for. */
const MOST_CODES_A_SECOND = 4_000

const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

const SETTINGS = {
  AUTH_OAUTH_SERVER_ENABLED: 'true',
  AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '/consent',
}

export interface Compared {
  id: string
  what: string
  against: string
  ours: number
  theirs: number
  atLeast: number
}

/** Returns the rates of an application, each with that of a session. */
export async function measureApplications(
  databaseUrl: string,
  seconds: number,
  concurrency: number,
): Promise<Compared[]> {
  const service = await startService(databaseUrl, SETTINGS)
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  try {
    const users = await createUsers(service.base, concurrency, 'application')
    const client = await register(service.base)
    const sends = users.map(() => openConnection(service.base))
    const codes = Math.ceil((MOST_CODES_A_SECOND * seconds * (ROUNDS + 1)) / concurrency)
    await approve(pool, client.client_id, users, codes)
    const next = users.map(() => 0)
    const tokens = users.map(() => ({ access_token: '', refresh_token: '' }))
    const ask = async (loop: number, path: string, body: object) => {
      const { status, body: text } = await (sends[loop] as Send)({
        ...{ method: 'POST', path, headers: 'content-type: application/json\r\n' },
        body: JSON.stringify({ ...client, ...body }),
      })
      if (status !== 200) throw new Error(`POST ${path}: ${status} ${text}`)
      return JSON.parse(text)
    }
    const exchange = async (loop = 0) => {
      const code = `${users[loop]?.id} ${next[loop]}`
      next[loop] = (next[loop] ?? 0) + 1
      const form = { grant_type: 'authorization_code', code, code_verifier: VERIFIER }
      tokens[loop] = await ask(loop, '/oauth/token', form)
    }
    const refresh = async (loop = 0) => {
      const { refresh_token } = tokens[loop] ?? {}
      tokens[loop] = await ask(loop, '/oauth/token', { grant_type: 'refresh_token', refresh_token })
    }
    const introspect = async (loop = 0) => {
      const { active } = await ask(loop, '/oauth/introspect', { token: tokens[loop]?.access_token })
      if (!active) throw new Error('the token is not active')
    }
    const measure = async (calls: ((loop: number) => Promise<void>)[]) => {
      const rates = calls.map((): number[] => [])
      for (const call of calls) await runFor(seconds, concurrency, call)
      // Alternating, so that other load on the machine affects all.
      for (let round = 0; round < ROUNDS; round++) {
        for (const [index, call] of calls.entries()) rates[index]?.push((await runFor(seconds, concurrency, call)).rate)
      }
      return rates.map(median)
    }
    const [exchanged = 0, own = 0, sessions = 0] = await measure([exchange, refresh, refreshes(service.base, users)])
    const [introspected = 0, read = 0] = await measure([introspect, userReads(service.base, users)])
    const session = { against: 'refreshes of a session', theirs: sessions, atLeast: 0.9 }
    const user = { against: 'GET /user', theirs: read, atLeast: 0.8 }
    return [
      { id: 'application-codes', what: 'exchanges of a code', ours: exchanged, ...session },
      { id: 'application-refreshes', what: 'refreshes by an application', ours: own, ...session },
      { id: 'introspections', what: 'introspections', ours: introspected, ...user },
    ]
  } finally {
    await pool.end()
    await service.stop()
  }
}

async function register(base: string): Promise<{ client_id: string; client_secret: string }> {
  const { status, body } = await openConnection(base)({
    ...{ method: 'POST', path: '/admin/oauth/clients' },
    headers: `authorization: Bearer ${await makeAdminToken()}\r\n`,
    body: JSON.stringify({
      redirect_uris: ['https://app.example/callback'],
      token_endpoint_auth_method: 'client_secret_post',
    }),
  })
  if (status !== 201) throw new Error(`POST /admin/oauth/clients: ${status} ${body}`)
  const { client_id, client_secret } = JSON.parse(body)
  return { client_id, client_secret }
}

/** Stores approved requests, whose consent would be measured otherwise. */
async function approve(pool: pg.Pool, clientId: string, users: readonly BenchUser[], codes: number): Promise<void> {
  await pool.query(
    `insert into oauth_authorizations (id, client_id, redirect_uri, response_mode, scopes, resources, code_challenge,
       status, user_id, session_id, authenticated_at, aal, code_hash, code_expires_at, expires_at, created_at)
     select $1 || n || session.id, $2, 'https://app.example/callback', 'query', '["email", "offline_access"]', '[]', $3,
       'approved', session.user_id, session.id, now(), 'aal1', sha256(convert_to(session.user_id || ' ' || n, 'UTF8')),
       now() + interval '1 hour', now() + interval '1 hour', now()
     from sessions session, generate_series(0, $4::integer - 1) n
     where session.user_id = any ($5::uuid[])`,
    [randomUUID(), clientId, CHALLENGE, codes, users.map(({ id }) => id)],
  )
  await pool.query('analyze oauth_authorizations')
}

if (import.meta.main) {
  const dataDir = await mkdtemp(join(tmpdir(), 'bench-postgres-'))
  const postgres = await startEmbeddedPostgres({ dataDir, database: 'bench' })
  try {
    for (const { what, against, ours, theirs } of await measureApplications(postgres.url, 2, 16)) {
      console.log(
        `${what} ${Math.round(ours)} a second, ${against} ${Math.round(theirs)}: ${(ours / theirs).toFixed(2)}`,
      )
    }
  } finally {
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
