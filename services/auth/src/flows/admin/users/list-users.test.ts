import { afterAll, beforeAll, describe, expect, test as plain } from 'vitest'
import { type Admin, asAdmin } from '../../../../test/admin.ts'
import { type Answer, startTestService, type TestService } from '../../../../test/service.ts'

let service: TestService
let admin: Admin
const NAMES = ['ada', 'bob', 'cleo', 'dan', 'eve']

beforeAll(async () => {
  service = await startTestService()
  admin = await asAdmin(service)
  for (const name of NAMES) {
    service.clock.advance({ seconds: 1 })
    const phone = { dan: '4915112345678', eve: '4915112345679' }[name]
    const user_metadata = { full_name: `${name.toUpperCase()} 100%_\\` }
    await admin.create({ email: `${name}@example.com`, ...(phone && { phone }), user_metadata })
  }
  await service.deps.pool.query(`insert into users (id, aud, role, created_at, updated_at)
    select gen_random_uuid(), 'crowd', 'x', now(), now() from generate_series(1, 1001)`)
})
afterAll(() => service.close())

const names = ({ body }: Answer) => body.users.map(({ email }: { email: string }) => email.split('@')[0])
const emails = (answer: Answer) => answer.body.users.map(({ email }: { email: string }) => email)

describe('GET /admin/users by page', () => {
  plain('gives everybody, newest first, with identities, the audience and the count', async () => {
    const answer = await admin.get('/admin/users')
    expect(answer.status).toBe(200)
    expect(names(answer)).toEqual(NAMES.toReversed())
    expect(answer.body.aud).toBe('authenticated')
    expect(answer.body).not.toHaveProperty('pagination')
    for (const { identities } of answer.body.users) expect(identities[0]).toMatchObject({ provider: 'email' })
    expect(answer.headers).toMatchObject({ 'x-total-count': '5', link: '</admin/users?page=1>; rel="last"' })
  })

  plain('with nobody in the audience the last page is 0', async () => {
    const { body, headers } = await admin.get('/admin/users', { 'x-jwt-aud': 'nobody-here' })
    expect(body).toEqual({ users: [], aud: 'nobody-here' })
    expect(headers).toMatchObject({ 'x-total-count': '0', link: '</admin/users?page=0>; rel="last"' })
  })

  plain('links to the next and the last page with all parameters, sorted', async () => {
    const answer = await admin.get('/admin/users?sort=created_at+asc&per_page=2&filter=e&page=1')
    expect(names(answer)).toEqual(['ada', 'bob'])
    const at = (page: number) => `/admin/users?filter=e&page=${page}&per_page=2&sort=created_at+asc`
    expect(answer.headers.link).toBe(`<${at(2)}>; rel="next", <${at(3)}>; rel="last"`)
    expect(answer.headers['x-total-count']).toBe('5')
  })

  plain('has no next link on the last page, and pages past it are empty', async () => {
    const last = await admin.get('/admin/users?page=3&per_page=2')
    expect([names(last), last.headers.link]).toEqual([['ada'], '</admin/users?page=3&per_page=2>; rel="last"'])
    const past = await admin.get('/admin/users?page=999999999&per_page=1000')
    expect([names(past), past.headers['x-total-count']]).toEqual([[], '5'])
    const filtered = await admin.get('/admin/users?page=9&per_page=2&filter=a')
    expect([names(filtered), filtered.headers['x-total-count']]).toEqual([[], '5'])
  })

  plain.for([
    ['created_at', NAMES.toReversed()],
    ['created_at desc', NAMES.toReversed()],
    ['created_at asc', NAMES],
    ['', NAMES.toReversed()],
  ] as const)('sort %j', async ([sort, order]) => {
    expect(names(await admin.get(`/admin/users?sort=${encodeURIComponent(sort)}`))).toEqual(order)
  })

  plain('empty page and per_page, as clients send them, are the defaults', async () => {
    expect((await admin.get('/admin/users?page=&per_page=')).body.users).toHaveLength(5)
  })

  plain('per_page above 1000 gives 1000', async () => {
    const { body, headers } = await admin.get('/admin/users?per_page=5000', { 'x-jwt-aud': 'crowd' })
    expect(body.users).toHaveLength(1000)
    expect(headers.link).toBe(
      '</admin/users?page=2&per_page=5000>; rel="next", </admin/users?page=2&per_page=5000>; rel="last"',
    )
  })

  plain('users created in the same instant come on one page each, none twice', async () => {
    const seen = new Set<string>()
    for (let page = 1; page <= 11; page++) {
      const { body } = await admin.get(`/admin/users?page=${page}&per_page=100`, { 'x-jwt-aud': 'crowd' })
      for (const { id } of body.users) seen.add(id)
    }
    expect(seen.size).toBe(1001)
  })

  plain(
    'above 10000 users the total is an estimate, also of a filter, whose pages end with those counted',
    async () => {
      const { pool } = service.deps
      await pool.query(`insert into users (id, aud, role, email, created_at, updated_at)
      select gen_random_uuid(), 'city', 'x', n || '@city.example', now(), now() from generate_series(1, 10150) n`)
      await pool.query('analyze users')
      for (const filter of ['', '&filter=@city']) {
        const page = (number: number) =>
          admin.get(`/admin/users?per_page=100&page=${number}${filter}`, { 'x-jwt-aud': 'city' })
        const { headers } = await page(1)
        expect(headers['x-total-count-estimated']).toBe('true')
        expect(Number(headers['x-total-count'])).toBeGreaterThan(10_000)
        expect(headers.link).toContain(`page=${filter ? 101 : 102}&per_page=100>; rel="last"`)
        const after = await page(101)
        expect(after.body.users).toHaveLength(100)
        const last = await page(102)
        if (filter) {
          expect(after.headers.link).not.toContain('next')
          expect([last.status, last.body.error_code]).toEqual([400, 'validation_failed'])
        } else {
          expect([last.body.users.length, last.headers['x-total-count']]).toEqual([50, '10150'])
          expect(last.headers).not.toHaveProperty('x-total-count-estimated')
        }
      }
    },
  )

  plain('includes anonymous and soft-deleted users', async () => {
    await service.deps.pool.query(`insert into users (id, aud, role, is_anonymous, deleted_at, created_at, updated_at)
      values (gen_random_uuid(), 'odd', 'x', true, null, now(), now()),
             (gen_random_uuid(), 'odd', 'x', false, now(), now(), now())`)
    expect((await admin.get('/admin/users', { 'x-jwt-aud': 'odd' })).body.users).toHaveLength(2)
  })
})

// Section 18: wildcards.
describe('filter', () => {
  plain.for<[string, string[]]>([
    ['ada@', ['ada']],
    ['ADA@', ['ada']],
    ['@Example.COM', NAMES.toReversed()],
    ['4915112345', ['eve', 'dan']],
    ['151 123-456 78', ['dan']],
    ['+49 (151) 1234', ['eve', 'dan']],
    ['+151', []],
    ['15112345679', ['eve']],
    ['a 4915112345', []],
    ['@example.com', NAMES.toReversed()],
    ['cLeO 100', ['cleo']],
    ['%', NAMES.toReversed()],
    ['_', NAMES.toReversed()],
    ['\\', NAMES.toReversed()],
    ['a%a', []],
    ['a_a', []],
    ['d_', []],
    ["'; drop table users; --", []],
  ])('%j finds what holds it, and stands for itself', async ([filter, found]) => {
    const answer = await admin.get(`/admin/users?filter=${encodeURIComponent(filter)}`)
    expect([names(answer), answer.headers['x-total-count']]).toEqual([found, String(found.length)])
  })
})

plain('page 0 is the first one, for callers that count from 0', async () => {
  const [zeroth, first] = [
    await admin.get('/admin/users?page=0&per_page=1'),
    await admin.get('/admin/users?page=1&per_page=1'),
  ]
  expect([zeroth.status, names(zeroth), zeroth.headers.link]).toEqual([200, names(first), first.headers.link])
  expect(zeroth.headers.link).toContain('page=2')
})

// contract/auth-core.md 18, BUG11.
test400([
  'page=-1',
  'page=x',
  'page=1.5',
  'page=1e3',
  'page=99999999999999999999',
  'per_page=0',
  'per_page=x',
  'sort=email',
  'sort=created_at+sideways',
  'sort=created_at;',
  'filter=%00',
  `filter=${'a'.repeat(256)}`,
  'limit=0',
  'limit=x',
  'cursor=x',
])

function test400(queries: string[]) {
  plain.for(queries)('%s is refused', async (query) => {
    const { status, body } = await admin.get(`/admin/users?${query}`)
    expect([status, body.error_code]).toEqual([400, 'validation_failed'])
  })
}

describe('GET /admin/users by cursor', () => {
  plain('walks through everybody once, oldest first', async () => {
    const walked: string[][] = []
    let url: string | undefined = '/admin/users?limit=2'
    while (url) {
      const answer: Answer = await admin.get(url)
      walked.push(names(answer))
      const { next_cursor: next, has_more: hasMore } = answer.body.pagination
      expect(hasMore).toBe(next !== undefined)
      expect(answer.headers).not.toHaveProperty('x-total-count')
      url = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1]
      expect(url).toBe(next && `/admin/users?cursor=${next}&limit=2`)
    }
    expect(walked).toEqual([['ada', 'bob'], ['cleo', 'dan'], ['eve']])
  })

  plain('in the other direction when asked to', async () => {
    const first = await admin.get('/admin/users?limit=3&sort=created_at+desc')
    expect(names(first)).toEqual(['eve', 'dan', 'cleo'])
    const { next_cursor: cursor } = first.body.pagination
    expect(names(await admin.get(`/admin/users?cursor=${cursor}&sort=created_at+desc`))).toEqual(['bob', 'ada'])
  })

  plain('loses nobody among users created within one millisecond', async () => {
    const headers = { 'x-jwt-aud': 'microseconds' }
    await service.deps.pool.query(`insert into users (id, aud, role, created_at, updated_at)
      select gen_random_uuid(), 'microseconds', 'x', timestamptz '2026-01-01 00:00:00' + n * interval '1 microsecond', now()
      from generate_series(1, 20) n`)
    const seen: string[] = []
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const { body }: Answer = await admin.get(`/admin/users?limit=3&cursor=${cursor}`, headers)
      seen.push(...body.users.map(({ id }: { id: string }) => id))
      cursor = body.pagination.next_cursor
    }
    expect([seen.length, new Set(seen).size]).toEqual([20, 20])
  })

  plain('gives way to page and per_page, so that clients of pages notice nothing', async () => {
    const answer = await admin.get('/admin/users?per_page=2&limit=1')
    expect([names(answer), answer.headers['x-total-count']]).toEqual([['eve', 'dan'], '5'])
  })

  plain('gives at most 1000', async () => {
    const { body } = await admin.get('/admin/users?limit=5000', { 'x-jwt-aud': 'crowd' })
    expect([body.users.length, body.pagination.has_more]).toEqual([1000, true])
  })

  const id = '7d9b1a52-6b7c-4b6e-9d0e-0b1c2d3e4f50'
  const created_at = '2026-01-01T00:00:00Z'
  plain.for<[string, unknown]>([
    ['a list', []],
    ['null', null],
    ['a text', 'x'],
    ['no id', { created_at }],
    ['the nil id', { created_at, id: '00000000-0000-0000-0000-000000000000' }],
    ['an id that is none', { created_at, id: 'x' }],
    ['no time', { id }],
    ['the zero time', { created_at: '0001-01-01T00:00:00Z', id }],
    ['a time that is none', { created_at: 'infinity', id }],
    ['month 13', { created_at: '2026-13-01T00:00:00Z', id }],
    ['a number as time', { created_at: 5, id }],
    ['year 10000 in UTC', { created_at: '9999-12-31T23:59:59-23:00', id }],
    ['a cursor without end', { created_at, id, more: 'x'.repeat(1000) }],
  ])('%s is refused as a cursor', async ([, place]) => {
    const cursor = Buffer.from(JSON.stringify(place)).toString('base64url')
    const { status, body } = await admin.get(`/admin/users?cursor=${cursor}`)
    expect([status, body.error_code]).toEqual([400, 'validation_failed'])
  })

  plain.for([
    '2026-02-30T00:00:00Z',
    '2026-01-01T00:00:00.123456+05:30',
    '2026-01-01T24:00:00Z',
    '1900-01-01T00:00:00-23:59',
  ])('a cursor at %s is a place, whatever the database thinks of such a day', async (created_at) => {
    const cursor = Buffer.from(JSON.stringify({ created_at, id })).toString('base64url')
    expect((await admin.get(`/admin/users?cursor=${cursor}`)).status).toBe(200)
  })
})

plain('a filter with letters of every kind is a filter', async () => {
  await admin.create({ email: 'zoe@elsewhere.test', aud: 'names', user_metadata: { full_name: 'Zoë Ångström 😀' } })
  const answer = await admin.get(`/admin/users?filter=${encodeURIComponent('ngström 😀')}`, { 'x-jwt-aud': 'names' })
  expect(emails(answer)).toEqual(['zoe@elsewhere.test'])
})
