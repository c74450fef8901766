// Dynamic registration of clients (RFC 7591; docs/contract/auth-oauth-server.md).
import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { findClient } from '../../../core/oauth-server/find-client.ts'
import { touchClient } from '../../../core/oauth-server/oauth-clients.store.ts'
import { deleteExpired } from '../../../housekeeping.ts'

const PATH = '/oauth/clients/register'
const CALLBACK = 'https://app.example/callback'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    AUTH_OAUTH_SERVER_ENABLED: 'true',
    AUTH_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true',
    AUTH_WORKERS_ENABLED: 'false',
  })
})
afterAll(() => service.close())
beforeEach(() => service.deps.pool.query('delete from oauth_clients'))

const register = (client: object, headers: Record<string, string> = {}, at = service) => at.post(PATH, client, headers)
const registered = async (client: object = { redirect_uris: [CALLBACK] }) => {
  const { status, body } = await register(client)
  expect(status).toBe(201)
  return body
}
const ids = async () =>
  (await service.deps.pool.query('select id from oauth_clients order by created_at')).rows.map(({ id }) => id)

test('a client registers itself: the answer has its secret, and administrators see it', async () => {
  const asked = { redirect_uris: [CALLBACK], client_name: 'App', contacts: ['ops@app.example'], scope: 'openid email' }
  const { status, body, headers } = await register({ ...asked, software_id: 'x', introspects: [], role: 'admin' })
  expect([status, headers['cache-control']]).toEqual([201, 'no-store'])
  expect(body).toMatchObject({
    ...asked,
    client_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    client_secret: expect.stringMatching(/^[\w-]{43}$/),
    client_id_issued_at: Math.floor(service.clock.now().getTime() / 1000),
    client_secret_expires_at: 0,
    registration_type: 'dynamic',
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    role: 'service',
  })
  expect(body).not.toHaveProperty('software_id')
  const { body: shown } = await service.get(`/admin/oauth/clients/${body.client_id}`, service.admin)
  expect(shown).toMatchObject({ ...asked, registration_type: 'dynamic' })
  const { rows } = await service.deps.pool.query(
    'select payload from audit_log_entries order by created_at desc limit 1',
  )
  expect(rows[0].payload).toMatchObject({
    action: 'oauth_client_created',
    traits: { client_id: body.client_id, kind: 'dynamic', fields: expect.arrayContaining(Object.keys(asked)) },
  })
})

test.each<[string[], string]>([
  [['http://127.0.0.1/cb', 'com.example.app:/cb'], 'none'],
  [['http://localhost:3000/cb'], 'none'],
  [['http://[::1]/cb', CALLBACK], 'client_secret_basic'],
])('the addresses %j alone mean the method %s', async (redirect_uris, method) => {
  const body = await registered({ redirect_uris })
  expect([body.token_endpoint_auth_method, 'client_secret' in body]).toEqual([method, method !== 'none'])
  expect(await registered({ redirect_uris, token_endpoint_auth_method: 'client_secret_post' })).toMatchObject({
    token_endpoint_auth_method: 'client_secret_post',
    client_secret: expect.any(String),
  })
})

const publicKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })

test('a client with keys of its own gets no secret', async () => {
  const keys = { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [publicKey] } }
  expect(await registered({ redirect_uris: [CALLBACK], ...keys })).not.toHaveProperty('client_secret')
})

const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)])

test.each<[string, object, string, RegExp]>([
  ['no address', {}, 'invalid_redirect_uri', /^redirect_uris is required$/],
  [
    'a script',
    { redirect_uris: ['javascript:alert(1)'] },
    'invalid_redirect_uri',
    /must not have the scheme javascript/,
  ],
  ['plain http', { redirect_uris: ['http://app.example/cb'] }, 'invalid_redirect_uri', /must be https/],
  ['eleven addresses', { redirect_uris: Array(11).fill(CALLBACK) }, 'invalid_redirect_uri', /cannot exceed 10/],
  ['a logo of script', { logo_uri: 'javascript:x' }, 'invalid_client_metadata', /^logo_uri must be a URL/],
  ['a sign-out to a script', { post_logout_redirect_uris: ['data:,x'] }, 'invalid_client_metadata', /post_logout/],
  ['another type', { redirect_uris: CALLBACK }, 'invalid_client_metadata', /./],
  ['machine tokens', { grant_types: ['client_credentials'] }, 'invalid_client_metadata', /by administrators alone/],
  [
    'users of the service',
    { scope: 'openid users:read' },
    'invalid_client_metadata',
    /administrators alone: users:read/,
  ],
  ['the account', { scope: 'account:write' }, 'invalid_client_metadata', /administrators alone: account:write/],
  ['a private key', { jwks: { keys: [{ ...publicKey, d: 'AA' }] } }, 'invalid_client_metadata', /public keys only/],
  ['deep JSON', { jwks: { keys: [deep(1000)] } }, 'invalid_client_metadata', /levels/],
])('%s is refused in the form of RFC 7591', async (_what, fault, error, text) => {
  const redirects = error === 'invalid_client_metadata' ? { redirect_uris: [CALLBACK] } : {}
  const { status, body, headers } = await register({ ...redirects, ...fault })
  expect([status, body]).toEqual([400, { error, error_description: expect.stringMatching(text) }])
  expect(headers).not.toHaveProperty('www-authenticate')
  expect(await ids()).toEqual([])
})

test('a body that is no JSON object, or larger than 64 KiB, is refused', async () => {
  const send = (payload: string) => service.app.inject({ method: 'POST', url: PATH, payload })
  for (const [payload, status] of [
    ['{', 400],
    ['[]', 400],
    [JSON.stringify({ redirect_uris: [CALLBACK], x: 'x'.repeat(64 * 1024) }), 413],
  ] as const) {
    const answer = await send(payload)
    expect([answer.statusCode, answer.json().error]).toEqual([status, 'invalid_client_metadata'])
  }
})

describe('disabled', () => {
  test.each([
    ['AUTH_OAUTH_SERVER_ENABLED', 404, 'feature_disabled', 'OAuth server is disabled'],
    [
      'AUTH_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION',
      403,
      'oauth_dynamic_client_registration_disabled',
      'Dynamic client registration is not enabled',
    ],
  ])('by %s it answers so, whatever is sent', async (setting, status, error_code, msg) => {
    const off = await service.with({ [setting]: 'false' })
    expect(await register({ redirect_uris: 1 }, {}, off)).toMatchObject({ status, body: { error_code, msg } })
    await off.close()
  })
})

test('an address registers 30 clients in a quarter of an hour, at replicas together', async () => {
  const limited = { AUTH_RATE_LIMIT_HEADER: 'x-client', AUTH_OAUTH_SERVER_MAX_DYNAMIC_CLIENTS: '100' }
  const replicas = await Promise.all([service.with(limited), service.with(limited)])
  const from = (client: string, n: number) =>
    register({ redirect_uris: [CALLBACK] }, { 'x-client': client }, replicas[n % 2])
  const answers = await Promise.all(Array.from({ length: 32 }, (_, n) => from('192.0.2.1', n)))
  const statuses = answers.map(({ status }) => status).toSorted()
  expect(statuses).toEqual([...Array(30).fill(201), 429, 429])
  expect(answers.find(({ status }) => status === 429)).toMatchObject({
    body: { error: 'temporarily_unavailable' },
    headers: { 'retry-after': expect.stringMatching(/^\d+$/) },
  })
  expect((await from('192.0.2.2', 0)).status).toBe(201)
  service.clock.advance({ seconds: 901 })
  expect((await from('192.0.2.1', 0)).status).toBe(201)
  await Promise.all(replicas.map((replica) => replica.close()))
})

describe('more than OAUTH_SERVER_MAX_DYNAMIC_CLIENTS', () => {
  const few = { AUTH_OAUTH_SERVER_MAX_DYNAMIC_CLIENTS: '2' }

  test('are refused, also to requests at once at two replicas; manual ones do not count', async () => {
    const replicas = await Promise.all([service.with(few), service.with(few)])
    await service.post('/admin/oauth/clients', { redirect_uris: [CALLBACK] }, service.admin)
    const answers = await Promise.all(
      [0, 1, 2, 3].map((n) => register({ redirect_uris: [CALLBACK] }, {}, replicas[n % 2])),
    )
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 429, 429])
    expect(answers.find(({ status }) => status === 429)).toMatchObject({
      body: { error: 'temporarily_unavailable', error_description: expect.stringContaining('Too many clients') },
      headers: { 'retry-after': '3600' },
    })
    expect(await ids()).toHaveLength(3)
    await Promise.all(replicas.map((replica) => replica.close()))
  })

  test('replace those without tokens for an hour, and never one in use', async () => {
    const at = await service.with(few)
    const { client_id: used } = await registered()
    const { client_id: unused } = await registered()
    const client = (await findClient(service.deps, used)) ?? expect.fail('no client')
    await touchClient(service.deps.db, client, service.clock.now())
    service.clock.advance({ seconds: 3_600 })
    expect((await register({ redirect_uris: [CALLBACK] }, {}, at)).status).toBe(429)
    service.clock.advance({ seconds: 1 })
    const { status, body } = await register({ redirect_uris: [CALLBACK] }, {}, at)
    expect(status).toBe(201)
    expect(await ids()).toEqual([used, body.client_id])
    expect(await ids()).not.toContain(unused)
    await at.close()
  })
})

test('clients without tokens for 30 days are deleted, and manual ones never', async () => {
  const { body: manual } = await service.post('/admin/oauth/clients', { redirect_uris: [CALLBACK] }, service.admin)
  const { client_id: used } = await registered()
  await registered()
  service.clock.advance({ seconds: 86_400 })
  const client = (await findClient(service.deps, used)) ?? expect.fail('no client')
  await touchClient(service.deps.db, client, service.clock.now())
  const tidyUp = () => deleteExpired(service.deps, service.deps.log)
  service.clock.advance({ seconds: 29 * 86_400 })
  await tidyUp()
  expect(await ids()).toHaveLength(3)
  service.clock.advance({ seconds: 1 })
  await tidyUp()
  expect((await ids()).toSorted()).toEqual([manual.client_id, used].toSorted())
  service.clock.advance({ seconds: 86_400 })
  await tidyUp()
  expect(await ids()).toEqual([manual.client_id])
})

describe('with OAUTH_SERVER_REGISTRATION_TOKENS', () => {
  const [first, second] = ['a'.repeat(32), 'b'.repeat(32)]
  let guarded: TestService
  beforeAll(async () => {
    guarded = await service.with({ AUTH_OAUTH_SERVER_REGISTRATION_TOKENS: `${first},${second}` })
  })
  afterAll(() => guarded.close())

  test.each([first, second])('each of them registers', async (token) => {
    const headers = { authorization: `Bearer ${token}` }
    expect((await register({ redirect_uris: [CALLBACK] }, headers, guarded)).status).toBe(201)
  })

  test.each([undefined, `Bearer ${'c'.repeat(32)}`, `Basic ${first}`, 'Bearer ', `Bearer ${first},${second}`])(
    '%s does not',
    async (authorization) => {
      const answer = await register({}, authorization === undefined ? {} : { authorization }, guarded)
      expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_token' } })
      expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
    },
  )

  test('a short one stops the start', async () => {
    const short = service.with({ AUTH_OAUTH_SERVER_REGISTRATION_TOKENS: `${first},short` })
    await expect(short).rejects.toThrow('must list tokens of at least 32 characters')
  })
})
