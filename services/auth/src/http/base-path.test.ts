import { expect } from 'vitest'
import { test } from '../../test/service.ts'

const BASE = 'https://host.example/auth/v1'

test('below the path of the external address the service answers as below /', async ({ service }) => {
  const below = await service.with({ AUTH_API_EXTERNAL_URL: `${BASE}/` })
  for (const prefix of ['', '/auth/v1']) {
    expect(await below.get(`${prefix}/health`)).toMatchObject({ status: 200, body: { name: expect.any(String) } })
    expect((await below.get(`${prefix}/settings?x=1`)).status).toBe(200)
    expect((await below.get(`${prefix}/user`)).status).toBe(401)
    expect((await below.get(`${prefix}/admin/users`, below.admin)).status).toBe(200)
    expect((await below.get(`${prefix}/nothing`)).status).toBe(404)
    const link = await below.get(`${prefix}/verify?type=signup&token=x&redirect_to=https://site.example/a`)
    expect([link.status, String(link.headers.location).split('#')[0]]).toEqual([303, 'https://site.example/a'])
  }
  expect((await below.get('/auth/v1', { accept: 'text/html' })).status).toBe(200)
  for (const path of ['/auth/v1x/health', '/auth/health', '/auth/v1/auth/v1/health', '/AUTH/v1/health']) {
    expect([path, (await below.get(path)).status]).toEqual([path, 404])
  }
  await below.close()
})

test('without a path in the external address nothing is taken off', async ({ service }) => {
  expect((await service.get('/auth/v1/health')).status).toBe(404)
})

test('a path that begins like a route of ours leaves the route what it is', async ({ service }) => {
  const odd = await service.with({ AUTH_API_EXTERNAL_URL: 'https://host.example/admin' })
  expect((await odd.get('/admin/users', odd.admin)).status).toBe(200)
  expect((await odd.get('/admin/health')).status).toBe(404)
  await odd.close()
})

test.for(['traceparent', 'tracestate', 'baggage', 'x-retry-count', 'apikey'])(
  'a preflight allows browsers to send %s',
  async (header, { service }) => {
    const answer = await service.app.inject({
      method: 'OPTIONS',
      url: '/token',
      headers: { origin: 'https://app.example', 'access-control-request-method': 'POST' },
    })
    expect(String(answer.headers['access-control-allow-headers']).split(', ')).toContain(header)
  },
)
