// GET and POST /oauth/authorize (contract/auth-oauth-server.md 4).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { locationOf, queryOf, startTestService, type TestService } from '../../../../test/service.ts'
import {
  authorizePath,
  begun,
  CALLBACK,
  newVerifier,
  oauthSettings,
  type Parameters,
  registered,
} from '../testing/applications.ts'

const NOBODY = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const ISS = 'https://auth.example'
const OWN_SCOPES = [
  { name: 'reports:read', description: 'Read reports' },
  { name: 'plan', description: 'See the plan', default: true },
]

let service: TestService
let clientId: string
beforeAll(async () => {
  service = await startTestService({
    ...(await oauthSettings()),
    AUTH_OAUTH_SERVER_SCOPES: JSON.stringify(OWN_SCOPES),
    AUTH_OAUTH_SERVER_RESOURCES: 'https://api.example,https://mcp.example/sse',
  })
  clientId = (await registered(service)).clientId
})
afterAll(() => service.close())

const row = async (id: string) =>
  (await service.deps.pool.query('select * from oauth_authorizations where id = $1', [id])).rows[0]

test('a request is stored as it was made and leads to the consent page, without a cookie', async () => {
  const { challenge } = newVerifier()
  const answer = await service.get(
    authorizePath(clientId, {
      ...{ scope: 'openid email', nonce: 'n', code_challenge: challenge, prompt: 'login consent', max_age: '60' },
      ...{ login_hint: 'ada@a.example', acr_values: 'aal2', dpop_jkt: challenge, unknown: 'x' },
      resource: ['https://api.example', 'https://mcp.example/sse'],
    }),
  )
  expect([answer.status, answer.headers['set-cookie']]).toEqual([302, undefined])
  expect(answer.headers.location).toMatch(/^https:\/\/site\.example\/consent\?authorization_id=[A-Za-z0-9]{32}$/)
  expect(await row(queryOf(answer).authorization_id as string)).toMatchObject({
    ...{ client_id: clientId, redirect_uri: CALLBACK, response_mode: 'query', state: 'st', nonce: 'n' },
    ...{ scopes: ['openid', 'email'], resources: ['https://api.example', 'https://mcp.example/sse'] },
    ...{ code_challenge: challenge, dpop_thumbprint: challenge, prompt: 'login consent', max_age: 60 },
    ...{ login_hint: 'ada@a.example', acr_values: 'aal2', status: 'pending', user_id: null, code_hash: null },
    expires_at: new Date(service.clock.now().getTime() + 600_000),
  })
})

test('a form of the same parameters leads to the consent page by GET', async () => {
  const form = Object.fromEntries(new URLSearchParams(authorizePath(clientId).split('?')[1]))
  const answer = await service.submit('/oauth/authorize', form)
  expect([answer.status, locationOf(answer)]).toEqual([303, expect.stringContaining('https://site.example/consent?')])
})

describe('until client and address are proven, nothing is redirected', () => {
  test.each<[string, Parameters, string, string]>([
    ['no client', { client_id: undefined }, 'validation_failed', 'client_id is required'],
    ['an empty client', { client_id: '' }, 'validation_failed', 'client_id is required'],
    ['no address', { redirect_uri: undefined }, 'validation_failed', 'redirect_uri is required'],
    ['a client id of no form', { client_id: 'x' }, 'oauth_client_not_found', 'invalid client_id format'],
    [
      'an address with a NUL',
      { client_id: 'https://a.example/\0' },
      'oauth_client_not_found',
      'invalid client_id format',
    ],
    ['an unknown client', { client_id: NOBODY }, 'oauth_client_not_found', 'invalid client_id'],
    ['another address', { redirect_uri: `${CALLBACK}/` }, 'validation_failed', 'invalid redirect_uri'],
    ['two addresses', { redirect_uri: [CALLBACK, CALLBACK] }, 'validation_failed', 'redirect_uri must be given once'],
  ])('%s', async (_, parameters, error_code, msg) => {
    const answer = await service.get(authorizePath(clientId, { client_id: clientId, ...parameters }))
    expect(answer).toMatchObject({ status: 400, body: { error_code, msg } })
    expect(answer.headers).not.toHaveProperty('location')
  })
})

describe('later faults go back to the application, with its state and the issuer', () => {
  const { challenge } = newVerifier()
  test.each<[string, Parameters, string, string]>([
    [
      'response_type=token',
      { response_type: 'token' },
      'unsupported_response_type',
      'only response_type=code is supported',
    ],
    [
      'response_mode=fragment',
      { response_mode: 'fragment' },
      'invalid_request',
      'response_mode must be query or form_post',
    ],
    ['a request object', { request: 'e30.e30.' }, 'request_not_supported', 'Request objects are not supported'],
    ['an unknown scope', { scope: 'email x"y' }, 'invalid_scope', "unsupported scope: x'y"],
    [
      'a scope beyond the client',
      { scope: 'users:read' },
      'invalid_scope',
      'this client may not ask for the scope users:read',
    ],
    [
      'an own scope beyond the client',
      { scope: 'plan' },
      'invalid_scope',
      'this client may not ask for the scope plan',
    ],
    ['a relative resource', { resource: '/api' }, 'invalid_target', 'resource must be an absolute URI'],
    [
      'an unknown resource',
      { resource: 'https://other.example' },
      'invalid_target',
      'unknown resource: https://other.example',
    ],
    [
      'no challenge',
      { code_challenge: undefined },
      'invalid_request',
      'PKCE flow requires both code_challenge and code_challenge_method',
    ],
    [
      'no method',
      { code_challenge_method: undefined },
      'invalid_request',
      'PKCE flow requires both code_challenge and code_challenge_method',
    ],
    ['a plain challenge', { code_challenge_method: 'plain' }, 'invalid_request', 'code_challenge_method must be S256'],
    [
      'a short challenge',
      { code_challenge: challenge.slice(1) },
      'invalid_request',
      'code_challenge must be 43 characters of base64url',
    ],
    ['two scopes', { scope: ['email', 'phone'] }, 'invalid_request', 'scope must be given once'],
    ['a long nonce', { nonce: 'n'.repeat(256) }, 'invalid_request', 'nonce must have at most 255 characters'],
    [
      'an unknown prompt',
      { prompt: 'create' },
      'invalid_request',
      'prompt must be of none, login, consent, select_account',
    ],
    ['prompt=none login', { prompt: 'none login' }, 'invalid_request', 'prompt none must be alone'],
    ['a negative age', { max_age: '-1' }, 'invalid_request', 'max_age must be a number of seconds'],
    ['prompt=none at a page of the application', { prompt: 'none' }, 'interaction_required', 'The user must be asked'],
  ])('%s', async (_, parameters, error, error_description) => {
    const answer = await service.get(authorizePath(clientId, parameters))
    expect([answer.status, locationOf(answer).startsWith(`${CALLBACK}?`)]).toEqual([302, true])
    expect(queryOf(answer)).toEqual({ error, error_description, state: 'st', iss: ISS })
  })

  test('a client without authorization codes', async () => {
    const grants = { grant_types: ['client_credentials'] }
    const machine = await registered(service, grants)
    expect(queryOf(await service.get(authorizePath(machine.clientId)))).toMatchObject({ error: 'unauthorized_client' })
  })

  test('openid without a key that verifiers can find', async () => {
    const symmetric = await service.with({ AUTH_JWT_KEYS: '' })
    expect(queryOf(await symmetric.get(authorizePath(clientId, { scope: 'openid' })))).toMatchObject({
      ...{ error: 'invalid_scope', error_description: 'openid needs a key in AUTH_JWT_KEYS' },
    })
    await symmetric.close()
  })

  test('a query of the address stays', async () => {
    const redirect_uri = 'https://app.example/cb?tenant=a,b'
    const other = await registered(service, { redirect_uris: [redirect_uri] })
    const answer = await service.get(authorizePath(other.clientId, { redirect_uri, scope: 'nothing' }))
    expect(locationOf(answer)).toMatch(/^https:\/\/app\.example\/cb\?tenant=a,b&error=invalid_scope&/)
  })
})

test('to an application that registered itself a fault leads by a press alone', async () => {
  const { clientId: stranger } = await registered(service)
  await service.deps.pool.query(`update oauth_clients set registration_type = 'dynamic' where id = $1`, [stranger])
  for (const response_mode of ['query', 'form_post']) {
    const { status, headers, text } = await service.get(authorizePath(stranger, { scope: 'x', response_mode }))
    expect([status, headers.location]).toEqual([200, undefined])
    expect(text).toMatch(/(href|action)="https:\/\/app\.example\/callback/)
    expect(text).not.toMatch(/http-equiv="refresh"|<script/)
  }
})

describe('scopes', () => {
  const scopesOf = async (client: object, parameters: Parameters) => {
    const { clientId } = await registered(service, client)
    return (await row(await begun(service, clientId, parameters))).scopes
  }

  test('without any the default ones within the registration are asked for', async () => {
    expect(await scopesOf({}, { scope: undefined })).toEqual(['email'])
    expect(await scopesOf({ scope: 'openid plan email' }, { scope: undefined })).toEqual(['email', 'plan'])
  })

  test('a client asks for scopes of its registration, and each counts once', async () => {
    const scope = 'users:read reports:read'
    expect(await scopesOf({ scope }, { scope: `${scope} users:read` })).toEqual(['users:read', 'reports:read'])
  })
})

describe('an address on loopback', () => {
  const redirect_uris = ['http://127.0.0.1/cb', 'http://localhost:3000/cb?a=b', 'http://[::1]:1/']
  test.each([
    ['http://127.0.0.1:49152/cb', 302],
    ['http://localhost/cb?a=b', 302],
    ['http://[::1]:8080/', 302],
    ['http://127.0.0.1:49152/cb/', 400],
    ['http://127.0.0.1:49152@evil.example/cb', 400],
    ['http://127.0.0.1:/cb', 400],
    ['http://127.0.0.1:65536/cb', 400],
    ['https://127.0.0.1:49152/cb', 400],
    ['http://localhost:49152/cb', 400],
  ])('%s answers %i', async (redirect_uri, status) => {
    const native = await registered(service, { redirect_uris, client_type: 'public' })
    expect((await service.get(authorizePath(native.clientId, { redirect_uri }))).status).toBe(status)
  })
})

test('an address has a limit of requests', async () => {
  const limited = await service.with({ AUTH_RATE_LIMIT_HEADER: 'x-real-ip', AUTH_RATE_LIMIT_TOKEN_REFRESH: '1' })
  const from = (ip: string) => limited.get(authorizePath(clientId), { 'x-real-ip': ip })
  expect((await from('192.0.2.1')).status).toBe(302)
  expect((await from('192.0.2.1')).status).toBe(429)
  expect((await from('192.0.2.2')).status).toBe(302)
  await limited.close()
})

test('while the server is disabled there is nothing', async () => {
  const off = await service.with({ AUTH_OAUTH_SERVER_ENABLED: 'false' })
  expect(await off.get(authorizePath(clientId))).toMatchObject({
    ...{ status: 404, body: { error_code: 'feature_disabled', msg: 'OAuth server is disabled' } },
  })
  await off.close()
})
