// Grants of a user (contract/auth-oauth-server.md 5). Those that administrators see: flows/admin/users.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { addPausedReceiver, storedEvents } from '../../../../test/upstreams/paused-receiver.ts'
import { approved, begun, oauthSettings, registered, view } from '../testing/applications.ts'

const PATH = '/user/oauth/grants'
const NOBODY = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'

let service: TestService
beforeAll(async () => {
  service = await startTestService(await oauthSettings())
})
afterAll(() => service.close())

const revoke = (clientId: string, auth: { authorization: string }) =>
  service.delete(`${PATH}?client_id=${encodeURIComponent(clientId)}`, auth)
const rows = async (text: string, values: unknown[]) => (await service.deps.pool.query(text, values)).rows

/** Gives the application a session of the user, as an exchanged code does. */
const newSession = (userId: string, clientId: string) =>
  rows(
    `insert into sessions (id, user_id, aal, amr, created_at, refreshed_at, refresh_counter, oauth_client_id, scopes, resources)
     select gen_random_uuid(), user_id, aal, amr, created_at, refreshed_at, refresh_counter, $2, '["email"]', '[]'
     from sessions where user_id = $1 and oauth_client_id is null limit 1 returning id`,
    [userId, clientId],
  )

test('a user sees what was granted, the latest first, and nothing of others', async () => {
  const [user, other] = [await service.signedIn(), await service.signedIn()]
  const first = await registered(service, { client_name: 'First', client_uri: 'https://first.example' })
  const second = await registered(service, { client_name: 'Second' })
  expect((await service.get(PATH, user.auth)).body).toEqual([])
  await approved(service, first.clientId, user.auth, { scope: 'email phone' })
  service.clock.advance({ seconds: 1 })
  await approved(service, second.clientId, user.auth)
  await approved(service, first.clientId, other.auth)
  const now = service.clock.now()
  expect((await service.get(PATH, user.auth)).body).toEqual([
    { client: { id: second.clientId, name: 'Second' }, scopes: ['email'], granted_at: now.toISOString() },
    {
      client: { id: first.clientId, name: 'First', uri: 'https://first.example' },
      scopes: ['email', 'phone'],
      granted_at: new Date(now.getTime() - 1000).toISOString(),
    },
  ])
})

test('a withdrawal ends codes and sessions of the application alone, asks the user again, and is audited', async () => {
  const [user, other] = [await service.signedIn(), await service.signedIn()]
  const [app, kept] = [await registered(service), await registered(service)]
  await approved(service, app.clientId, user.auth)
  await approved(service, kept.clientId, user.auth)
  await approved(service, app.clientId, other.auth)
  for (const [{ userId }, { clientId }] of [
    [user, app],
    [user, kept],
    [other, app],
  ] as const)
    await newSession(userId, clientId)
  expect((await revoke(app.clientId, user.auth)).status).toBe(204)
  const left = await rows(
    'select user_id, oauth_client_id from sessions where user_id = any ($1) order by oauth_client_id nulls first, user_id',
    [[user.userId, other.userId]],
  )
  const pairs = left.map(({ user_id, oauth_client_id }) => [user_id, oauth_client_id])
  expect(pairs).toContainEqual([user.userId, null])
  expect(pairs).toContainEqual([user.userId, kept.clientId])
  expect(pairs).toContainEqual([other.userId, app.clientId])
  expect(pairs).not.toContainEqual([user.userId, app.clientId])
  const codes = await rows('select user_id, client_id from oauth_authorizations where user_id = any ($1)', [
    [user.userId, other.userId],
  ])
  expect(codes).not.toContainEqual({ user_id: user.userId, client_id: app.clientId })
  expect(codes.length).toBe(2)
  const entries = await rows(
    "select payload -> 'traits' as traits from audit_log_entries where payload ->> 'action' = 'token_revoked' and payload ->> 'actor_id' = $1",
    [user.userId],
  )
  expect(entries.length).toBe(1)
  const id = await begun(service, app.clientId)
  expect((await view(service, id, user.auth)).body.authorization_id).toBe(id)
})

test('receivers of events hear that the sessions of the application ended', async () => {
  await addPausedReceiver(service, ['session.ended'])
  const user = await service.signedIn()
  const { clientId } = await registered(service)
  await approved(service, clientId, user.auth)
  const [session] = await newSession(user.userId, clientId)
  await revoke(clientId, user.auth)
  const ended = (await storedEvents(service)).filter(({ user_id }) => user_id === user.userId)
  expect(ended.map(({ event, data }) => [event, data.reason, data.sessions ?? data.session])).toEqual([
    ['session.ended', 'signed_out', expect.anything()],
  ])
  expect(JSON.stringify(ended)).toContain(session.id)
})

test.each<[string, string, number, string, string]>([
  ['no client', '', 400, 'validation_failed', 'client_id query parameter is required'],
  ['a client id of no form', 'x', 400, 'validation_failed', 'invalid client_id format'],
  ['an address with a NUL', 'https://app.example/\0', 400, 'validation_failed', 'invalid client_id format'],
  ['an unknown client', NOBODY, 404, 'oauth_consent_not_found', 'No active grant found for this client'],
])('%s', async (_, clientId, status, error_code, msg) => {
  const { auth } = await service.signedIn()
  expect(await revoke(clientId, auth)).toMatchObject({ status, body: { error_code, msg } })
})

test('a withdrawn grant, and the grant of another user, are not there', async () => {
  const [user, other] = [await service.signedIn(), await service.signedIn()]
  const { clientId } = await registered(service)
  await approved(service, clientId, user.auth)
  expect((await revoke(clientId, other.auth)).status).toBe(404)
  expect((await revoke(clientId, user.auth)).status).toBe(204)
  expect((await revoke(clientId, user.auth)).status).toBe(404)
  expect((await service.get(PATH, user.auth)).body).toEqual([])
})

test('while the server is disabled there are no grants', async () => {
  const off = await service.with({ AUTH_OAUTH_SERVER_ENABLED: 'false' })
  const { auth } = await service.signedIn()
  expect(await off.get(PATH, auth)).toMatchObject({ status: 404, body: { error_code: 'feature_disabled' } })
  expect((await off.get(PATH)).status).toBe(401)
  await off.close()
})
