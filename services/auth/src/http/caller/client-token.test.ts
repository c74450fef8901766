// Tokens of clients at the doors of this service; the table of scopes is in core/oauth-server/scopes/.
import { beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { asClient, asMachine } from '../../core/oauth-server/scopes/testing/client-tokens.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    AUTH_OAUTH_SERVER_ENABLED: 'true',
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_OAUTH_SERVER_RESOURCES: 'https://api.example',
  })
  return () => service.close()
})

const refused = (status: number, error_code: string) => ({ status, body: { error_code } })
const insufficient = refused(403, 'insufficient_scope')

test("the end of a client's session ends reads too, while the user's own token stays valid", async () => {
  const { auth, own, sessionId } = await asClient(service, { scope: 'account:read' })
  expect((await service.get('/user', auth)).status).toBe(200)
  await service.deps.db.deleteFrom('sessions').where('id', '=', sessionId).execute()
  expect(await service.get('/user', auth)).toMatchObject(refused(403, 'session_not_found'))
  expect((await service.get('/user', own)).status).toBe(200)
})

test('a token that names a client works with a session of a client alone, and such a session with no other', async () => {
  const { as, own, sessionId } = await asClient(service, { scope: 'account:read' })
  expect(await service.get('/user', own)).toMatchObject(insufficient)
  const takenBack = { oauth_client_id: null, scopes: null, resources: null }
  await service.deps.db.updateTable('sessions').set(takenBack).where('id', '=', sessionId).execute()
  expect((await service.get('/user', own)).status).toBe(200)
  const auth = await as({ scope: 'account:read' })
  expect(await service.get('/user', auth)).toMatchObject(refused(403, 'session_not_found'))
  expect(await service.get('/user', await as({ scope: 'account:read', session_id: undefined }))).toMatchObject(
    refused(403, 'session_not_found'),
  )
})

test('a token for another resource opens userinfo alone', async () => {
  const { as } = await asClient(service, { scope: 'openid account:read' })
  for (const aud of ['https://api.example', ['authenticated', 'https://api.example']]) {
    const auth = await as({ scope: 'openid account:read', aud })
    const answer = await service.get('/user', auth)
    expect(answer).toMatchObject(refused(401, 'bad_jwt'))
    expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
    expect((await service.get('/oauth/userinfo', auth)).status).toBe(200)
  }
})

test('a token that is bound to a key is refused without a proof of possession', async () => {
  const { as } = await asClient(service, { scope: 'openid' })
  const auth = await as({ scope: 'openid', cnf: { jkt: 'x' } })
  expect(await service.get('/oauth/userinfo', auth)).toMatchObject(refused(401, 'bad_jwt'))
})

test('a scope that is no text, or a client that is none, makes a token no full one', async () => {
  const { as } = await asClient(service)
  for (const claims of [{ scope: ['account:read'] }, { scope: undefined }, { client_id: null }, { client_id: '' }]) {
    expect(await service.put('/user', { data: {} }, await as(claims as never))).toMatchObject(insufficient)
  }
})

test('a client links no identity to the account of its token', async () => {
  const { auth } = await asClient(service, { scope: 'account:read account:write' })
  const body = { provider: 'google', id_token: 'x', link_identity: true }
  expect(await service.post('/token?grant_type=id_token', body, auth)).toMatchObject(insufficient)
})

test("an administrator's scope gives no more than the person has", async () => {
  const { auth } = await asClient(service, { scope: 'users:read' })
  expect(await service.get('/admin/users', auth)).toMatchObject(refused(403, 'not_admin'))
  const admin = await asClient(service, { scope: 'users:read', role: 'service_role' })
  expect((await service.get('/admin/users', admin.auth)).status).toBe(200)
  await service.deps.db.deleteFrom('sessions').where('id', '=', admin.sessionId).execute()
  expect(await service.get('/admin/users', admin.auth)).toMatchObject(refused(403, 'session_not_found'))
})

test("a machine's token ends with its client, its grant and the scopes of its registration", async () => {
  const { auth, clientId } = await asMachine(service, 'users:read audit:read')
  expect((await service.get('/admin/users', auth)).status).toBe(200)
  await service.put(`/admin/oauth/clients/${clientId}`, { scope: 'audit:read' }, service.admin)
  expect(await service.get('/admin/users', auth)).toMatchObject(insufficient)
  expect((await service.get('/admin/audit', auth)).status).toBe(200)
  await service.delete(`/admin/oauth/clients/${clientId}`, service.admin)
  expect(await service.get('/admin/audit', auth)).toMatchObject(refused(403, 'bad_jwt'))
  const other = await asMachine(service, 'users:read')
  const grants = { grant_types: ['authorization_code'], redirect_uris: ['https://app.example/callback'] }
  await service.put(`/admin/oauth/clients/${other.clientId}`, grants, service.admin)
  expect(await service.get('/admin/users', other.auth)).toMatchObject(refused(403, 'bad_jwt'))
})

test("a machine's token is of no user, though one should have its id", async () => {
  const { auth, as, clientId } = await asMachine(service, 'users:read account:read')
  await service.post(`/admin/users/${clientId}`, { email: 'twin@example.com' }, service.admin)
  expect(await service.get('/user', auth)).toMatchObject(refused(403, 'session_not_found'))
  const posing = await as({ scope: 'users:read', sub: service.deps.newId() })
  expect(await service.get('/admin/users', posing)).toMatchObject(refused(403, 'bad_jwt'))
})

test('audit entries name the client that acted, for itself or for a person', async () => {
  const machine = await asMachine(service, 'users:write')
  const person = await asClient(service, { scope: 'account:write' })
  await service.post('/admin/users', { email: 'made@example.com' }, machine.auth)
  await service.put('/user', { data: { a: 1 } }, person.auth)
  const { body } = await service.get('/admin/audit?per_page=1000', service.admin)
  const payloads = body.map(({ payload }: { payload: object }) => payload)
  expect(payloads).toContainEqual(
    expect.objectContaining({
      ...{ action: 'user_signedup', actor_id: machine.clientId, actor_username: 'Night job' },
      client_id: machine.clientId,
    }),
  )
  expect(payloads).toContainEqual(
    expect.objectContaining({ action: 'user_modified', actor_id: person.userId, client_id: person.clientId }),
  )
})

test("with OAUTH_SERVER_FULL_USER_TOKENS a person's token counts as its user's own, but agrees to no client", async () => {
  const full = await service.with({ AUTH_OAUTH_SERVER_FULL_USER_TOKENS: 'true' })
  const { auth, as } = await asClient(service, { scope: 'email', role: 'service_role' })
  expect((await full.put('/user', { password: 'another horse' }, auth)).status).toBe(200)
  expect((await full.get('/admin/users', auth)).status).toBe(200)
  expect(await full.get('/user', await as({ scope: 'email', aud: 'https://api.example' }))).toMatchObject(
    refused(401, 'bad_jwt'),
  )
  const machine = await asMachine(service, 'audit:read')
  expect(await full.get('/admin/users', machine.auth)).toMatchObject(insufficient)
  const off = await service.with({ AUTH_OAUTH_SERVER_FULL_USER_TOKENS: 'true', AUTH_OAUTH_SERVER_ENABLED: 'false' })
  expect(await off.get('/user', auth)).toMatchObject(insufficient)
  await Promise.all([full.close(), off.close()])
})
