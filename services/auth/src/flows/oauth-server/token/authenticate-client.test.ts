// Authentication of clients, which is the same at all endpoints of the OAuth server.
import { randomUUID } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { registered } from '../testing/applications.ts'
import { basicOf, failure, shown, type TestClient } from '../testing/clients.ts'

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const UNKNOWN = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'

let service: TestService
let basic: TestClient
let post: TestClient
let open: TestClient
let keyed: TestClient
const keys = generateKeyPair('ES256', { extractable: true })
beforeAll(async () => {
  service = await startTestService({ AUTH_OAUTH_SERVER_ENABLED: 'true' })
  const jwk = await exportJWK((await keys).publicKey)
  basic = await registered(service)
  post = await registered(service, { token_endpoint_auth_method: 'client_secret_post' })
  open = await registered(service, { token_endpoint_auth_method: 'none' })
  keyed = await registered(service, { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [jwk] } })
})
afterAll(() => service.close())

/** A request with an unknown token, which is answered 200 if the client is known. */
const ask = async (form: Record<string, string>, headers: Record<string, string> = {}) =>
  service.submit('/oauth/revoke', { token: 'unknown', ...form }, headers)
const asked = async (...given: Parameters<typeof ask>) => shown(await ask(...given))
const known = { status: 200, body: {} }
const unknown = failure(401, 'invalid_client', 'Client authentication failed')

async function assertion(claims: object = {}, { alg = 'ES256', key }: { alg?: string; key?: CryptoKey } = {}) {
  const now = Math.floor(service.clock.now().getTime() / 1000)
  const usual = {
    iss: keyed.clientId,
    sub: keyed.clientId,
    aud: 'https://auth.example',
    jti: randomUUID(),
    exp: now + 60,
  }
  const text = await new SignJWT({ ...usual, ...claims })
    .setProtectedHeader({ alg })
    .sign(key ?? (await keys).privateKey)
  return { client_assertion_type: ASSERTION_TYPE, client_assertion: text }
}

test('each registered method is accepted, in a form and in JSON', async () => {
  expect(await asked({}, basic.basic)).toEqual(known)
  expect(await asked({ client_id: post.clientId, client_secret: post.secret })).toEqual(known)
  expect(await asked({ client_id: open.clientId })).toEqual(known)
  expect(await asked(await assertion())).toEqual(known)
  expect(shown(await service.post('/oauth/revoke', { token: 'unknown', client_id: open.clientId }))).toEqual(known)
})

test('id and secret of a Basic header are decoded as forms are', async () => {
  const { authorization } = basicOf(basic.clientId.replaceAll('-', '%2D'), basic.secret)
  expect(Buffer.from(authorization.slice(6), 'base64').toString()).toContain('%252D')
  const encoded = Buffer.from(`${basic.clientId.replaceAll('-', '%2D')}:${basic.secret}`).toString('base64')
  expect(await asked({}, { authorization: `Basic ${encoded}` })).toEqual(known)
  expect(await asked({}, { authorization: `basic ${encoded}` })).toEqual(known)
})

test('an unknown client is refused as a wrong secret is, and Basic is named only where it may help', async () => {
  for (const authorization of [basicOf(basic.clientId, 'wrong'), basicOf(UNKNOWN, basic.secret), basicOf('x', 'y')]) {
    const answer = await ask({}, authorization)
    expect(shown(answer)).toEqual(unknown)
    expect(answer.headers).toMatchObject({ 'www-authenticate': 'Basic realm="oauth"', 'cache-control': 'no-store' })
  }
  const wrong: Record<string, string>[] = [
    { client_id: post.clientId, client_secret: 'wrong' },
    { client_id: UNKNOWN, client_secret: post.secret },
    { client_id: UNKNOWN },
    { client_id: 'x' },
  ]
  for (const form of wrong) expect(await asked(form)).toEqual(unknown)
})

test.each([
  ['Basic !', 'Basic !'],
  ['Basic without a colon', `Basic ${Buffer.from('abc').toString('base64')}`],
  ['Basic with half an escape', `Basic ${Buffer.from('a%:b').toString('base64')}`],
  ['Basic alone', 'Basic'],
])('%s is refused', async (_, authorization) => {
  expect(await asked({}, { authorization })).toEqual(unknown)
})

test('no client is refused', async () => {
  expect(await asked({})).toEqual(failure(401, 'invalid_client', 'client_id is required'))
})

test('a client proves itself by its registered method alone', async () => {
  const wrong = (registeredFor: string, used: string) =>
    failure(
      401,
      'invalid_client',
      `invalid authentication method: client is registered for '${registeredFor}' but '${used}' was used`,
    )
  expect(await asked({ client_id: basic.clientId, client_secret: basic.secret })).toEqual(
    wrong('client_secret_basic', 'client_secret_post'),
  )
  expect(await asked({}, post.basic)).toEqual(wrong('client_secret_post', 'client_secret_basic'))
  expect(await asked({ client_id: basic.clientId })).toEqual(wrong('client_secret_basic', 'none'))
  expect(await asked({ client_id: open.clientId, client_secret: 'x' })).toEqual(wrong('none', 'client_secret_post'))
  expect(await asked({ client_id: keyed.clientId })).toEqual(wrong('private_key_jwt', 'none'))
})

test('a request by two methods is refused, and one that names two clients', async () => {
  const twice = failure(400, 'invalid_request', 'A client must authenticate by one method')
  expect(await asked({ client_id: basic.clientId, client_secret: basic.secret }, basic.basic)).toEqual(twice)
  expect(await asked({ ...(await assertion()), client_secret: 'x' })).toEqual(twice)
  expect(await asked({ client_id: post.clientId }, basic.basic)).toEqual(unknown)
  expect(await asked({ client_id: open.clientId, ...(await assertion()) })).toEqual(
    failure(401, 'invalid_client', expect.stringContaining("registered for 'none'")),
  )
})

test('a parameter twice, NUL and more than 64 KiB are refused', async () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const send = (payload: string) =>
    service.app
      .inject({ method: 'POST', url: '/oauth/revoke', headers: { ...form, host: 'auth.example' }, payload })
      .then(({ statusCode, json }) => ({ status: statusCode, body: json() }))
  expect(await send(`token=a&token=b&client_id=${open.clientId}`)).toEqual(
    failure(400, 'invalid_request', 'A parameter must not stand twice'),
  )
  expect(await send(`token=a%00&client_id=${open.clientId}`)).toEqual(
    failure(400, 'invalid_request', 'A parameter must not contain NUL'),
  )
  expect(await send(`client_id=${open.clientId}&token=${'x'.repeat(65_536)}`)).toEqual(failure(413, 'invalid_request'))
  const long = { client_id: open.clientId, token: 'x'.repeat(65_536) }
  expect(shown(await service.post('/oauth/revoke', long))).toEqual(failure(413, 'invalid_request'))
})

describe('an assertion of private_key_jwt', () => {
  const seconds = () => Math.floor(service.clock.now().getTime() / 1000)

  test('is accepted once', async () => {
    const once = await assertion({ jti: 'once' })
    expect(await asked(once)).toEqual(known)
    expect(await asked(once)).toEqual(failure(401, 'invalid_client', 'The assertion was used before'))
    expect(await asked(await assertion({ jti: 'once' }))).toMatchObject({ status: 401 })
  })

  test('of 20 at once one is accepted', async () => {
    const once = await assertion()
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(once)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test.each([
    ['the token endpoint', 'https://auth.example/oauth/token'],
    ['this endpoint', 'https://auth.example/oauth/revoke'],
    ['a list of ours', ['https://auth.example', 'https://auth.example/oauth/token']],
  ])('may name %s as its audience', async (_, aud) => {
    expect(await asked(await assertion({ aud }))).toEqual(known)
  })

  test.each<[string, () => object]>([
    ['another audience', () => ({ aud: 'https://other.example' })],
    ['another audience beside ours', () => ({ aud: ['https://auth.example', 'https://other.example'] })],
    ['another issuer', () => ({ iss: 'https://other.example' })],
    ['another subject', () => ({ sub: basic.clientId })],
    ['no id', () => ({ jti: undefined })],
    ['no end', () => ({ exp: undefined })],
    ['an end in the past', () => ({ exp: seconds() - 60 })],
    ['a beginning in the future', () => ({ nbf: seconds() + 60 })],
    ['an end in more than five minutes', () => ({ exp: seconds() + 400 })],
  ])('with %s is refused', async (_, claims) => {
    expect(await asked({ client_id: keyed.clientId, ...(await assertion(claims())) })).toEqual(
      failure(401, 'invalid_client'),
    )
  })

  test('by another key, without a signature or of no form is refused', async () => {
    const { privateKey } = await generateKeyPair('ES256')
    expect(await asked(await assertion({}, { key: privateKey }))).toEqual(unknown)
    const { client_assertion: signed = '' } = await assertion()
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${signed.split('.')[1]}.`
    for (const text of [none, 'x', `${signed}x`]) {
      const form = { client_id: keyed.clientId, client_assertion_type: ASSERTION_TYPE, client_assertion: text }
      expect(await asked(form)).toEqual(unknown)
    }
    expect(await asked({ client_assertion: signed, client_assertion_type: 'x' })).toEqual(
      failure(400, 'invalid_request', `client_assertion_type must be ${ASSERTION_TYPE}`),
    )
  })

  test('in another algorithm than the registered one is refused', async () => {
    const path = `/admin/oauth/clients/${keyed.clientId}`
    await service.put(path, { token_endpoint_auth_signing_alg: 'ES384' }, service.admin)
    expect(await asked(await assertion())).toEqual(unknown)
    await service.put(path, { token_endpoint_auth_signing_alg: 'ES256' }, service.admin)
    expect(await asked(await assertion())).toEqual(known)
  })
})

test('a replaced secret and a deleted client are refused at once', async () => {
  const client = await registered(service)
  await service.post(`/admin/oauth/clients/${client.clientId}/regenerate_secret`, {}, service.admin)
  expect(await asked({}, client.basic)).toEqual(unknown)
  await service.delete(`/admin/oauth/clients/${open.clientId}`, service.admin)
  expect(await asked({ client_id: open.clientId })).toEqual(unknown)
})

test('failures count against the address, and requests of clients that registered themselves', async () => {
  const header = { AUTH_RATE_LIMIT_HEADER: 'x-client-ip', AUTH_RATE_LIMIT_TOKEN_REFRESH: '3' }
  const limited = await service.with(header)
  const statuses: number[] = []
  for (const id of [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]) {
    const form = { token: 'unknown', client_id: id }
    statuses.push((await limited.submit('/oauth/revoke', form, { 'x-client-ip': '192.0.2.1' })).status)
  }
  expect(statuses).toEqual([401, 401, 401, 429])
  const other = { ...basic.basic, 'x-client-ip': '192.0.2.1' }
  expect(shown(await limited.submit('/oauth/revoke', { token: 'unknown' }, other))).toEqual(known)
  const own = await registered(service)
  await service.deps.pool.query(`update oauth_clients set registration_type = 'dynamic' where id = $1`, [own.clientId])
  const headers = { ...own.basic, 'x-client-ip': '192.0.2.2' }
  for (const path of ['/oauth/revoke', '/oauth/introspect', '/oauth/token', '/oauth/token'])
    statuses.push((await limited.submit(path, { token: 'unknown', grant_type: 'refresh_token' }, headers)).status)
  expect(statuses.slice(4)).toEqual([200, 200, 400, 429])
  await limited.close()
})

test('while the server is disabled its endpoints answer as a disabled feature', async () => {
  const off = await service.with({ AUTH_OAUTH_SERVER_ENABLED: 'false' })
  expect((await off.submit('/oauth/revoke', { token: 'x' })).body).toMatchObject({
    error_code: 'feature_disabled',
    msg: 'OAuth server is disabled',
  })
  await off.close()
})
