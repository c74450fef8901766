// Sessions of applications refresh as those of accounts do (../../token), by their own client.
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type SignedIn, startTestService, type TestService } from '../../../../test/service.ts'
import { renewBySignIn } from '../../../core/sessions/end-session.ts'
import { releaseAddress } from '../../../core/users/registrants.store.ts'
import { oauthSettings, registered } from '../testing/applications.ts'
import { failure, shown, type TestClient } from '../testing/clients.ts'
import { refresh, tokensOf } from '../testing/codes.ts'

const OPEN = { token_endpoint_auth_method: 'none' }
const SCOPES = ['email', 'profile', 'offline_access']

let service: TestService
let client: TestClient
let other: TestClient
let user: SignedIn
beforeAll(async () => {
  service = await startTestService({
    ...(await oauthSettings()),
    AUTH_OAUTH_SERVER_RESOURCES: 'https://api.example,https://files.example',
  })
  client = await registered(service, { token_endpoint_auth_method: 'client_secret_post' })
  other = await registered(service, OPEN)
  user = await service.signedIn()
})
afterAll(() => service.close())

const begun = (scopes = SCOPES, resources: string[] = []) =>
  tokensOf(service, client, user, { scope: scopes.join(' '), resource: resources })
const own = (refreshToken: string) => service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })
const refusedGrant = failure(400, 'invalid_grant')
const audited = async (action: string, sessionId: string) => {
  const { body } = await service.get(`/admin/audit?per_page=1000&query=action:${action}`, service.admin)
  return body.filter(({ payload }: { payload: { traits?: object } }) =>
    JSON.stringify(payload.traits ?? {}).includes(sessionId),
  )
}

test('a refresh token is replaced, with a token of the same session and rights, and no id_token', async () => {
  const { refresh_token: first, sessionId } = await begun(['openid', ...SCOPES])
  const { status, body, headers } = await refresh(service, client, first)
  expect([status, headers['cache-control']]).toEqual([200, 'no-store'])
  expect(body).toEqual({
    ...{ access_token: expect.any(String), refresh_token: expect.any(String), token_type: 'bearer', expires_in: 3600 },
    scope: 'openid email profile offline_access',
  })
  expect(body.refresh_token).not.toBe(first)
  expect(decodeJwt(body.access_token)).toMatchObject({
    session_id: sessionId,
    client_id: client.clientId,
    scope: body.scope,
  })
  expect((await refresh(service, client, body.refresh_token)).status).toBe(200)
})

test('within the reuse interval the same token gets the same successor; after it the session ends', async () => {
  const { refresh_token: first, sessionId } = await begun()
  const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(service, client, first)))
  expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
  const second = answers[0]?.body.refresh_token
  const third = (await refresh(service, client, second)).body.refresh_token
  service.clock.advance({ seconds: 11 })
  expect(shown(await refresh(service, client, first))).toEqual(refusedGrant)
  expect(shown(await refresh(service, client, third))).toEqual(refusedGrant)
  expect(await audited('token_reuse_detected', sessionId)).toHaveLength(1)
})

describe('another one than its client', () => {
  const refusal = (text: string) => failure(400, 'invalid_client', text)

  test('gets nothing for a refresh token, and ends nothing', async () => {
    const { refresh_token: token } = await begun()
    expect(shown(await refresh(service, other, token))).toEqual(
      refusal("Client does not match the session's OAuth client"),
    )
    const text = 'Client authentication required for OAuth session'
    expect(await own(token)).toMatchObject({
      ...{ status: 400, headers: { 'x-sb-error-code': 'invalid_client' } },
      body: { ...{ error: 'invalid_client', error_description: text }, ...{ code: 400, msg: text } },
    })
    expect(shown(await refresh(service, client, user.refreshToken))).toEqual(
      refusal('Client authentication not allowed for non-OAuth session'),
    )
    expect((await refresh(service, client, token)).status).toBe(200)
    expect((await own(user.refreshToken)).status).toBe(200)
  })

  test('ends nothing by a token that was replaced, either', async () => {
    const { refresh_token: token } = await begun()
    const next = (await refresh(service, client, token)).body.refresh_token
    const last = (await refresh(service, client, next)).body.refresh_token
    service.clock.advance({ seconds: 11 })
    expect(shown(await refresh(service, other, token))).toMatchObject({ body: { error: 'invalid_client' } })
    expect(shown(await own(token))).toMatchObject({ body: { error: 'invalid_client' } })
    expect((await refresh(service, client, last)).status).toBe(200)
  })

  test('leaves nothing of a refresh with many others at once', async () => {
    const { refresh_token: token } = await begun()
    const signedIn = await service.signedIn()
    const answers = await Promise.all([refresh(service, client, token), own(token), own(signedIn.refreshToken)])
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 200])
    expect(decodeJwt(answers[2]?.body.access_token)).not.toHaveProperty('client_id')
  })
})

test('a request may take fewer scopes and resources, for its token alone', async () => {
  const [api, files] = ['https://api.example', 'https://files.example']
  const { refresh_token: token } = await begun(SCOPES, [api, files])
  const narrow = await refresh(service, client, token, { scope: 'profile', resource: files })
  expect(narrow.body).toMatchObject({ scope: 'profile', refresh_token: expect.any(String) })
  expect(decodeJwt(narrow.body.access_token)).toMatchObject({ aud: files, scope: 'profile', email: '' })
  const whole = await refresh(service, client, narrow.body.refresh_token)
  expect(decodeJwt(whole.body.access_token)).toMatchObject({ aud: [api, files], scope: SCOPES.join(' ') })
})

test('scopes that an administrator takes from the client are gone at the next refresh', async () => {
  const narrowed = await registered(service, { ...OPEN, scope: 'email profile offline_access' })
  const { refresh_token: token } = await tokensOf(service, narrowed, user, { scope: SCOPES.join(' ') })
  await service.put(`/admin/oauth/clients/${narrowed.clientId}`, { scope: 'email offline_access' }, service.admin)
  const { body } = await refresh(service, narrowed, token)
  expect(body.scope).toBe('email offline_access')
})

test('wider rights are refused, and the refresh token stays unused', async () => {
  const { refresh_token: token } = await begun(['email'], ['https://api.example'])
  expect(shown(await refresh(service, client, token, { scope: 'email profile' }))).toEqual(
    failure(400, 'invalid_scope', 'A scope was not granted'),
  )
  expect(shown(await refresh(service, client, token, { resource: 'https://files.example' }))).toEqual(
    failure(400, 'invalid_target', 'A resource was not granted'),
  )
  const { rows } = await service.deps.pool.query('select refresh_counter from sessions where id = $1', [
    (await decoded(token)).sessionId,
  ])
  expect(rows).toEqual([{ refresh_counter: 0 }])
})

async function decoded(token: string) {
  const { parseRefreshToken } = await import('../../../core/sessions/refresh-token.ts')
  return parseRefreshToken(service.deps.refreshTokenKey, token) ?? expect.fail('no refresh token')
}

test.each([
  ['', 'invalid_request'],
  ['x', 'invalid_grant'],
  ['A'.repeat(55), 'invalid_grant'],
])('the refresh token "%s" is refused as %s', async (token, error) => {
  expect(shown(await refresh(service, client, token))).toEqual(failure(400, error))
})

describe('a session of an application ends', () => {
  const ended: Record<string, (signedIn: SignedIn) => Promise<unknown>> = {
    'with a ban of its user': ({ userId }) =>
      service.put(`/admin/users/${userId}`, { ban_duration: '1h' }, service.admin),
    'with its user': ({ userId }) => service.delete(`/admin/users/${userId}`, service.admin),
    'with a sign-out everywhere': ({ auth }) => service.post('/logout?scope=global', {}, auth),
    'by an administrator, with all sessions': ({ userId }) =>
      service.delete(`/admin/users/${userId}/sessions`, service.admin),
    'by its user, with the other sessions': ({ auth }) => service.post('/logout?scope=others', {}, auth),
  }
  test.each(Object.entries(ended))('%s', async (_, end) => {
    const signedIn = await service.signedIn()
    const { refresh_token: token } = await tokensOf(service, client, signedIn)
    expect(await end(signedIn)).toMatchObject({ status: expect.toSatisfy((status: number) => status < 300) })
    expect(shown(await refresh(service, client, token))).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/^(invalid_grant|access_denied)$/) },
    })
  })

  test('with its client', async () => {
    const gone = await registered(service, OPEN)
    const { sessionId } = await tokensOf(service, gone, user)
    await service.delete(`/admin/oauth/clients/${gone.clientId}`, service.admin)
    const { rows } = await service.deps.pool.query('select from sessions where id = $1', [sessionId])
    expect(rows).toEqual([])
  })

  test('by its revoked refresh token, also a replaced one, or access token', async () => {
    for (const name of ['refresh_token', 'access_token'] as const) {
      const first = await begun()
      const { body } = await refresh(service, client, first.refresh_token)
      const token = name === 'refresh_token' ? first.refresh_token : body.access_token
      const form = { client_id: client.clientId, client_secret: client.secret, token }
      expect(shown(await service.submit('/oauth/revoke', form))).toEqual({ status: 200, body: {} })
      expect(shown(await refresh(service, client, body.refresh_token))).toEqual(refusedGrant)
      expect(await audited('logout', first.sessionId)).toHaveLength(1)
      expect(shown(await service.submit('/oauth/revoke', form))).toEqual({ status: 200, body: {} })
    }
  })

  test('not by the revocation of another client', async () => {
    const { refresh_token: token, access_token: accessToken } = await begun()
    // Another test may have outlived the access token of the shared user.
    const owner = await service.signedIn()
    for (const each of [token, accessToken, owner.refreshToken, owner.accessToken]) {
      const form = { client_id: other.clientId, token: each }
      expect(shown(await service.submit('/oauth/revoke', form))).toEqual({ status: 200, body: {} })
    }
    expect((await refresh(service, client, token)).status).toBe(200)
    expect((await service.get('/user', owner.auth)).status).toBe(200)
  })
})

test('where one session is valid, that of an application replaces neither a session nor a change of the user', async () => {
  const single = await service.with({ AUTH_SESSIONS_SINGLE_PER_USER: 'true' })
  const [email, password, next] = ['held@example.com', 'correct horse', 'next@example.com']
  const { userId, ...signedIn } = await single.signedIn(email, password)
  const sessionId = String(decodeJwt(signedIn.accessToken).session_id)
  service.clock.advance({ seconds: 1 })
  await tokensOf(single, client, { userId, ...signedIn })
  service.clock.advance({ seconds: 1 })
  const newer = await single.post('/token?grant_type=password', { email, password })
  const newerId = String(decodeJwt(newer.body.access_token).session_id)
  expect(await renewBySignIn(single.deps, { userId, sessionId, newerId })).toEqual({ aal: 'aal1' })
  const unproven = `update users set email_confirmed_at = null, email_vouched = false, phone = '4917098',
    phone_confirmed_at = now(), email_change = $2, email_change_session_id = $3 where id = $1`
  await service.deps.pool.query(unproven, [userId, next, sessionId])
  await releaseAddress(single.deps, service.deps.db, { channel: 'email', value: email }, 'authenticated')
  const { rows } = await service.deps.pool.query('select email, email_change from users where id = $1', [userId])
  expect(rows).toEqual([{ email: null, email_change: next }])
  await single.close()
})

test('where one session is valid, an application and its user do not replace each other', async () => {
  const single = await service.with({ AUTH_SESSIONS_SINGLE_PER_USER: 'true' })
  const signedIn = await single.signedIn()
  const first = await tokensOf(single, client, signedIn)
  const second = await tokensOf(single, other, signedIn)
  expect((await single.get('/user', signedIn.auth)).status).toBe(200)
  for (const [by, { refresh_token: token }] of [
    [client, first],
    [other, second],
  ] as const) {
    expect((await refresh(single, by, token)).status).toBe(200)
  }
  const third = await tokensOf(single, client, signedIn)
  expect(shown(await refresh(single, client, third.refresh_token))).toMatchObject({ status: 200 })
  expect(shown(await refresh(single, client, first.refresh_token))).toEqual(refusedGrant)
  expect((await single.get('/user', signedIn.auth)).body).toMatchObject({ id: signedIn.userId })
  await single.close()
})

test('a session of an application ends with the limit of the one that approved it', async () => {
  const limited = await service.with({ AUTH_SESSIONS_TIMEBOX: '1h' })
  const approver = await limited.signedIn()
  service.clock.advance({ seconds: 1800 })
  const { refresh_token: token } = await tokensOf(limited, client, approver)
  service.clock.advance({ seconds: 1799 })
  const { status, body } = await refresh(limited, client, token)
  expect(status).toBe(200)
  service.clock.advance({ seconds: 2 })
  expect(shown(await refresh(limited, client, body.refresh_token))).toEqual(refusedGrant)
  await limited.close()
})
