// Pushed requests (RFC 9126).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { queryOf, startTestService, type TestService } from '../../../../test/service.ts'
import { authorizePath, CALLBACK, oauthSettings, type Parameters, registered } from '../testing/applications.ts'
import { basicOf } from '../testing/clients.ts'

let service: TestService
let client: { clientId: string; basic: { authorization: string } }
beforeAll(async () => {
  service = await startTestService(await oauthSettings())
  client = await known()
})
afterAll(() => service.close())

async function known(metadata: object = {}) {
  const { clientId, secret = '' } = await registered(service, metadata)
  return { clientId, basic: basicOf(clientId, secret) }
}

/** Pushes the parameters of a request, but its client. */
function push(parameters: Parameters = {}, headers = client.basic) {
  const [, query] = authorizePath('', { client_id: undefined, ...parameters }).split('?')
  return service.submit('/oauth/par', Object.fromEntries(new URLSearchParams(query)), headers)
}

const begin = (clientId: string, request_uri: string, more: Record<string, string> = {}) =>
  service.get(`/oauth/authorize?${new URLSearchParams({ client_id: clientId, request_uri, ...more })}`)

const UNKNOWN = {
  status: 400,
  body: { error_code: 'validation_failed', msg: 'request_uri is unknown, expired or used' },
}

test('a pushed request is begun by its name, once, and its own parameters count', async () => {
  const { status, body, headers } = await push({ scope: 'email phone', state: 'pushed' })
  expect([status, headers['cache-control']]).toEqual([201, 'no-store'])
  expect(body).toEqual({
    ...{ request_uri: expect.stringMatching(/^urn:ietf:params:oauth:request_uri:[A-Za-z0-9]{32}$/), expires_in: 60 },
  })
  const answer = await begin(client.clientId, body.request_uri, {
    scope: 'profile',
    redirect_uri: 'https://evil.example',
  })
  expect(answer.status).toBe(302)
  const { rows } = await service.deps.pool.query('select * from oauth_authorizations where id = $1', [
    queryOf(answer).authorization_id,
  ])
  expect(rows).toMatchObject([
    {
      ...{ status: 'pending', scopes: ['email', 'phone'], state: 'pushed', redirect_uri: CALLBACK },
      expires_at: new Date(service.clock.now().getTime() + 600_000),
    },
  ])
  expect(await begin(client.clientId, body.request_uri)).toMatchObject(UNKNOWN)
})

test('of ten browsers at once on two replicas one begins it', async () => {
  const replica = await service.with({})
  const { body } = await push()
  const path = `/oauth/authorize?${new URLSearchParams({ client_id: client.clientId, request_uri: body.request_uri })}`
  const answers = await Promise.all(Array.from({ length: 10 }, (_, index) => (index % 2 ? replica : service).get(path)))
  expect(answers.filter(({ status }) => status === 302).length).toBe(1)
  await replica.close()
})

test('after a minute, or by another client, it is unknown; no user sees it before it is begun', async () => {
  const other = await known()
  const { body } = await push()
  expect(await begin(other.clientId, body.request_uri)).toMatchObject(UNKNOWN)
  const { auth } = await service.signedIn()
  const id = body.request_uri.split(':').at(-1)
  expect((await service.get(`/oauth/authorizations/${id}`, auth)).status).toBe(404)
  service.clock.advance({ seconds: 60 })
  expect(await begin(client.clientId, body.request_uri)).toMatchObject(UNKNOWN)
})

test('a name of no form is unknown too', async () => {
  for (const name of ['urn:x', 'urn:ietf:params:oauth:request_uri:\0']) {
    expect(await begin(client.clientId, name)).toMatchObject(UNKNOWN)
  }
})

test.each<[string, Parameters, string, string]>([
  ['an unknown scope', { scope: 'x' }, 'invalid_scope', 'unsupported scope: x'],
  ['another address', { redirect_uri: 'https://evil.example' }, 'invalid_request', 'invalid redirect_uri'],
  [
    'no challenge',
    { code_challenge: undefined },
    'invalid_request',
    'PKCE flow requires both code_challenge and code_challenge_method',
  ],
  ['a name of another request', { request_uri: 'urn:x' }, 'invalid_request', 'request_uri must not be pushed'],
])('%s is refused where it is pushed', async (_, parameters, error, error_description) => {
  expect(await push(parameters)).toMatchObject({ status: 400, body: { error, error_description } })
})

test('a client without its secret pushes nothing', async () => {
  expect(await push({}, basicOf(client.clientId, 'wrong'))).toMatchObject({
    status: 401,
    body: { error: 'invalid_client' },
  })
})

test('a client that must push is refused at the browser', async () => {
  const strict = await known({ require_pushed_authorization_requests: true })
  expect(queryOf(await service.get(authorizePath(strict.clientId)))).toMatchObject({
    ...{ error: 'invalid_request', error_description: 'this client must push its requests', state: 'st' },
  })
  const { body } = await push({}, strict.basic)
  expect((await begin(strict.clientId, body.request_uri)).status).toBe(302)
})

test('a faulty moment goes back with the state that was pushed', async () => {
  const { body } = await push({ prompt: 'none', state: 'pushed' })
  expect(queryOf(await begin(client.clientId, body.request_uri))).toMatchObject({
    ...{ error: 'interaction_required', state: 'pushed', iss: 'https://auth.example' },
  })
})
