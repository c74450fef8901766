// Changes, days and sessions of a token, for administrators.
import { expect } from 'vitest'
import { type TestService, test } from '../../../test/service.ts'

const as = (service: TestService, token: string, method: string, path: string, body?: object) =>
  service.call(method, path, {
    headers: { token, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })

const SCRIPT = { 'sec-fetch-site': 'same-origin', 'x-media': '1' }

test('the use of a token is listed by day, 400 days at most', async ({ service }) => {
  const { token } = await service.newToken({ scopes: ['admin'] })
  const { id } = await service.newToken()
  const days = ['2024-01-01', '2026-10-01', '2026-10-02']
  for (const [n, day] of days.entries()) {
    await service.deps.pool.query('insert into token_days values ($1, $2, $3, $4, $5)', [id, day, n + 1, n, 10 * n])
  }
  const usage = (query: string) => as(service, token, 'GET', `/tokens/${id}/usage${query}`)
  expect((await usage('?from=2026-10-01&to=2026-10-31')).body.success).toEqual({
    days: [
      { day: '2026-10-01', requests: 2, clips: 1, bytes: 10 },
      { day: '2026-10-02', requests: 3, clips: 2, bytes: 20 },
    ],
  })
  expect((await usage('?from=2026-10-02&to=2026-10-02')).body.success.days).toHaveLength(1)
  for (const query of ['?from=2025-01-01&to=2026-10-02', '?to=x']) expect((await usage(query)).status).toBe(422)
})

test('the sessions of a token are listed without their cookies, and end at once', async ({ service }) => {
  const admin = await service.newToken({ scopes: ['admin'] })
  const { token, id } = await service.newToken()
  const signedIn = async () => {
    const { headers } = await service.call('POST', '/session', { headers: { ...SCRIPT, token } })
    return headers.getSetCookie()[0]?.split(';')[0] ?? ''
  }
  const [one, two] = [await signedIn(), await signedIn()]
  const sessions = () => as(service, admin.token, 'GET', `/tokens/${id}/sessions`)
  const { body, text } = await sessions()
  expect(body.success.items).toHaveLength(2)
  expect(Object.keys(body.success.items[0])).toEqual(['client_name', 'created_at', 'last_used_at', 'expires_at'])
  for (const cookie of [one, two]) expect(text).not.toContain(cookie.split('=')[1])
  const ended = await as(service, admin.token, 'DELETE', `/tokens/${id}/sessions`)
  expect([ended.status, ended.body.success]).toEqual([200, { ended: 2 }])
  expect((await sessions()).body.success.items).toEqual([])
  const { status } = await service.get('/media', { cookie: one, 'sec-fetch-site': 'same-origin' })
  expect(status).toBe(401)
  expect((await service.get('/media', { token })).status).toBe(200)
})

test('name, scopes, limits and lifetime are changed each for itself', async ({ service }) => {
  const admin = await service.newToken({ scopes: ['admin'] })
  const { id } = await service.newToken({ limits: { upload: 5 } })
  const change = (body: object) => as(service, admin.token, 'PATCH', `/tokens/${id}`, body)
  expect((await change({ name: 'ci' })).body.success).toMatchObject({ name: 'ci', limits: { upload: 5 } })
  expect((await change({ limits: {}, scopes: ['read'] })).body.success).toMatchObject({ limits: {}, scopes: ['read'] })
  const expires = new Date(service.clock.now().getTime() + 60_000).toISOString()
  expect((await change({ expires_in: 60 })).body.success.expires_at).toBe(expires)
  expect((await change({ expires_in: null })).body.success.expires_at).toBeNull()
  for (const body of [{}, { name: ' ' }, { scopes: [] }, { limits: { reed: 1 } }, { expires_in: 'soon' }]) {
    expect((await change(body)).status).toBe(422)
  }
  await as(service, admin.token, 'DELETE', `/tokens/${id}`)
  expect((await change({ name: 'late' })).status).toBe(404)
})

test('tokens are listed page by page, newest first', async ({ service }) => {
  const admin = await service.newToken({ scopes: ['admin'] })
  const made = (await service.newToken()).id
  const { rows } = await service.deps.pool.query('select count(*)::int as n from api_tokens')
  const seen: string[] = []
  for (let cursor = ''; ; ) {
    const { success } = (await as(service, admin.token, 'GET', `/tokens?limit=2${cursor}`)).body
    seen.push(...success.items.map((item: { id: string }) => item.id))
    if (!success.next_cursor) break
    cursor = `&cursor=${success.next_cursor}`
  }
  expect([seen.length, new Set(seen).size, seen.includes(made)]).toEqual([rows[0].n, rows[0].n, true])
})

test.for([
  ['GET', 'usage'],
  ['GET', 'sessions'],
  ['DELETE', 'sessions'],
] as const)(
  '%s /tokens/{id}/%s is 404 for unknown tokens, and 403 without the scope',
  async ([method, what], { service }) => {
    const admin = await service.newToken({ scopes: ['admin'] })
    const usual = await service.newToken()
    for (const id of ['x', crypto.randomUUID()]) {
      expect((await as(service, admin.token, method, `/tokens/${id}/${what}`)).status).toBe(404)
    }
    expect((await as(service, usual.token, method, `/tokens/${usual.id}/${what}`)).status).toBe(403)
  },
)
