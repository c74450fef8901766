// Logout tokens to applications whose sessions ended (OpenID Connect Back-Channel Logout 1.0).
import type { ServerResponse } from 'node:http'
import { type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type SignedIn, startTestService, type TestService } from '../../../../test/service.ts'
import { sendNotices } from '../../../core/oauth-server/logout/send-notices.ts'
import { deleteExpired } from '../../../housekeeping.ts'
import { oauthSettings, registered } from '../testing/applications.ts'

const PASSWORD = 'correct horse'

let service: TestService
let receiver: Receiver
beforeAll(async () => {
  service = await startTestService({
    ...(await oauthSettings()),
    AUTH_WORKERS_ENABLED: 'false',
    AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
  })
})
afterAll(() => service.close())
beforeEach(async () => {
  receiver = await startReceiver()
})
afterEach(() => receiver.close())

/** A user with a session of an application, which hears of its end. */
async function signedIn(client: object = { backchannel_logout_uri: receiver.url }) {
  const { clientId } = await registered(service, client)
  const email = `${clientId}@example.com`
  const user = await service.signedIn(email, PASSWORD)
  const { session_id: sessionId } = JSON.parse(
    Buffer.from(user.accessToken.split('.')[1] ?? '', 'base64url').toString(),
  )
  await service.deps.pool.query(
    `update sessions set oauth_client_id = $1, scopes = '[]', resources = '[]' where id = $2`,
    [clientId, sessionId],
  )
  // The application's token opens no endpoint of the account: the user acts by a session of their own.
  const own = await service.post('/token?grant_type=password', { email, password: PASSWORD })
  const auth = { authorization: `Bearer ${own.body.access_token}` }
  return { ...user, auth, clientId, sessionId: String(sessionId) }
}

const daysAgo = (days: number) => new Date(service.clock.now().getTime() - days * 86_400_000)

async function waiting(): Promise<string[]> {
  const { rows } = await service.deps.pool.query('select session_id from oauth_logout_notices')
  return rows.map(({ session_id: id }) => id)
}

const WAYS: Record<string, (user: SignedIn & { sessionId: string; clientId: string }) => Promise<unknown>> = {
  'the user signs out everywhere': ({ auth }) => service.post('/logout?scope=global', {}, auth),
  'the user ends it in the list': ({ auth, sessionId }) => service.delete(`/user/sessions/${sessionId}`, auth),
  'an administrator ends all sessions': ({ userId }) =>
    service.delete(`/admin/users/${userId}/sessions`, service.admin),
  'the user is banned': ({ userId }) => service.put(`/admin/users/${userId}`, { ban_duration: '1h' }, service.admin),
  'the user withdraws the grant': async ({ userId, clientId, auth }) => {
    const consent = 'insert into oauth_consents (user_id, client_id, scopes, resources, created_at, updated_at)'
    await service.deps.pool.query(`${consent} values ($1, $2, '[]', '[]', now(), now())`, [userId, clientId])
    await service.delete(`/user/oauth/grants?client_id=${clientId}`, auth)
  },
  'the user is deleted': ({ userId }) => service.delete(`/admin/users/${userId}`, service.admin),
  'the application is deleted': ({ clientId }) => service.delete(`/admin/oauth/clients/${clientId}`, service.admin),
  'the application is forgotten': async ({ clientId }) => {
    const forgotten = `update oauth_clients set registration_type = 'dynamic', created_at = $2 where id = $1`
    await service.deps.pool.query(forgotten, [clientId, daysAgo(31)])
    await deleteExpired(service.deps, service.deps.log)
  },
}

test.each(Object.keys(WAYS))('when %s, the application gets one logout token, with session and user', async (way) => {
  const user = await signedIn()
  await WAYS[way]?.(user)
  // Slots of administrators' requests are not for addresses of strangers.
  const deps = { ...service.deps, egress: { ...service.deps.egress, fetch: () => expect.fail('wrong slots') } }
  await Promise.all([sendNotices(deps), sendNotices(deps)])
  await sendNotices(service.deps)
  expect(receiver.received.length).toBe(1)
  const [sent] = receiver.received
  expect(sent?.headers['content-type']).toBe('application/x-www-form-urlencoded')
  const token = new URLSearchParams(String(sent?.body)).get('logout_token') ?? ''
  const { body: jwks } = await service.get('/.well-known/jwks.json')
  const { payload } = await jwtVerify(token, createLocalJWKSet(jwks), {
    ...{ issuer: 'https://auth.example', audience: user.clientId, typ: 'logout+jwt', currentDate: service.clock.now() },
  })
  expect(payload).toMatchObject({
    ...{ sub: user.userId, sid: user.sessionId, jti: expect.any(String), exp: (payload.iat ?? 0) + 120 },
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
  })
  expect(payload.nonce).toBeUndefined()
})

test('a failed notice is sent again after growing waits, until it is accepted', async () => {
  const user = await signedIn()
  receiver.answer = (response) => response.writeHead(receiver.received.length > 2 ? 200 : 500).end()
  await service.post('/logout?scope=global', {}, user.auth)
  const attempts: number[] = []
  for (const seconds of [0, 4, 1, 9, 1, 60]) {
    service.clock.advance({ seconds })
    await sendNotices(service.deps)
    attempts.push(receiver.received.length)
  }
  expect(attempts).toEqual([1, 1, 2, 2, 3, 3])
})

test('an application that hangs delays no notice to another', async () => {
  const hanging = await startReceiver()
  const held: ServerResponse[] = []
  const released = new Promise<void>((resolve) => {
    hanging.answer = (response) => void held.push(response)
    receiver.answer = (response) => {
      response.writeHead(204).end()
      resolve()
    }
  })
  const { clientId, userId, auth } = await signedIn({ backchannel_logout_uri: hanging.url })
  const further = `insert into sessions (id, user_id, amr, refreshed_at, created_at, oauth_client_id, scopes, resources)
    select gen_random_uuid(), $1, '[]', $2, $2, $3, '[]', '[]' from generate_series(1, 20)`
  await service.deps.pool.query(further, [userId, service.clock.now(), clientId])
  await service.post('/logout?scope=global', {}, auth)
  await service.post('/logout?scope=global', {}, (await signedIn()).auth)
  const sending = sendNotices(service.deps)
  await released
  hanging.answer = (response) => response.writeHead(204).end()
  for (const response of held) response.writeHead(204).end()
  await sending
  expect([hanging.received.length, receiver.received.length]).toEqual([21, 1])
  hanging.close()
})

test('sessions of the user’s own, and of applications without an address, make no notice', async () => {
  await service.post('/logout?scope=global', {}, (await service.signedIn()).auth)
  await service.post('/logout?scope=global', {}, (await signedIn({})).auth)
  expect(await waiting()).toEqual([])
})

test('a notice that no enabled server sent is deleted after two days', async () => {
  const { auth, sessionId } = await signedIn()
  await service.post('/logout?scope=global', {}, auth)
  const begun = (days: number) =>
    service.deps.pool.query('update oauth_logout_notices set created_at = $1', [daysAgo(days)])
  await begun(1.9)
  await deleteExpired(service.deps, service.deps.log)
  expect(await waiting()).toEqual([sessionId])
  await begun(2.1)
  await deleteExpired(service.deps, service.deps.log)
  expect(await waiting()).toEqual([])
})

test('an address on the private network is not asked', async () => {
  const guarded = await service.with({ AUTH_EGRESS_ALLOW_CIDRS: '10.0.0.0/8' })
  const user = await signedIn()
  await service.post('/logout?scope=global', {}, user.auth)
  await sendNotices(guarded.deps)
  await guarded.close()
  expect(receiver.received).toEqual([])
})
