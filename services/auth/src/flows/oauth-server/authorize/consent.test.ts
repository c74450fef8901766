// The answer of a user to the request of an application (contract/auth-oauth-server.md 5).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { enrollTotp, signInAgain, verifyTotp, withTotp } from '../../../../test/second-factors.ts'
import { startTestService, type TestService, toSignedIn } from '../../../../test/service.ts'
import { approved, begun, CALLBACK, decide, oauthSettings, registered, view } from '../testing/applications.ts'

const ISS = 'https://auth.example'
const NOT_FOUND = { status: 404, body: { error_code: 'oauth_authorization_not_found', msg: 'authorization not found' } }
const refused = (msg: string) => ({ status: 400, body: { error_code: 'validation_failed', msg } })

let service: TestService
let clientId: string
beforeAll(async () => {
  service = await startTestService({ ...(await oauthSettings()), AUTH_OAUTH_SERVER_RESOURCES: '*' })
  clientId = (await registered(service, { client_uri: 'https://app.example' })).clientId
})
afterAll(() => service.close())

const paramsOf = (url: string) => Object.fromEntries(new URL(url).searchParams)
const rows = async (text: string, values: unknown[]) => (await service.deps.pool.query(text, values)).rows
const consentsOf = (userId: string) => rows('select scopes, resources from oauth_consents where user_id = $1', [userId])

test('the page shows application, user and scopes, as often as it is loaded', async () => {
  const user = await service.signedIn('ada@example.com')
  const id = await begun(service, clientId, {
    ...{ scope: 'openid email', prompt: 'consent' },
    login_hint: 'ada@example.com',
  })
  const details = {
    authorization_id: id,
    redirect_uri: CALLBACK,
    client: { id: clientId, name: 'App', uri: 'https://app.example' },
    user: { id: user.userId, email: 'ada@example.com' },
    scope: 'openid email',
    request: {
      ...{ prompt: 'consent', login_hint: 'ada@example.com', resource: [] },
      scopes: [
        { name: 'openid', description: 'Recognize you' },
        { name: 'email', description: 'See your e-mail address' },
      ],
    },
  }
  for (let load = 0; load < 2; load++)
    expect(await view(service, id, user.auth)).toMatchObject({ status: 200, body: details })
})

test('an approval gives a code of 32 bytes, of which the hash alone is stored, for a minute', async () => {
  const user = await service.signedIn()
  const id = await begun(service, clientId)
  await view(service, id, user.auth)
  const { status, body } = await decide(service, id, user.auth)
  expect(status).toBe(200)
  expect(body.redirect_url.startsWith(`${CALLBACK}?`)).toBe(true)
  expect(paramsOf(body.redirect_url)).toEqual({ code: expect.stringMatching(/^[\w-]{43}$/), state: 'st', iss: ISS })
  const [row] = await rows('select *, oauth_authorizations::text as text from oauth_authorizations where id = $1', [id])
  expect(row).toMatchObject({
    ...{ status: 'approved', user_id: user.userId, aal: 'aal1', given_session_id: null },
    code_expires_at: new Date(service.clock.now().getTime() + 60_000),
  })
  expect(row.text).not.toContain(paramsOf(body.redirect_url).code)
  expect(await consentsOf(user.userId)).toEqual([{ scopes: ['email'], resources: [] }])
  const entries = await rows(
    "select payload from audit_log_entries where payload ->> 'actor_id' = $1 and payload ->> 'action' like 'oauth%'",
    [user.userId],
  )
  expect(entries.map(({ payload }) => [payload.action, payload.traits])).toEqual([
    ['oauth_authorization_approved', { client_id: clientId, scope: 'email' }],
  ])
})

test('a denial reaches the application and leaves no consent', async () => {
  const user = await service.signedIn()
  const id = await begun(service, clientId)
  await view(service, id, user.auth)
  const { body } = await decide(service, id, user.auth, 'deny')
  expect(paramsOf(body.redirect_url)).toEqual({
    ...{ error: 'access_denied', error_description: 'User denied the request', state: 'st', iss: ISS },
  })
  expect(await consentsOf(user.userId)).toEqual([])
  expect(await view(service, id, user.auth)).toMatchObject(refused('authorization request cannot be processed'))
  expect(await decide(service, id, user.auth)).toMatchObject(refused('authorization request is no longer pending'))
})

describe('an earlier consent', () => {
  test('is enough for the same scopes: one address while its code can be used, however often the page is loaded', async () => {
    const user = await service.signedIn()
    await approved(service, clientId, user.auth)
    const id = await begun(service, clientId)
    const views = await Promise.all(Array.from({ length: 5 }, () => view(service, id, user.auth)))
    const addresses = new Set(views.map(({ body }) => body.redirect_url))
    expect([addresses.size, paramsOf([...addresses][0]).code]).toEqual([1, expect.stringMatching(/^[\w-]{43}$/)])
    service.clock.advance({ seconds: 60 })
    expect(await view(service, id, user.auth)).toMatchObject(refused('authorization request cannot be processed'))
  })

  test.each([
    ['a further scope', { scope: 'email phone' }],
    ['a further resource', { resource: 'https://api.example' }],
    ['prompt=consent', { prompt: 'consent' }],
    ['prompt=select_account', { prompt: 'select_account' }],
    ['a level above the session', { acr_values: 'aal2' }],
    ['prompt=login', { prompt: 'login' }],
  ])('is not enough for %s', async (_, parameters) => {
    const user = await service.signedIn()
    await approved(service, clientId, user.auth)
    const id = await begun(service, clientId, parameters)
    expect((await view(service, id, user.auth)).body.authorization_id).toBe(id)
  })

  test.each([
    ['a public client at a loopback port', 'none', 'http://127.0.0.1:4711/cb', false],
    ['a public client at its own scheme', 'none', 'com.example.app:/cb', false],
    ['a public client of the web', 'none', CALLBACK, true],
    ['a client with a secret at a loopback port', 'client_secret_post', 'http://127.0.0.1:4711/cb', true],
  ])('of %s is enough only where no other program receives the code', async (_, method, redirect_uri, isEnough) => {
    const user = await service.signedIn()
    const client = { redirect_uris: [redirect_uri], token_endpoint_auth_method: method }
    const { clientId: native } = await registered(service, client)
    await approved(service, native, user.auth, { redirect_uri })
    const id = await begun(service, native, { redirect_uri })
    expect('redirect_url' in (await view(service, id, user.auth)).body).toBe(isEnough)
    expect((await approved(service, native, user.auth, { redirect_uri })).code).toMatch(/^[\w-]{43}$/)
  })

  test('grows with later ones and never shrinks', async () => {
    const user = await service.signedIn()
    await approved(service, clientId, user.auth, { scope: 'email phone' })
    await approved(service, clientId, user.auth, { scope: 'profile', resource: 'https://api.example' })
    const [{ scopes, resources }] = await consentsOf(user.userId)
    expect([scopes.toSorted(), resources]).toEqual([['email', 'phone', 'profile'], ['https://api.example']])
  })

  test('of another user or for another application counts for nothing', async () => {
    const [user, other] = [await service.signedIn(), await service.signedIn()]
    const { clientId: otherClient } = await registered(service)
    await approved(service, clientId, user.auth)
    await approved(service, otherClient, other.auth)
    const id = await begun(service, clientId)
    expect((await view(service, id, other.auth)).body.authorization_id).toBe(id)
  })
})

describe('a request belongs to the first user who sees it', () => {
  test('another one does not find it', async () => {
    const [first, second] = [await service.signedIn(), await service.signedIn()]
    const id = await begun(service, clientId)
    expect((await view(service, id, first.auth)).status).toBe(200)
    expect(await view(service, id, second.auth)).toMatchObject(NOT_FOUND)
    expect(await decide(service, id, second.auth)).toMatchObject(NOT_FOUND)
  })

  test('of two at once on two replicas one gets it', async () => {
    const replica = await service.with({})
    const users = [await service.signedIn(), await service.signedIn()]
    const id = await begun(service, clientId)
    const seen = await Promise.all(users.map((user, index) => view(index ? replica : service, id, user.auth)))
    expect(seen.map(({ status }) => status).toSorted()).toEqual([200, 404])
    const decided = await Promise.all(users.map((user, index) => decide(index ? replica : service, id, user.auth)))
    expect(decided.map(({ status }) => status)).toEqual(seen.map(({ status }) => status))
    await replica.close()
  })
})

test('of twenty approvals at once on two replicas one counts, and the others hear so', async () => {
  const replica = await service.with({})
  const user = await service.signedIn()
  const id = await begun(service, clientId)
  await view(service, id, user.auth)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => decide(index % 2 ? replica : service, id, user.auth)),
  )
  const lost = answers.filter(({ status }) => status !== 200)
  expect(lost.length).toBe(19)
  for (const answer of lost) expect(answer).toMatchObject(refused('authorization request is no longer pending'))
  await replica.close()
})

describe('refusals', () => {
  test('unknown, expired and unseen requests', async () => {
    const user = await service.signedIn()
    for (const unknown of ['x'.repeat(32), '%00', 'x'.repeat(200)]) {
      expect(await view(service, unknown, user.auth)).toMatchObject(NOT_FOUND)
      expect(await decide(service, unknown, user.auth)).toMatchObject(NOT_FOUND)
    }
    const id = await begun(service, clientId)
    expect(await decide(service, id, user.auth)).toMatchObject(NOT_FOUND)
    await view(service, id, user.auth)
    service.clock.advance({ seconds: 600 })
    expect(await view(service, id, user.auth)).toMatchObject(NOT_FOUND)
    expect(await decide(service, id, user.auth)).toMatchObject(NOT_FOUND)
  })

  test('another action, a broken body and no token', async () => {
    const user = await service.signedIn()
    const id = await begun(service, clientId)
    const path = `/oauth/authorizations/${id}/consent`
    expect(await decide(service, id, user.auth, 'Approve')).toMatchObject(refused("action must be 'approve' or 'deny'"))
    expect(await service.post(path, {}, user.auth)).toMatchObject(refused("action must be 'approve' or 'deny'"))
    const broken = await service.app.inject({ method: 'POST', url: path, headers: user.auth, payload: '{' })
    expect(broken.json()).toMatchObject({ code: 400, error_code: 'bad_json' })
    expect((await view(service, id, { authorization: '' })).status).toBe(401)
  })

  test.each([
    ['https://site.example', 200],
    ['https://evil.example', 400],
    ['null', 400],
  ])('a page of the origin %s gets %i', async (origin, status) => {
    const user = await service.signedIn()
    const id = await begun(service, clientId)
    const answer = await service.get(`/oauth/authorizations/${id}`, { ...user.auth, origin })
    expect(answer.status).toBe(status)
    if (status === 400) expect(answer).toMatchObject(refused('unauthorized request origin'))
  })

  test('a session that has ended, while its token lives', async () => {
    const user = await service.signedIn()
    const id = await begun(service, clientId)
    await view(service, id, user.auth)
    await service.post('/logout', {}, user.auth)
    for (const answer of [await view(service, id, user.auth), await decide(service, id, user.auth)]) {
      expect(answer).toMatchObject({ status: 403, body: { error_code: 'session_not_found' } })
    }
  })

  test('a session of an application', async () => {
    const user = await service.signedIn()
    const id = await begun(service, clientId)
    await view(service, id, user.auth)
    await service.deps.pool.query(
      `update sessions set oauth_client_id = $1, scopes = '["account:write"]', resources = '[]' where user_id = $2`,
      [clientId, user.userId],
    )
    expect(await decide(service, id, user.auth)).toMatchObject({
      status: 403,
      body: { error_code: 'insufficient_scope' },
    })
  })
})

test('a session without the second factor that its user has approves nothing, not even by an earlier consent', async () => {
  const user = await withTotp(service)
  const agreed = await begun(service, clientId)
  await view(service, agreed, user.auth)
  expect((await decide(service, agreed, user.auth)).status).toBe(200)
  const low = await signInAgain(service, user.email)
  const id = await begun(service, clientId)
  expect((await view(service, id, low.auth)).body).toHaveProperty('authorization_id')
  expect(await decide(service, id, low.auth)).toMatchObject({ status: 403, body: { error_code: 'insufficient_aal' } })
  expect((await view(service, id, user.auth)).body).toHaveProperty('redirect_url')
})

describe('an approval needs what the request asks for', () => {
  test('aal2', async () => {
    const user = await service.signedIn()
    const id = await begun(service, clientId, { acr_values: 'urn:x aal2' })
    await view(service, id, user.auth)
    expect(await decide(service, id, user.auth)).toMatchObject({
      status: 403,
      body: { error_code: 'insufficient_aal' },
    })
    const raised = toSignedIn((await verifyTotp(service, user, await enrollTotp(service, user))).body)
    expect((await decide(service, id, raised.auth)).status).toBe(200)
  })

  test.each([
    ['prompt=login', { prompt: 'login' }],
    ['max_age', { max_age: '60' }],
    ['max_age=0', { max_age: '0' }],
  ])('a new sign-in, for %s', async (_, parameters) => {
    const email = `fresh-${Math.random()}@example.com`
    const user = await service.signedIn(email)
    service.clock.advance({ seconds: 61 })
    const id = await begun(service, clientId, parameters)
    await view(service, id, user.auth)
    expect(await decide(service, id, user.auth)).toMatchObject({
      status: 403,
      body: { error_code: 'reauthentication_needed' },
    })
    service.clock.advance({ seconds: 2 })
    const { body } = await service.post('/token?grant_type=password', { email, password: 'correct horse' })
    service.clock.advance({ seconds: 2 })
    expect((await decide(service, id, toSignedIn(body).auth)).status).toBe(200)
  })

  test('no new sign-in while the last one is young enough, by whole seconds as in auth_time', async () => {
    const user = await service.signedIn()
    const seconds = 60.999 - (service.clock.now().getTime() % 1000) / 1000
    service.clock.advance({ seconds })
    const id = await begun(service, clientId, { max_age: '60', acr_values: 'aal1 aal2' })
    await view(service, id, user.auth)
    expect((await decide(service, id, user.auth)).status).toBe(200)
  })
})

describe('a code ends', () => {
  test.each<[string, (ids: { userId: string; auth: { authorization: string }; client: string }) => Promise<unknown>]>([
    ['with the session that approved it', ({ auth }) => service.post('/logout', {}, auth)],
    ['with its user', ({ userId }) => service.delete(`/admin/users/${userId}`, service.admin)],
    ['with its application', ({ client }) => service.delete(`/admin/oauth/clients/${client}`, service.admin)],
  ])('%s', async (_, end) => {
    const user = await service.signedIn()
    const { clientId: client } = await registered(service)
    const { id } = await approved(service, client, user.auth)
    await end({ ...user, client })
    expect(await rows('select id from oauth_authorizations where id = $1', [id])).toEqual([])
  })
})
