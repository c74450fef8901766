import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Admin, asAdmin } from '../../../test/admin.ts'
import { startTestService, type TestService } from '../../../test/service.ts'

let service: TestService
let admin: Admin

beforeAll(async () => {
  service = await startTestService()
  admin = await asAdmin(service)
  for (const name of ['ada', 'bob']) {
    service.clock.advance({ seconds: 1 })
    const user = {
      email: `${name}@example.com`,
      password: 'pw',
      email_confirm: true,
      user_metadata: { full_name: `${name}_X` },
    }
    await admin.create(user)
    service.clock.advance({ seconds: 1 })
    await service.post('/token?grant_type=password', { email: user.email, password: 'pw' })
  }
})
afterAll(() => service.close())

const actions = async (query: string) => {
  const { body } = await admin.get(`/admin/audit?${query}`)
  return body.map(({ payload }: { payload: { action: string } }) => payload.action)
}

test('the log comes newest first, with its headers', async () => {
  const { status, body, headers } = await admin.get('/admin/audit')
  expect(status).toBe(200)
  expect(body.map(({ payload }: { payload: { action: string } }) => payload.action)).toEqual([
    'login',
    'user_signedup',
    'login',
    'user_signedup',
  ])
  expect(body[0]).toEqual({
    id: expect.any(String),
    payload: expect.objectContaining({ actor_username: 'bob@example.com', log_type: 'account' }),
    created_at: service.clock.now().toISOString(),
    ip_address: '127.0.0.1',
  })
  expect(headers).toMatchObject({ 'x-total-count': '4', link: '</admin/audit?page=1>; rel="last"' })
})

test('pages link to the next and the last', async () => {
  const { body, headers } = await admin.get('/admin/audit?page=1&per_page=3&query=author:%40')
  expect(body).toHaveLength(2)
  expect(headers.link).toBe('</admin/audit?page=1&per_page=3&query=author%3A%40>; rel="last"')
  const second = await admin.get('/admin/audit?page=2&per_page=3')
  expect([second.body.length, second.headers.link]).toEqual([1, '</admin/audit?page=2&per_page=3>; rel="last"'])
  const first = await admin.get('/admin/audit?per_page=3')
  expect(first.headers.link).toBe(
    '</admin/audit?page=2&per_page=3>; rel="next", </admin/audit?page=2&per_page=3>; rel="last"',
  )
  expect((await admin.get('/admin/audit?page=9')).body).toEqual([])
})

test('query user: and an id finds what a user did, and what was done to the user', async () => {
  const { body } = await admin.get('/admin/users?filter=ada@')
  const { id } = body.users[0]
  expect(await actions(`query=user:${id}`)).toEqual(['login', 'user_signedup'])
  expect(await actions(`query=user:${id.toUpperCase()}&limit=1`)).toEqual(['login'])
  expect(await actions(`query=user:${crypto.randomUUID()}`)).toEqual([])
})

test.for<[string, string[]]>([
  ['action:LOGIN', ['login', 'login']],
  ['action:sign', ['user_signedup', 'user_signedup']],
  ['type:team', ['user_signedup', 'user_signedup']],
  ['type:acc', ['login', 'login']],
  ['author:ADA@', ['login']],
  ['author:bob_x', ['login']],
  ['author:service', ['user_signedup', 'user_signedup']],
  ['author:bob%', []],
  ['author:bo_@', []],
  ['action:', ['login', 'user_signedup', 'login', 'user_signedup']],
  ['', ['login', 'user_signedup', 'login', 'user_signedup']],
])('query %j', async ([query, found]) => {
  expect(await actions(`query=${encodeURIComponent(query)}`)).toEqual(found)
})

// contract/auth-core.md 18, BUG11.
test.for([
  'query=login',
  'query=ip:1',
  'query=Action:x',
  'query=user:ada',
  'query=action:%00',
  `query=action:${'x'.repeat(256)}`,
  'per_page=0',
  'per_page=x',
])('%s is refused', async (query) => {
  const { status, body } = await admin.get(`/admin/audit?${query}`)
  expect([status, body.error_code]).toEqual([400, 'validation_failed'])
})

test('page 0 is the first one, for callers that count from 0', async () => {
  const [zeroth, first] = [await admin.get('/admin/audit?page=0'), await admin.get('/admin/audit?page=1')]
  expect([zeroth.status, zeroth.body]).toEqual([200, first.body])
})

test('the total is exact up to 10000 entries and on the last page; else it is an estimate that says so', async () => {
  const { pool } = service.deps
  const few = await admin.get('/admin/audit')
  expect(few.headers).toMatchObject({ 'x-total-count': '4' })
  expect(few.headers).not.toHaveProperty('x-total-count-estimated')
  await pool.query(`insert into audit_log_entries (id, payload, created_at)
    select gen_random_uuid(), '{"action": "ancient"}', timestamptz '2020-01-01' - n * interval '1 second'
    from generate_series(1, 20100) n`)
  onTestFinished(async () => {
    await pool.query(`delete from audit_log_entries where payload ->> 'action' = 'ancient'`)
  })
  await pool.query('analyze audit_log_entries')
  const { headers } = await admin.get('/admin/audit?per_page=1000')
  expect(headers).toMatchObject({ 'x-total-count': '20104', 'x-total-count-estimated': 'true' })
  const last = await admin.get('/admin/audit?per_page=1000&page=21')
  expect([last.body.length, last.headers['x-total-count']]).toEqual([104, '20104'])
  expect(last.headers).not.toHaveProperty('x-total-count-estimated')
  const past = await admin.get('/admin/audit?per_page=1000&page=9999')
  expect([past.body, past.headers['x-total-count'], past.headers['x-total-count-estimated']]).toEqual([
    [],
    '20104',
    'true',
  ])
})

test('a walk by cursor meets every entry once, newest first, and ends', async () => {
  const paged = (await admin.get('/admin/audit?query=type:account')).body
  const walked: unknown[] = []
  let url: string | undefined = '/admin/audit?limit=1&query=type:account'
  while (url) {
    const { body, headers } = await admin.get(url)
    walked.push(...body)
    url = /^<([^>]+)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1]
  }
  expect(walked).toEqual(paged)
  expect((await admin.get('/admin/audit?cursor=x')).status).toBe(400)
})

test('from and before bound the list, its total, a search and a walk', async () => {
  const { body: all } = await admin.get('/admin/audit?per_page=1000')
  const [newest, , third] = all
  const range = `from=${third.created_at}&before=${newest.created_at}`
  const inRange = all.filter(
    ({ created_at: at }: { created_at: string }) => at >= third.created_at && at < newest.created_at,
  )
  const page = await admin.get(`/admin/audit?${range}`)
  expect([page.body, page.headers['x-total-count']]).toEqual([inRange, String(inRange.length)])
  expect((await admin.get(`/admin/audit?limit=1000&${range}`)).body).toEqual(inRange)
  const logins = inRange.filter(({ payload }: { payload: { action: string } }) => payload.action === 'login')
  for (const how of ['per_page=1000', 'limit=1000']) {
    expect((await admin.get(`/admin/audit?${how}&query=action:login&${range}`)).body).toEqual(logins)
  }
  expect((await admin.get('/admin/audit?before=2020-01-01')).body).toEqual([])
  for (const wrong of ['from=yesterday', 'before=2026-01-01T10:00', 'from=2026-13-01']) {
    expect((await admin.get(`/admin/audit?${wrong}`)).status).toBe(400)
  }
})

test('an export has all entries that the query finds, as JSON lines or as CSV without formulas', async () => {
  const { pool } = service.deps
  onTestFinished(async () => void (await pool.query(`delete from audit_log_entries where ip_address = 'exported'`)))
  const from = new Date(service.clock.now().getTime() + 1_000).toISOString()
  const insert = (payload: object, count: number) =>
    pool.query(
      `insert into audit_log_entries (id, payload, created_at, ip_address)
        select gen_random_uuid(), $1, $2::timestamptz - n * interval '1 min', 'exported' from generate_series(0, $3) n`,
      [payload, from, count - 1],
    )
  await insert({ action: 'logout', actor_id: '' }, 2_500)
  await insert({ action: 'login', actor_id: '', user_agent: '=HYPERLINK("https://evil.example"),x' }, 1)
  const { rows } = await pool.query('select id from audit_log_entries order by created_at desc, id')
  const { status, headers, text } = await admin.get('/admin/audit/export')
  expect([status, headers['content-type']]).toEqual([200, 'application/x-ndjson'])
  expect(headers['content-disposition']).toBe('attachment; filename="audit.jsonl"')
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines.map(({ id }) => id)).toEqual(rows.map(({ id }) => id))
  const { body: listed } = await admin.get('/admin/audit?per_page=1')
  expect(lines[0]).toEqual(listed[0])

  const csv = await admin.get(`/admin/audit/export?format=csv&from=${from}&query=action:login`)
  expect(csv.headers['content-type']).toBe('text/csv; charset=utf-8')
  const [names, entry] = csv.text.split('\r\n')
  expect(names).toBe(
    '"id","created_at","action","actor_id","actor_username","user_id","ip_address","user_agent","via","traits"',
  )
  expect(entry).toContain(`"'=HYPERLINK(""https://evil.example""),x"`)
  for (const wrong of ['format=xml', 'query=x', 'from=x']) {
    expect((await admin.get(`/admin/audit/export?${wrong}`)).status).toBe(400)
  }
})
