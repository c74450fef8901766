// Applications that a user has agreed to, by the admin API (contract/auth-oauth-server.md).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { approved, begun, decide, oauthSettings, registered, view } from '../../oauth-server/testing/applications.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ ...(await oauthSettings()), AUTH_HOSTED_PAGES_ENABLED: 'true' })
})
afterAll(() => service.close())

const path = (userId: string, clientId = '') => `/admin/users/${userId}/oauth/grants${clientId && `/${clientId}`}`
const list = async (userId: string) => (await service.get(path(userId), service.admin)).body
const withdraw = (userId: string, clientId: string) => service.delete(path(userId, clientId), service.admin)

test("an administrator sees what a user has agreed to, and withdraws it: the client's codes and sessions end", async () => {
  const user = await service.signedIn()
  const other = await service.signedIn()
  const client = { client_name: 'Reports', client_uri: 'https://app.example' }
  const { clientId } = await registered(service, client)
  const { clientId: kept } = await registered(service)
  await approved(service, kept, user.auth)
  service.clock.advance({ seconds: 1 })
  await approved(service, clientId, user.auth, { scope: 'email profile' })
  await approved(service, clientId, other.auth)
  const granted_at = service.clock.now().toISOString()
  expect(await list(user.userId)).toMatchObject([
    { client: { id: clientId, name: 'Reports', uri: 'https://app.example' }, scopes: ['email', 'profile'], granted_at },
    { client: { id: kept, name: 'App' }, scopes: ['email'] },
  ])
  const { pool } = service.deps
  await pool.query(
    `insert into sessions (id, user_id, aal, initial_aal, amr, refreshed_at, created_at, oauth_client_id, scopes, resources)
     select gen_random_uuid(), user_id, 'aal1', 'aal1', '[]', now(), now(), client_id, scopes, resources from oauth_consents`,
  )
  const clientSessions = async () =>
    (await pool.query('select user_id, oauth_client_id from sessions where oauth_client_id is not null')).rows
  const theirSessions = [
    await service.get('/user/sessions', user.auth),
    await service.get(`/admin/users/${user.userId}/sessions`, service.admin),
  ]
  for (const { body } of theirSessions) {
    const clients = body.map((session: { client?: object }) => session.client)
    expect(new Set(clients)).toEqual(new Set([{ id: clientId, name: 'Reports' }, { id: kept, name: 'App' }, undefined]))
  }

  expect((await withdraw(user.userId, clientId)).status).toBe(204)
  expect((await list(user.userId)).map((grant: { client: object }) => grant.client)).toMatchObject([{ id: kept }])
  expect(await list(other.userId)).toHaveLength(1)
  const left = await clientSessions()
  expect(left).toContainEqual({ user_id: user.userId, oauth_client_id: kept })
  expect(left).toContainEqual({ user_id: other.userId, oauth_client_id: clientId })
  expect(left).not.toContainEqual({ user_id: user.userId, oauth_client_id: clientId })
  expect((await service.get('/user', user.auth)).status).toBe(200)
  const codes = await pool.query('select from oauth_authorizations where user_id = $1 and client_id = $2', [
    ...[user.userId, clientId],
  ])
  expect(codes.rowCount).toBe(0)
  const asked = await begun(service, clientId)
  expect((await view(service, asked, user.auth)).body).toMatchObject({ scope: 'email' })
  expect((await decide(service, asked, user.auth, 'deny')).status).toBe(200)
})

test('a consent that is not there, and a wrong id, are refused', async () => {
  const { userId } = await service.signedIn()
  const { clientId } = await registered(service)
  expect(await list(userId)).toEqual([])
  expect(await withdraw(userId, clientId)).toMatchObject({
    status: 404,
    body: { error_code: 'oauth_consent_not_found' },
  })
  expect(await withdraw(userId, 'x')).toMatchObject({ status: 400, body: { msg: 'invalid client_id format' } })
})
