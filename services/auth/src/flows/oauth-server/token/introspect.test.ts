// Introspection (RFC 7662), and tokens of machines (client_credentials).
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type SignedIn, startTestService, type TestService } from '../../../../test/service.ts'
import { oauthSettings, registered } from '../testing/applications.ts'
import { failure, shown, type TestClient } from '../testing/clients.ts'
import { askForTokens, refresh, tokensOf } from '../testing/codes.ts'

const [API, FILES] = ['https://api.example', 'https://files.example'] as const
const POST = { token_endpoint_auth_method: 'client_secret_post' }
const MACHINE = { ...POST, grant_types: ['client_credentials'], redirect_uris: [] }

let service: TestService
let client: TestClient
let server: TestClient
let machine: TestClient
let user: SignedIn
beforeAll(async () => {
  service = await startTestService({
    ...(await oauthSettings()),
    AUTH_OAUTH_SERVER_RESOURCES: `${API},${FILES}`,
    AUTH_OAUTH_SERVER_SCOPES: '[{"name":"reports:read","description":"Read reports"}]',
  })
  client = await registered(service, POST)
  server = await registered(service, { ...MACHINE, introspects: [API] })
  machine = await registered(service, { ...MACHINE, scope: 'email reports:read users:read', role: 'billing' })
  user = await service.signedIn('grace@example.com')
})
afterAll(() => service.close())

const introspect = async (by: TestClient, token: string, at: Pick<TestService, 'submit'> = service) =>
  shown(await at.submit('/oauth/introspect', { client_id: by.clientId, client_secret: by.secret, token }))
const inactive = { status: 200, body: { active: false } }
const begun = (resources: string[] = []) =>
  tokensOf(service, client, user, { scope: 'email offline_access', resource: resources })

test('a client learns the claims of its own tokens', async () => {
  const { access_token: token, claims } = await begun()
  expect(await introspect(client, token)).toEqual({
    status: 200,
    body: { active: true, token_type: 'bearer', ...claims },
  })
})

test('the server of a resource learns the claims of tokens for it, and nothing of others', async () => {
  const [own, both, other, none] = [await begun([API]), await begun([FILES, API]), await begun([FILES]), await begun()]
  expect(await introspect(server, own.access_token)).toMatchObject({
    body: { active: true, sub: user.userId, aud: API },
  })
  expect(await introspect(server, both.access_token)).toMatchObject({ body: { active: true, aud: [FILES, API] } })
  expect(await introspect(server, other.access_token)).toEqual(inactive)
  expect(await introspect(server, none.access_token)).toEqual(inactive)
  expect(await introspect(server, own.refresh_token)).toEqual(inactive)
})

test('the newest refresh token is active for its client', async () => {
  const { refresh_token: first } = await begun()
  expect(await introspect(client, first)).toEqual({
    status: 200,
    body: { active: true, client_id: client.clientId, sub: user.userId, scope: 'email offline_access' },
  })
  const { body } = await refresh(service, client, first)
  expect(await introspect(client, first)).toEqual(inactive)
  expect(await introspect(client, body.refresh_token)).toMatchObject({ body: { active: true } })
})

describe('a token is inactive', () => {
  test('when it is none of a client: of a session of the account, made by hand, an id_token or no token', async () => {
    const { body } = await service.submit('/oauth/token', {})
    expect(body.error).toBe('invalid_request')
    const byHand = service.admin.authorization.slice('Bearer '.length)
    const { refresh_token: _, ...opened } = await tokensOf(service, client, user, { scope: 'openid' })
    const { id_token: idToken } = opened as unknown as { id_token: string }
    for (const token of [user.accessToken, user.refreshToken, byHand, idToken, 'x', 'A'.repeat(55)]) {
      expect(await introspect(client, token)).toEqual(inactive)
      expect(await introspect(server, token)).toEqual(inactive)
    }
  })

  // These advance the clock past the user's token.
  afterAll(async () => {
    user = await service.signedIn('grace@example.com')
  })

  const ended: Record<string, (signedIn: SignedIn, token: string, sessionId: string) => Promise<unknown>> = {
    'once it has expired': async () => service.clock.advance({ seconds: 3601 }),
    'once it is revoked': (_user, token) =>
      service.submit('/oauth/revoke', { client_id: client.clientId, client_secret: client.secret, token }),
    'once its user is banned': ({ userId }) =>
      service.put(`/admin/users/${userId}`, { ban_duration: '1h' }, service.admin),
    'once its user is deleted': ({ userId }) => service.delete(`/admin/users/${userId}`, service.admin),
    'once its user has signed out everywhere': ({ auth }) => service.post('/logout', {}, auth),
  }
  test.each(Object.entries(ended))('%s', async (_, end) => {
    const signedIn = await service.signedIn()
    const { access_token: token, sessionId } = await tokensOf(service, client, signedIn)
    expect(await introspect(client, token)).toMatchObject({ body: { active: true } })
    await end(signedIn, token, sessionId)
    expect(await introspect(client, token)).toEqual(inactive)
  })

  test('once its session is past a limit', async () => {
    const limited = await service.with({ AUTH_SESSIONS_INACTIVITY_TIMEOUT: '30m' })
    const { access_token: token } = await tokensOf(service, client, await service.signedIn())
    expect(await introspect(client, token, limited)).toMatchObject({ body: { active: true } })
    service.clock.advance({ seconds: 1801 })
    expect(await introspect(client, token, limited)).toEqual(inactive)
    expect(await introspect(client, token)).toMatchObject({ body: { active: true } })
    await limited.close()
  })
})

test('many requests at once, of several clients, get each their own answer', async () => {
  const [own, other] = [await begun([API]), await begun([FILES])]
  const wrong = { ...client, secret: 'wrong' }
  const answers = await Promise.all([
    ...[
      introspect(client, own.access_token),
      introspect(server, own.access_token),
      introspect(wrong, own.access_token),
    ],
    ...[introspect(server, other.access_token), introspect(client, other.access_token), introspect(client, 'x')],
  ])
  expect(answers.map(({ status, body }) => [status, body.active, body.aud])).toEqual([
    ...[
      [200, true, API],
      [200, true, API],
      [401, undefined, undefined],
    ],
    ...[
      [200, false, undefined],
      [200, true, FILES],
      [200, false, undefined],
    ],
  ])
})

test('a public client, a wrong secret, an unknown client and a request without a token are refused', async () => {
  const { access_token: token } = await begun()
  const open = await registered(service, { token_endpoint_auth_method: 'none' })
  expect(shown(await service.submit('/oauth/introspect', { client_id: open.clientId, token }))).toEqual(
    failure(401, 'invalid_client', 'Introspection needs a confidential client'),
  )
  for (const clientId of [client.clientId, '3f2504e0-4f89-41d3-9a0c-0305e82c3301', 'x']) {
    expect(await introspect({ ...client, clientId, secret: 'wrong' }, token)).toEqual(
      failure(401, 'invalid_client', 'Client authentication failed'),
    )
  }
  expect(await introspect(client, '')).toEqual(failure(400, 'invalid_request', 'token is required'))
})

describe('a machine', () => {
  const ask = (form: Record<string, string> = {}, by = machine) =>
    askForTokens(service, by, { grant_type: 'client_credentials', ...form })

  test('gets a token for itself, with its role, without user, session and refresh token', async () => {
    const { status, body, headers } = await ask()
    expect([status, headers['cache-control']]).toEqual([200, 'no-store'])
    expect(body).toEqual({
      ...{ access_token: expect.any(String), token_type: 'bearer', expires_in: 3600 },
      scope: 'reports:read users:read',
    })
    const now = Math.floor(service.clock.now().getTime() / 1000)
    const claims = decodeJwt(body.access_token)
    expect(claims).toEqual({
      ...{ iss: 'https://auth.example', sub: machine.clientId, client_id: machine.clientId, aud: 'authenticated' },
      ...{ iat: now, nbf: now, exp: now + 3600, jti: expect.any(String) },
      ...{ role: 'billing', scope: 'reports:read users:read' },
    })
    expect(await introspect(machine, body.access_token)).toMatchObject({
      body: { active: true, sub: machine.clientId },
    })
    expect(await introspect(client, body.access_token)).toEqual(inactive)
  })

  test('takes fewer scopes and a resource of the operator', async () => {
    const { body } = await ask({ scope: 'reports:read', resource: API })
    expect(decodeJwt(body.access_token)).toMatchObject({ aud: API, scope: 'reports:read' })
    expect(await introspect(server, body.access_token)).toMatchObject({ body: { active: true, aud: API } })
  })

  test.each([
    ['scope', 'messages:read', 'invalid_scope'],
    ['scope', 'email', 'invalid_scope'],
    ['scope', 'unknown', 'invalid_scope'],
    ['resource', 'https://other.example', 'invalid_target'],
    ['resource', 'x', 'invalid_target'],
  ])('is refused %s %s', async (name, value, error) => {
    expect(shown(await ask({ [name]: value }))).toEqual(failure(400, error))
  })

  test('without scopes gets a token without any, and its grant must be registered', async () => {
    expect((await ask({}, server)).body).toMatchObject({ scope: '' })
    expect(shown(await ask({}, client))).toEqual(failure(400, 'unauthorized_client'))
  })

  test('has no active token once it is deleted', async () => {
    const gone = await registered(service, { ...MACHINE, scope: 'users:read' })
    const { body } = await ask({ resource: API }, gone)
    expect(await introspect(server, body.access_token)).toMatchObject({ body: { active: true } })
    await service.delete(`/admin/oauth/clients/${gone.clientId}`, service.admin)
    expect(await introspect(server, body.access_token)).toEqual(inactive)
  })

  test('that gets tokens counts as used, at most once a day', async () => {
    const usedAt = async () => {
      const { rows } = await service.deps.pool.query('select last_used_at from oauth_clients where id = $1', [
        machine.clientId,
      ])
      return rows[0].last_used_at
    }
    await ask()
    const first = await usedAt()
    service.clock.advance({ seconds: 3600 })
    await ask()
    expect(await usedAt()).toEqual(first)
    service.clock.advance({ seconds: 86_400 })
    await ask()
    expect(await usedAt()).toEqual(service.clock.now())
  })
})
