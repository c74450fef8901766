// Clients of the OAuth server by the admin API (contract/auth-oauth-server.md 2).
import { createHash, generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'

const PATH = '/admin/oauth/clients'
const CALLBACK = 'https://app.example/callback'
const NOBODY = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ AUTH_OAUTH_SERVER_ENABLED: 'true' })
})
afterAll(() => service.close())

const create = (client: object) => service.post(PATH, client, service.admin)
const created = async (client: object = {}) => (await create({ redirect_uris: [CALLBACK], ...client })).body
const change = (id: string, body: object) => service.put(`${PATH}/${id}`, body, service.admin)
const renew = (id: string) => service.post(`${PATH}/${id}/regenerate_secret`, {}, service.admin)
const refused = (msg: unknown) => ({ status: 400, body: { error_code: 'validation_failed', msg } })
const publicKey = (type: 'ec' | 'rsa', modulusLength = 2048) => {
  const pair =
    type === 'ec' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('rsa', { modulusLength })
  return pair.publicKey.export({ format: 'jwk' })
}
const privateKey = () => generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })

test('a new client is answered with defaults and a secret of 32 bytes, of which the hash alone is kept', async () => {
  const { status, body, headers } = await create({ redirect_uris: [CALLBACK], client_name: 'App', unknown: 'x' })
  expect([status, headers['cache-control']]).toEqual([201, 'no-store'])
  expect(body).toEqual({
    client_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    client_secret: expect.stringMatching(/^[\w-]{43}$/),
    client_type: 'confidential',
    registration_type: 'manual',
    token_endpoint_auth_method: 'client_secret_basic',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    client_name: 'App',
    backchannel_logout_session_required: false,
    frontchannel_logout_session_required: false,
    dpop_bound_access_tokens: false,
    require_pushed_authorization_requests: false,
    role: 'service',
    created_at: service.clock.now().toISOString(),
    updated_at: service.clock.now().toISOString(),
  })
  const { client_secret: secret, ...shown } = body
  expect((await service.get(`${PATH}/${body.client_id}`, service.admin)).body).toEqual(shown)
  expect((await service.get(PATH, service.admin)).body.clients).toContainEqual(shown)
  const { rows } = await service.deps.pool.query('select secret_hash from oauth_clients where id = $1', [
    body.client_id,
  ])
  expect(rows[0].secret_hash).toEqual(createHash('sha256').update(secret).digest())
  const everywhere = await service.deps.pool.query(
    'select oauth_clients::text as text from oauth_clients union all select payload::text from audit_log_entries',
  )
  expect(everywhere.rows.filter(({ text }) => text.includes(secret))).toEqual([])
})

test('every member of the metadata is kept and answered as given', async () => {
  const metadata = {
    token_endpoint_auth_method: 'private_key_jwt',
    token_endpoint_auth_signing_alg: 'ES256',
    jwks: { keys: [publicKey('ec')] },
    redirect_uris: [CALLBACK, 'https://app.example/a,b', 'com.example.app:/cb', 'http://127.0.0.1/cb'],
    post_logout_redirect_uris: ['https://app.example/bye'],
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials', DEVICE],
    scope: 'openid users:read',
    client_name: 'Ünï 😀',
    client_uri: 'https://app.example',
    logo_uri: 'http://app.example/logo.png',
    tos_uri: 'https://app.example/tos',
    policy_uri: 'https://app.example/privacy',
    contacts: ['ops@app.example'],
    backchannel_logout_uri: 'https://app.example/logout',
    backchannel_logout_session_required: true,
    frontchannel_logout_uri: 'https://app.example/signed-out?a=b',
    frontchannel_logout_session_required: true,
    dpop_bound_access_tokens: true,
    require_pushed_authorization_requests: true,
    role: 'billing',
    introspects: ['https://api.example', 'urn:example:reports'],
  }
  const { client_id, ...body } = await created(metadata)
  expect(body).toMatchObject(metadata)
  expect(body).not.toHaveProperty('client_secret')
  expect((await service.get(`${PATH}/${client_id}`, service.admin)).body).toMatchObject(metadata)
})

test.each([
  [{ client_type: 'public' }, 'public', 'none'],
  [{ token_endpoint_auth_method: 'none' }, 'public', 'none'],
  [{ token_endpoint_auth_method: 'client_secret_post' }, 'confidential', 'client_secret_post'],
  [{ client_type: 'confidential' }, 'confidential', 'client_secret_basic'],
])('a client with %j is %s with %s', async (given, client_type, token_endpoint_auth_method) => {
  const body = await created(given)
  expect(body).toMatchObject({ client_type, token_endpoint_auth_method })
  expect('client_secret' in body).toBe(client_type === 'confidential')
})

describe('redirect addresses', () => {
  const long = `https://app.example/${'x'.repeat(2048)}`
  test.each([
    [CALLBACK],
    ['https://app.example/cb?tenant=a,b'],
    ['http://localhost:3000/cb'],
    ['http://127.0.0.1/cb'],
    ['http://[::1]:8080/cb'],
    ['com.example.app:/cb'],
    ['com.example.app://cb'],
    ['myapp://callback'],
  ])('%s is taken', async (address) => {
    expect((await created({ redirect_uris: [address] })).redirect_uris).toEqual([address])
  })

  test.each<[string, string]>([
    ['/callback', 'must have a scheme'],
    ['', 'must have visible ASCII characters only'],
    ['https://app.example/cb#x', 'must not have a fragment'],
    ['https://app.example/c b', 'must have visible ASCII characters only'],
    ['https://app.example\\@evil.example/', 'must have visible ASCII characters only'],
    ['https://app.example/\t', 'must have visible ASCII characters only'],
    [long, 'must have at most 2048 characters'],
    ['https:app.example/cb', 'must be a URL of https or http with a host'],
    ['https:///cb', 'must be a URL of https or http with a host'],
    ['https://user:word@app.example/cb', 'must not have a user name or password'],
    ['http://app.example/cb', 'must be https, or http on localhost, 127.0.0.1 or ::1'],
    ['http://localhost.evil.example/cb', 'must be https, or http on localhost, 127.0.0.1 or ::1'],
    ['myapp:/cb', 'must have a host, or a private-use scheme with a dot'],
    ...['javascript:alert(1)', 'JavaScript://a.example/%0aalert(1)', 'data:text/html,x', 'file:///etc/passwd'].map(
      (address): [string, string] => [address, `must not have the scheme ${address.split(':', 1)[0]?.toLowerCase()}`],
    ),
    ...['vbscript:x', 'about:blank', 'blob:https://app.example/x'].map((address): [string, string] => [
      address,
      `must not have the scheme ${address.split(':', 1)[0]}`,
    ]),
  ])('%s is refused', async (address, reason) => {
    const shown = address.slice(0, 200)
    const refusal = refused(`invalid redirect_uri '${shown}': ${reason}`)
    expect(await create({ redirect_uris: [CALLBACK, address] })).toMatchObject(refusal)
    const { client_id } = await created()
    expect(await change(client_id, { redirect_uris: [address] })).toMatchObject(refusal)
  })
})

describe('metadata', () => {
  const secretless = { token_endpoint_auth_method: 'private_key_jwt' }
  const wrong: [object, unknown][] = [
    [{ redirect_uris: [] }, 'redirect_uris is required'],
    [{ redirect_uris: Array(11).fill(CALLBACK) }, 'redirect_uris cannot exceed 10 items'],
    [{ redirect_uris: [1] }, "invalid redirect_uri '1': must be a text"],
    [{ grant_types: [] }, 'grant_types must not be empty'],
    [{ grant_types: ['implicit'] }, expect.stringContaining("grant_types must be of 'authorization_code'")],
    [{ grant_types: ['authorization_code', 'authorization_code'] }, 'grant_types must not repeat one'],
    [{ client_type: 'native' }, "client_type must be of 'public', 'confidential'"],
    [{ token_endpoint_auth_method: 'x' }, expect.stringContaining('token_endpoint_auth_method must be of')],
    [
      { client_type: 'public', token_endpoint_auth_method: 'client_secret_post' },
      "token_endpoint_auth_method 'client_secret_post' contradicts client_type 'public'",
    ],
    [
      { client_type: 'confidential', token_endpoint_auth_method: 'none' },
      "token_endpoint_auth_method 'none' contradicts client_type 'confidential'",
    ],
    [
      { client_type: 'public', grant_types: ['client_credentials'] },
      "grant_types 'client_credentials' contradicts client_type 'public'",
    ],
    [secretless, "token_endpoint_auth_method 'private_key_jwt' requires jwks or jwks_uri"],
    [{ ...secretless, jwks: { keys: [] } }, expect.stringContaining('jwks must be an object with 1 to 10 keys')],
    [{ ...secretless, jwks: { keys: [privateKey()] } }, 'jwks must hold public keys only'],
    [{ ...secretless, jwks: { keys: [{ kty: 'oct', k: 'AA' }] } }, 'jwks must hold public keys only'],
    [{ ...secretless, jwks: { keys: [null] } }, expect.stringContaining('jwks must hold public keys of RSA')],
    [{ ...secretless, jwks: { keys: [publicKey('rsa', 1024)] } }, expect.stringContaining('at least 2048 bits')],
    [
      { ...secretless, jwks: { keys: [publicKey('ec')] }, jwks_uri: 'https://app.example/k' },
      'jwks contradicts jwks_uri',
    ],
    [
      { ...secretless, jwks_uri: 'https://app.example/k', token_endpoint_auth_signing_alg: 'HS256' },
      expect.stringContaining('token_endpoint_auth_signing_alg must be of'),
    ],
    [
      { token_endpoint_auth_signing_alg: 'ES256' },
      "token_endpoint_auth_signing_alg contradicts token_endpoint_auth_method 'client_secret_basic'",
    ],
    [{ client_name: 'x'.repeat(1025) }, 'client_name must be at most 1024 characters long'],
    ...['client_uri', 'logo_uri', 'tos_uri', 'policy_uri', 'jwks_uri', 'backchannel_logout_uri'].map(
      (name): [object, unknown] => [{ [name]: 'javascript:x' }, expect.stringContaining(`${name} must be a URL`)],
    ),
    [{ frontchannel_logout_uri: 'javascript:x' }, expect.stringContaining('frontchannel_logout_uri must be a URL')],
    ...['http://localhost', 'https://app.example:444', 'https://app.example.evil.example', 'https://a.app.example'].map(
      (frontchannel_logout_uri): [object, string] => [
        { frontchannel_logout_uri },
        'frontchannel_logout_uri must have the scheme, host and port of a redirect address',
      ],
    ),
    ...['https://*.example/', 'https://app.example;sandbox/'].map((address): [object, string] => [
      { frontchannel_logout_uri: address, redirect_uris: [address] },
      'frontchannel_logout_uri must have a host of letters, digits, . and -',
    ]),
    ...['jwks_uri', 'backchannel_logout_uri'].map((name): [object, unknown] => [
      { [name]: 'http://app.example' },
      expect.stringContaining(`${name} must be https`),
    ]),
    [{ post_logout_redirect_uris: ['x'] }, "invalid post_logout_redirect_uri 'x': must have a scheme"],
    [{ contacts: [''] }, expect.stringContaining('contacts must be at most 10 texts')],
    [{ contacts: Array(11).fill('a@b.c') }, expect.stringContaining('contacts must be at most 10 texts')],
    [{ role: 'service_role' }, 'role must not be one of AUTH_JWT_ADMIN_ROLES'],
    [{ role: 'a b' }, 'role must have 1 to 63 of a-z, A-Z, 0-9, :, ., _ and -'],
    [{ introspects: ['/api'] }, "invalid introspects '/api': must be an absolute URI"],
    [{ introspects: ['https://api.example#x'] }, expect.stringContaining('must not have a fragment')],
    [{ introspects: ['https://api.example?x'] }, expect.stringContaining('must not have a query')],
    [{ introspects: [1] }, "invalid introspects '1': must be a text"],
    [{ introspects: Array(11).fill('https://api.example') }, 'introspects cannot exceed 10 items'],
    [{ client_type: 'public', introspects: ['https://api.example'] }, "introspects contradicts client_type 'public'"],
    [{ scope: 'openid  email' }, 'scope must be names separated by single spaces'],
    [{ scope: 'openid x' }, 'unknown scope: x'],
    [{ scope: 'x'.repeat(4097) }, 'scope must be at most 4096 characters long'],
  ]

  test.each(wrong.map(([given, text]) => [Object.keys(given).join(' with '), given, text] as const))(
    'of a wrong %s is refused (%#)',
    async (_members, given, text) => {
      expect(await create({ redirect_uris: [CALLBACK], ...given })).toMatchObject(refused(text))
    },
  )

  test('needs no redirect address without authorization_code', async () => {
    const { status, body } = await create({ grant_types: ['client_credentials'] })
    expect([status, body.redirect_uris, body.response_types]).toEqual([201, [], []])
  })
})

test('a change writes the given members alone, and empty text removes one', async () => {
  const before = await created({ client_name: 'App', client_uri: 'https://app.example', contacts: ['a@b.c'] })
  service.clock.advance({ seconds: 1 })
  const { client_secret: _, client_uri: _uri, ...kept } = before
  const { status, body } = await change(before.client_id, { client_name: 'New', client_uri: '' })
  expect([status, body]).toEqual([200, { ...kept, client_name: 'New', updated_at: service.clock.now().toISOString() }])
})

test('a change cannot empty it, turn it into the other type, or contradict it', async () => {
  const { client_id: id } = await created()
  expect(await change(id, {})).toMatchObject(refused('No fields provided for update'))
  expect(await change(id, { unknown: 'x' })).toMatchObject(refused('No fields provided for update'))
  expect(await change(id, { client_type: 'public' })).toMatchObject(refused('client_type cannot change'))
  expect(await change(id, { token_endpoint_auth_method: 'none' })).toMatchObject(
    refused("token_endpoint_auth_method 'none' contradicts client_type 'confidential'"),
  )
  expect(await change(id, { redirect_uris: [] })).toMatchObject(refused('redirect_uris is required'))
  expect(await change(id, { role: 'service_role' })).toMatchObject(refused(expect.stringContaining('role must not be')))
})

test('a secret is replaced, and ends with a method that needs none', async () => {
  const { client_id: id, client_secret } = await created()
  const hash = async () =>
    (await service.deps.pool.query('select secret_hash from oauth_clients where id = $1', [id])).rows[0].secret_hash
  const { status, body, headers } = await renew(id)
  expect([status, headers['cache-control']]).toEqual([200, 'no-store'])
  expect(body.client_secret).not.toBe(client_secret)
  expect(await hash()).toEqual(createHash('sha256').update(body.client_secret).digest())
  await change(id, { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [publicKey('ec')] } })
  expect(await hash()).toBeNull()
  expect(await renew(id)).toMatchObject(refused('Cannot regenerate secret for client of private_key_jwt'))
  const { client_id: open } = await created({ client_type: 'public' })
  expect(await renew(open)).toMatchObject(refused('Cannot regenerate secret for public client'))
})

test('of two changes at once none is lost', async () => {
  const { client_id: id } = await created()
  await Promise.all([change(id, { client_name: 'Both' }), change(id, { client_uri: 'https://both.example' })])
  expect((await service.get(`${PATH}/${id}`, service.admin)).body).toMatchObject({
    ...{ client_name: 'Both', client_uri: 'https://both.example' },
  })
})

test.each([
  ['GET', ''],
  ['PUT', ''],
  ['DELETE', ''],
  ['POST', '/regenerate_secret'],
] as const)('%s of an unknown or malformed id is refused%s', async (method, rest) => {
  const send = async (id: string) => {
    const payload = method === 'PUT' ? { client_name: 'x' } : {}
    const url = `${PATH}/${id}${rest}`
    const answer = await service.app.inject({
      ...{ method, url, headers: service.admin },
      ...(method !== 'GET' && method !== 'DELETE' && { payload }),
    })
    return [answer.statusCode, answer.json().error_code, answer.json().msg]
  }
  expect(await send(NOBODY)).toEqual([404, 'oauth_client_not_found', 'OAuth client not found'])
  expect(await send('x')).toEqual([400, 'validation_failed', 'invalid client_id format'])
})

test('a deleted client is gone', async () => {
  const { client_id: id } = await created()
  expect((await service.delete(`${PATH}/${id}`, service.admin)).status).toBe(204)
  expect((await service.get(`${PATH}/${id}`, service.admin)).status).toBe(404)
})

test('the list has pages, newest first, with their total and links', async () => {
  service.clock.advance({ seconds: 1 })
  await created({ client_name: 'older' })
  service.clock.advance({ seconds: 1 })
  await created({ client_name: 'newer' })
  const { headers, body } = await service.get(`${PATH}?page=1&per_page=2`, service.admin)
  expect(body.clients.map(({ client_name }: { client_name: string }) => client_name)).toEqual(['newer', 'older'])
  expect(Number(headers['x-total-count'])).toBeGreaterThanOrEqual(2)
  expect(headers.link).toContain('rel="next"')
})
