// Limits of scopes at the routes that they open: members of answers and of changes.
import { beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { asClient, asMachine } from './testing/client-tokens.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ AUTH_OAUTH_SERVER_ENABLED: 'true' })
  return () => service.close()
})

const insufficient = { status: 403, body: { error_code: 'insufficient_scope' } }

/** A client's session of a user with everything that a scope could show. */
async function withProfile() {
  const client = await asClient(service, { scope: 'openid email phone profile account:read account:write' })
  const phone = `49170${String(client.userId).replaceAll(/\D/g, '').slice(0, 7)}`
  const user = { phone, phone_confirm: true, user_metadata: { name: 'Ada', team: 7 }, app_metadata: { plan: 'gold' } }
  await service.put(`/admin/users/${client.userId}`, user, service.admin)
  return { ...client, phone }
}

test.for<[string, object]>([
  ['email', { email: expect.stringContaining('@'), phone: '', user_metadata: {} }],
  ['phone', { email: '', phone: expect.stringMatching(/^49/), user_metadata: {} }],
  ['profile', { email: '', phone: '', user_metadata: { name: 'Ada' } }],
  ['email profile', { email: expect.stringContaining('@'), phone: '', user_metadata: { name: 'Ada' } }],
])('GET /user with %s is cut to it', async ([scope, members]) => {
  const { as, userId } = await withProfile()
  const { body } = await service.get('/user', await as({ scope }))
  expect(body).toMatchObject({ id: userId, app_metadata: {}, identities: [], ...members })
  expect(body).not.toHaveProperty('last_sign_in_at')
  expect(body).not.toHaveProperty('factors')
  expect(body).not.toHaveProperty('has_password')
  expect('email_confirmed_at' in body).toBe(scope.includes('email'))
  expect('phone_confirmed_at' in body).toBe(scope === 'phone')
})

test('GET /user with account:read is whole', async () => {
  const { as, userId } = await withProfile()
  const { body } = await service.get('/user', await as({ scope: 'account:read' }))
  const whole = (await service.get(`/admin/users/${userId}`, service.admin)).body
  expect(body).toEqual({ ...whole, has_password: true })
})

test('account:write changes data alone, and its answer is cut too', async () => {
  const { as } = await withProfile()
  const auth = await as({ scope: 'account:write' })
  const refusals = [
    { email: 'next@example.com' },
    { phone: '4917099' },
    { password: 'another horse' },
    { app_metadata: { plan: 'free' } },
    { data: { a: 1 }, password: 'another horse' },
  ]
  for (const body of refusals) expect(await service.put('/user', body, auth)).toMatchObject(insufficient)
  const answer = await service.put('/user', { data: { team: 8 }, code_challenge: null }, auth)
  expect(answer).toMatchObject({ status: 200, body: { email: '', user_metadata: {} } })
  const reader = await as({ scope: 'account:read' })
  expect((await service.get('/user', reader)).body.user_metadata).toMatchObject({ team: 8 })
})

test.for(['machine', 'person'])('users:write of a %s gives no rights and no way in', async (kind) => {
  const scope = 'users:write'
  const { auth } =
    kind === 'machine' ? await asMachine(service, scope) : await asClient(service, { scope, role: 'service_role' })
  const { userId } = await service.signedIn()
  const changes = [
    ...[{ role: 'service_role' }, { role: 'editor' }, { app_metadata: { role: 'service_role' } }],
    ...[{ app_metadata: { role: null } }, { password: 'another horse' }],
  ]
  for (const change of [...changes, { password_hash: '$2a$10$x' }]) {
    const body = { email: `${kind}@example.com`, ...change }
    expect(await service.post('/admin/users', body, auth)).toMatchObject(insufficient)
    expect(await service.post(`/admin/users/${service.deps.newId()}`, body, auth)).toMatchObject(insufficient)
  }
  for (const change of changes) {
    expect(await service.put(`/admin/users/${userId}`, change, auth)).toMatchObject(insufficient)
  }
  const { status } = await service.put(`/admin/users/${userId}`, { app_metadata: { plan: 'gold' } }, auth)
  expect(status).toBe(200)
})

test.for([{ role: 'service_role' }, { role: 'admin' }, { app_metadata: { role: 'supabase_admin' } }])(
  'a client changes, deletes and signs out no user with %o',
  async (rights) => {
    const { auth } = await asMachine(service, 'users:read users:write')
    const { userId } = await service.signedIn()
    await service.put(`/admin/users/${userId}`, rights, service.admin)
    const path = `/admin/users/${userId}`
    expect(await service.put(path, { email: 'mine@example.com' }, auth)).toMatchObject(insufficient)
    expect(await service.delete(path, auth)).toMatchObject(insufficient)
    expect(await service.delete(`${path}/sessions`, auth)).toMatchObject(insufficient)
    expect((await service.get(path, auth)).status).toBe(200)
  },
)
