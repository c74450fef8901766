// Codes of approved requests become sessions of their application (contract/auth-oauth-server.md 10).
import { createHash } from 'node:crypto'
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type SignedIn, startTestService, type TestService } from '../../../../test/service.ts'
import { CODE_SECONDS } from '../../../core/oauth-server/authorizations/authorization-code.ts'
import { CALLBACK, oauthSettings, type Parameters, registered } from '../testing/applications.ts'
import { failure, shown, type TestClient } from '../testing/clients.ts'
import { codeOf, exchange, refresh, tokensOf } from '../testing/codes.ts'

const OPEN = { token_endpoint_auth_method: 'none' }
const POST = { token_endpoint_auth_method: 'client_secret_post' }
const [API, FILES] = ['https://api.example', 'https://files.example']

let service: TestService
let client: TestClient
let user: SignedIn
beforeAll(async () => {
  service = await startTestService({
    ...(await oauthSettings()),
    AUTH_OAUTH_SERVER_RESOURCES: `${API},${FILES}`,
  })
  client = await registered(service, OPEN)
  user = await service.signedIn('ada@example.com')
})
afterAll(() => service.close())

const unusable = failure(400, 'invalid_grant', 'The code is unknown, expired or used')
const sessionOf = async (id: string) => {
  const { rows } = await service.deps.pool.query('select * from sessions where id = $1', [id])
  return rows[0]
}

test('a code gives the tokens of a session of its application, and nothing that its scopes do not open', async () => {
  const code = await codeOf(service, client, user, { scope: 'email offline_access' })
  const { status, body, headers } = await exchange(service, client, code)
  expect([status, headers['cache-control']]).toEqual([200, 'no-store'])
  expect(body).toEqual({
    access_token: expect.any(String),
    refresh_token: expect.stringMatching(/^[\w-]{55}$/),
    token_type: 'bearer',
    expires_in: 3600,
    scope: 'email offline_access',
  })
  const now = Math.floor(service.clock.now().getTime() / 1000)
  const claims = await service.deps.keys.verify(body.access_token, service.clock.now())
  expect(claims).toEqual({
    iss: 'https://auth.example',
    sub: user.userId,
    aud: 'authenticated',
    ...{ iat: now, nbf: now, exp: now + 3600, jti: expect.any(String) },
    ...{ email: 'ada@example.com', email_verified: true, phone: '' },
    ...{ role: 'authenticated', is_anonymous: false, aal: 'aal1' },
    amr: [{ method: 'oauth_provider/authorization_code', timestamp: now }],
    session_id: expect.any(String),
    ...{ client_id: client.clientId, act: { sub: client.clientId } },
    scope: 'email offline_access',
  })
  expect(await sessionOf(String(claims?.session_id))).toMatchObject({
    ...{ user_id: user.userId, oauth_client_id: client.clientId, aal: 'aal1', refresh_counter: 0 },
    ...{ scopes: ['email', 'offline_access'], resources: [], dpop_thumbprint: null },
  })
})

/** A user whose session has had a second factor. */
async function raised(email?: string) {
  const signedIn = await service.signedIn(email)
  await service.deps.pool.query("update sessions set aal = 'aal2' where user_id = $1", [signedIn.userId])
  return signedIn
}

test('the session has the level of the one that approved it', async () => {
  const { claims } = await tokensOf(service, client, await raised())
  expect(claims.aal).toBe('aal2')
})

test('a token without scopes of addresses holds none', async () => {
  const { claims } = await tokensOf(service, client, user, { scope: 'profile' })
  expect(claims).toMatchObject({ email: '', phone: '', scope: 'profile' })
  for (const name of ['user_metadata', 'app_metadata', 'email_verified']) expect(claims).not.toHaveProperty(name)
})

describe('an id_token', () => {
  const opened = async (parameters: Parameters, by = user) => {
    const { body } = await exchange(service, client, await codeOf(service, client, by, parameters))
    return body
  }

  test('names the user, the time and proof of the sign-in, the application and the token', async () => {
    const grace = await raised('grace@example.com')
    const body = await opened({ scope: 'openid email', nonce: 'n-1' }, grace)
    const keys = (await service.get('/.well-known/jwks.json')).body
    const { payload, protectedHeader } = await jwtVerify(body.id_token, createLocalJWKSet(keys), {
      ...{ issuer: 'https://auth.example', audience: client.clientId, currentDate: service.clock.now() },
    })
    const now = Math.floor(service.clock.now().getTime() / 1000)
    expect(protectedHeader).toMatchObject({ alg: 'ES256', typ: 'JWT' })
    expect(payload).toEqual({
      ...{ iss: 'https://auth.example', sub: grace.userId, aud: [client.clientId], client_id: client.clientId },
      ...{ iat: now, exp: now + 3600, auth_time: now, nonce: 'n-1', acr: 'aal2' },
      amr: ['oauth_provider/authorization_code'],
      sid: decodeJwt(body.access_token).session_id,
      at_hash: createHash('sha256').update(body.access_token).digest().subarray(0, 16).toString('base64url'),
      ...{ email: 'grace@example.com', email_verified: true },
    })
  })

  test('needs the scope openid, and has no nonce where none was sent', async () => {
    expect(await opened({ scope: 'email', nonce: 'n-1' })).not.toHaveProperty('id_token')
    const { id_token: text } = await opened({ scope: 'openid' })
    expect(decodeJwt(text)).not.toHaveProperty('nonce')
    expect(decodeJwt(text)).not.toHaveProperty('email')
  })

  test('is no access token', async () => {
    const { id_token: text } = await opened({ scope: 'openid' })
    expect(await service.get('/user', { authorization: `Bearer ${text}` })).toMatchObject({ status: 403 })
  })
})

describe('a refresh token', () => {
  const given = async (metadata: object, scope: string) => {
    const own = await registered(service, { ...OPEN, ...metadata })
    const { body } = await exchange(service, own, await codeOf(service, own, user, { scope }))
    return 'refresh_token' in body
  }
  test.each<[boolean, string, object, string]>([
    [true, 'is registered without scopes', {}, 'email'],
    [false, 'is registered with scopes, and asks for none of offline use', { scope: 'email offline_access' }, 'email'],
    [true, 'asks for offline_access', { scope: 'email offline_access' }, 'email offline_access'],
    [false, 'has no grant of refresh', { grant_types: ['authorization_code'] }, 'email offline_access'],
  ])('is given (%s) to a client that %s', async (isGiven, _, metadata, scope) => {
    expect(await given(metadata, scope)).toBe(isGiven)
  })
})

describe('resources', () => {
  test('are the audience of the token, all that were granted or those that the request names', async () => {
    const resources = [API, FILES] as string[]
    const audience = async (form: Record<string, string>) => {
      const code = await codeOf(service, client, user, { resource: resources })
      return decodeJwt((await exchange(service, client, code, form)).body.access_token).aud
    }
    expect(await audience({})).toEqual([API, FILES])
    expect(await audience({ resource: FILES as string })).toBe(FILES)
  })

  test('that were not granted are refused, and the code stays valid', async () => {
    const code = await codeOf(service, client, user, { resource: API })
    expect(shown(await exchange(service, client, code, { resource: FILES as string }))).toEqual(
      failure(400, 'invalid_target', 'A resource was not granted'),
    )
    expect((await exchange(service, client, code)).status).toBe(200)
  })
})

describe('a code is refused', () => {
  test('without its verifier, with another one or for another address, and stays valid', async () => {
    const code = await codeOf(service, client, user)
    const wrong: [Record<string, string>, ReturnType<typeof failure>][] = [
      [{ code_verifier: '' }, failure(400, 'invalid_request', 'code_verifier is required')],
      [{ code_verifier: 'w'.repeat(43) }, failure(400, 'invalid_grant', 'PKCE verification failed')],
      [{ redirect_uri: `${CALLBACK}/` }, failure(400, 'invalid_grant', 'redirect_uri is not that of the request')],
      [{ code: '' }, failure(400, 'invalid_request', 'code is required')],
      [{ code: 'x'.repeat(43) }, unusable],
    ]
    for (const [form, refusal] of wrong) expect(shown(await exchange(service, client, code, form))).toEqual(refusal)
    expect((await exchange(service, client, code, { redirect_uri: '' })).status).toBe(200)
  })

  test('to another client, whose attempt leaves it valid', async () => {
    const other = await registered(service, POST)
    const code = await codeOf(service, client, user)
    expect(shown(await exchange(service, other, code))).toEqual(unusable)
    expect((await exchange(service, client, code)).status).toBe(200)
  })

  test('once it has expired', async () => {
    const code = await codeOf(service, client, user)
    service.clock.advance({ seconds: CODE_SECONDS })
    expect(shown(await exchange(service, client, code))).toEqual(unusable)
  })

  test('once the session that approved it has ended', async () => {
    const other = await service.signedIn()
    const code = await codeOf(service, client, other)
    await service.post('/logout', {}, other.auth)
    expect(shown(await exchange(service, client, code))).toEqual(unusable)
  })

  test('for a user who was banned or deleted meanwhile', async () => {
    const [banned, deleted] = [await service.signedIn(), await service.signedIn()]
    const codes = await Promise.all([banned, deleted].map((each) => codeOf(service, client, each)))
    await service.put(`/admin/users/${banned.userId}`, { ban_duration: '1h' }, service.admin)
    await service.delete(`/admin/users/${deleted.userId}`, service.admin)
    const answers = await Promise.all(codes.map((code) => exchange(service, client, code)))
    expect(shown(answers[0] as never)).toMatchObject({ status: 400 })
    expect(answers[0]?.body.error).toMatch(/^(access_denied|invalid_grant)$/)
    expect(shown(answers[1] as never)).toEqual(unusable)
  })
})

test('a code that is used twice ends the session that it gave', async () => {
  const code = await codeOf(service, client, user, { scope: 'offline_access' })
  const { body } = await exchange(service, client, code)
  const { session_id: id } = decodeJwt(body.access_token)
  expect(await sessionOf(String(id))).toBeDefined()
  expect(shown(await exchange(service, client, code))).toEqual(unusable)
  expect(await sessionOf(String(id))).toBeUndefined()
  expect(shown(await refresh(service, client, body.refresh_token))).toEqual(
    failure(400, 'invalid_grant', expect.any(String)),
  )
  const { body: entries } = await service.get('/admin/audit?query=action:token_reuse_detected', service.admin)
  expect(entries[0].payload.traits).toEqual({ session_id: id, client_id: client.clientId })
})

test('of 20 uses at once, at two replicas, one gets tokens', async () => {
  const replica = await service.with({})
  const code = await codeOf(service, client, user)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => exchange(index % 2 === 0 ? service : replica, client, code)),
  )
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  for (const answer of answers.filter(({ status }) => status !== 200)) expect(shown(answer)).toEqual(unusable)
  await replica.close()
})

test('concurrent exchanges each get the session of their own code, also one user twice, and the refused ones', async () => {
  const [first, second] = [await service.signedIn(), await service.signedIn()]
  const of = (owner: SignedIn) => codeOf(service, client, owner)
  const codes = [await of(first), await of(second), 'x'.repeat(43), await of(first), await of(second)]
  const form = (index: number): Record<string, string> => (index === 4 ? { redirect_uri: `${CALLBACK}/` } : {})
  const answers = await Promise.all(codes.map((code, index) => exchange(service, client, code, form(index))))
  const users = answers.map(({ body }) => (body.error ? body.error : decodeJwt(body.access_token).sub))
  expect(users).toEqual([first.userId, second.userId, 'invalid_grant', first.userId, 'invalid_grant'])
  expect((await exchange(service, client, String(codes[4]))).status).toBe(200)
})

test('a user whose row is held elsewhere delays no exchange of another', async () => {
  const [held, free] = [await service.signedIn(), await service.signedIn()]
  const codes = [await codeOf(service, client, held), await codeOf(service, client, free)]
  const holder = await service.deps.pool.connect()
  await holder.query('begin')
  await holder.query('select from users where id = $1 for update', [held.userId])
  let isHeld = true
  const [waiting, answered] = codes.map((code) =>
    exchange(service, client, code).then(({ status }) => [status, isHeld]),
  )
  expect(await answered).toEqual([200, true])
  isHeld = false
  await holder.query('commit')
  holder.release()
  expect(await waiting).toEqual([200, false])
})

test('a sign-in is audited with its application', async () => {
  const other = await service.signedIn()
  await tokensOf(service, client, other)
  const { body } = await service.get('/admin/audit?query=action:login', service.admin)
  const traits = { provider_type: 'oauth_server', client_id: client.clientId }
  const payload = { actor_id: other.userId, action: 'login', log_type: 'account', traits }
  expect(body).toContainEqual(expect.objectContaining({ payload: expect.objectContaining(payload) }))
})

test('a request without a grant, with an unknown one or with one that its client lacks is refused', async () => {
  const only = await registered(service, { ...OPEN, grant_types: ['authorization_code'] })
  const ask = async (form: Record<string, string>) => shown(await service.submit('/oauth/token', form))
  expect(await ask({ client_id: client.clientId })).toEqual(failure(400, 'invalid_request', 'grant_type is required'))
  for (const type of ['password', 'constructor', 'x']) {
    expect(await ask({ client_id: client.clientId, grant_type: type })).toEqual(failure(400, 'unsupported_grant_type'))
  }
  expect(await ask({ client_id: only.clientId, grant_type: 'refresh_token', refresh_token: 'x' })).toEqual(
    failure(400, 'unauthorized_client'),
  )
})
