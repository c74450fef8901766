import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Admin, asAdmin } from '../../../../test/admin.ts'
import { authHere } from '../../../../test/command-line.ts'
import { createDatabase, startTestService, type TestService } from '../../../../test/service.ts'
import { MAX_SCANNED } from '../../../db/search-reach.store.ts'
import { NIL_UUID } from '../../../db/uuid.ts'

// Above MAX_SCANNED rows a search may only use indexes.
let service: TestService
let admin: Admin

beforeAll(async () => {
  service = await startTestService()
  admin = await asAdmin(service)
  for (const name of ['ada', 'bob']) {
    service.clock.advance({ seconds: 1 })
    const full_name = `${name.toUpperCase()} d'Émile`
    await admin.create({
      email: `${name}@example.com`,
      password: 'pw',
      email_confirm: true,
      user_metadata: { full_name },
    })
    await service.post('/token?grant_type=password', { email: `${name}@example.com`, password: 'pw' })
  }
  const { pool } = service.deps
  // After the sign-ins: entries would name the number.
  await pool.query(
    `update users set phone = case email when 'ada@example.com' then '4915112345678' else '4917112345678' end`,
  )
  await pool.query(`insert into users (id, aud, role, email, created_at, updated_at)
    select gen_random_uuid(), 'crowd', 'x', n || '@crowd.test', '2020-01-01', now() from generate_series(1, 101) n`)
  await pool.query(`insert into audit_log_entries (id, payload, created_at)
    select gen_random_uuid(), '{"action": "token_refreshed", "log_type": "token", "actor_id": "", "actor_username": ""}',
      timestamptz '2020-01-01' from generate_series(1, 12500) n`)
  for (const table of ['users', 'audit_log_entries']) {
    await pool.query(`alter table ${table} set (autovacuum_enabled = false)`)
    await makeLarge(table)
  }
})
afterAll(() => service.close())

/** Sets the planner's number of rows, the only one that is read. */
const makeLarge = (table: string) =>
  service.deps.pool.query(`update pg_class set reltuples = $1 where oid = $2::regclass`, [MAX_SCANNED + 1, table])

const found = async (filter: string) => {
  const { body } = await admin.get(`/admin/users?filter=${encodeURIComponent(filter)}`)
  return body.users.map(({ email }: { email: string }) => email.split('@')[0])
}

describe('a filter among many users', () => {
  test.for<[string, string[]]>([
    ['example', ['bob', 'ada']],
    ["d'émile", ['bob', 'ada']],
    ['da@exa', ['ada']],
    ['BOB D', ['bob']],
    ['ADA@exa', ['ada']],
    ['151 123', ['ada']],
    ['1-1-2', []],
    ['+49 17', ['bob']],
    ['49', ['bob', 'ada']],
    ['ad', ['ada']],
    ['AD', ['ada']],
    ['b', ['bob']],
    ['da', []],
    ["'", []],
    ['%', []],
  ])('finds any part that has three letters, else the beginning: %j', async ([filter, names]) => {
    expect(await found(filter)).toEqual(names)
  })

  test('finds the beginning where the database has no trigrams', async () => {
    const { pool } = service.deps
    await pool.query('alter index users_email_trgm_idx rename to users_email_trgm_idx_away')
    expect(await found('example')).toEqual([])
    expect(await found('ada@exa')).toEqual(['ada'])
    expect(await found("bob d'É")).toEqual(['bob'])
    await pool.query('alter index users_email_trgm_idx_away rename to users_email_trgm_idx')
    expect(await found('example')).toEqual(['bob', 'ada'])
  })
})

const entries = async (query: string) => {
  const { body } = await admin.get(`/admin/audit?query=${encodeURIComponent(query)}`)
  return body.map(({ payload }: { payload: Record<string, string> }) => `${payload.action} ${payload.actor_username}`)
}

describe('a search in a long audit log', () => {
  test.for<[string, string[]]>([
    ['action:LOGIN', ['login bob@example.com', 'login ada@example.com']],
    ['action:sign', ['user_signedup service_role', 'user_signedup service_role']],
    ['action:ancient', []],
    ['type:team', ['user_signedup service_role', 'user_signedup service_role']],
    ['author:ADA@', ['login ada@example.com']],
    ["author:bob d'É", ['login bob@example.com']],
    ['author:service_role', ['user_signedup service_role', 'user_signedup service_role']],
    ['author:nobody-here', []],
  ])('%s', async ([query, expected]) => {
    expect(await entries(query)).toEqual(expected)
  })

  test('finds a user under former addresses, and a deleted one by the whole address', async () => {
    service.clock.advance({ seconds: 1 })
    const since = service.clock.now()
    onTestFinished(async () => {
      await service.deps.pool.query('delete from audit_log_entries where created_at >= $1', [since])
    })
    const user = await admin.create({ email: 'former@example.com', password: 'pw', email_confirm: true })
    await service.post('/token?grant_type=password', { email: 'former@example.com', password: 'pw' })
    await admin.put(`/admin/users/${user.id}`, { email: 'latter@example.com' })
    expect(await entries('author:latter')).toEqual(['login former@example.com'])
    await admin.delete(`/admin/users/${user.id}`)
    expect(await entries('author:latter')).toEqual([])
    expect(await entries('author:Former@example.com')).toEqual(['login former@example.com'])
  })

  test('finds the entries of one user by id', async () => {
    const { id } = (await admin.get('/admin/users?filter=ada@example.com')).body.users[0]
    expect((await entries(`user:${id}`)).toSorted()).toEqual(['login ada@example.com', 'user_signedup service_role'])
  })

  test('demands a longer part where more than a hundred users match', async () => {
    const { status, body } = await admin.get('/admin/audit?query=author:crowd')
    expect([status, body.error_code]).toEqual([400, 'validation_failed'])
    expect(body.msg).toContain('more than 100 users')
  })

  test('ends its pages after ten thousand entries, and goes on by cursor', async () => {
    const page = (number: number) => admin.get(`/admin/audit?query=type:token&per_page=1000&page=${number}`)
    expect((await page(11)).body).toHaveLength(1000)
    expect((await page(12)).status).toBe(400)
    const seen = new Set<string>()
    let url: string | undefined = '/admin/audit?query=type:token&limit=1000'
    while (url && seen.size < 12_000) {
      const { body, headers }: { body: { id: string }[]; headers: Record<string, unknown> } = await admin.get(url)
      for (const { id } of body) seen.add(id)
      url = /^<([^>]+)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1]
    }
    expect(seen.size).toBe(12_000)
  })
})

describe('the total of a search with tens of thousands of matches', () => {
  beforeAll(async () => {
    const { pool } = service.deps
    const { rows } = await pool.query(`select id from users where email = 'ada@example.com'`)
    await pool.query(
      `insert into audit_log_entries (id, payload, created_at)
        select gen_random_uuid(), jsonb_build_object('action', 'logout', 'log_type', 'account', 'actor_id', actor.id,
          'actor_username', actor.name), timestamptz '2021-01-01' + n * interval '1 second'
        from (values ($1::uuid, 'ada@example.com', 40000), ('${NIL_UUID}', 'service_role', 20000)) actor (id, name, entries),
          generate_series(1, entries) n`,
      [rows[0].id],
    )
    await pool.query('analyze audit_log_entries')
  })
  afterAll(async () => {
    await service.deps.pool.query(`delete from audit_log_entries where payload ->> 'action' = 'logout'`)
    await makeLarge('audit_log_entries')
  })

  test.for<[string, number]>([
    ['action:logout', 60_000],
    ['type:account', 60_000],
    ['author:ada@example.com', 40_000],
    ['author:example.com', 40_000],
    ['author:service_role', 20_000],
  ])('is an estimate of all of them, and says so: %s', async ([query, matches]) => {
    const { headers } = await admin.get(`/admin/audit?query=${query}`)
    expect(headers['x-total-count-estimated']).toBe('true')
    expect(Number(headers['x-total-count']) / matches).toBeCloseTo(1, 1)
  })
})

test('config check reports how far a search for users goes, if there is a database', async () => {
  const database = await createDatabase()
  const notes = async (url: string) =>
    JSON.parse((await authHere(['config', 'check', '--json'], { AUTH_DATABASE_URL: url })).stdout).notes
  expect(await notes(database.url)).toEqual(['searches for users find any part of an address, number or name'])
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  await client.query('drop index users_full_name_trgm_idx')
  await client.end()
  expect(await notes(database.url)).toEqual([
    expect.stringContaining('find the beginning of an address, number or name'),
  ])
  await database.drop()
  expect(await notes(`${database.url}_missing`)).toEqual([])
})
