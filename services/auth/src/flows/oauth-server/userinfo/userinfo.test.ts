import { beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { asClient } from '../../../core/oauth-server/scopes/testing/client-tokens.ts'

let service: TestService
beforeAll(async () => {
  const plan = { name: 'plan', description: 'Plan', claims: ['app_metadata.plan'] }
  service = await startTestService({
    AUTH_OAUTH_SERVER_ENABLED: 'true',
    AUTH_OAUTH_SERVER_SCOPES: JSON.stringify([plan]),
  })
  return () => service.close()
})

const PHONE = '4917012345'

async function ada() {
  const client = await asClient(service, { scope: 'openid' })
  const rights = { app_metadata: { plan: 'gold' }, user_metadata: { name: 'Ada', team: 7 } }
  await service.put(`/admin/users/${client.userId}`, rights, service.admin)
  return client
}

test('userinfo answers the claims of the scopes, to GET and POST alike', async () => {
  const { as, userId: sub } = await ada()
  await service.put(`/admin/users/${sub}`, { phone: PHONE, phone_confirm: true }, service.admin)
  const { email } = (await service.get(`/admin/users/${sub}`, service.admin)).body
  const byScope: Record<string, object> = {
    openid: {},
    email: { email, email_verified: true },
    phone: { phone_number: `+${PHONE}`, phone_number_verified: true, phone: PHONE, phone_verified: true },
    profile: { name: 'Ada', updated_at: expect.any(Number) },
    'openid plan': { app_metadata: { plan: 'gold' } },
    'openid account:read': { user_metadata: expect.objectContaining({ team: 7 }) },
  }
  for (const [scope, claims] of Object.entries(byScope)) {
    const auth = await as({ scope })
    const answers = [
      await service.get('/oauth/userinfo', auth),
      await service.post('/oauth/userinfo', {}, auth),
      await service.submit('/oauth/userinfo', {}, auth),
    ]
    expect(answers.map(({ status, body }) => [status, body])).toEqual(answers.map(() => [200, { sub, ...claims }]))
    expect(answers[0]?.headers['cache-control']).toContain('no-store')
  }
})

test('a scope of the admin API opens its claims, as they are now', async () => {
  const { as, userId: sub } = await ada()
  const scope = { name: 'team:read', description: 'Team', claims: ['user_metadata.team'] }
  await service.post('/admin/oauth/scopes', scope, service.admin)
  const auth = await as({ scope: 'openid team:read' })
  expect((await service.get('/oauth/userinfo', auth)).body).toEqual({ sub, user_metadata: { team: 7 } })
  await service.delete('/admin/oauth/scopes/team:read', service.admin)
  expect((await service.get('/oauth/userinfo', auth)).body).toEqual({ sub })
})

test("the user's own token reads sub alone", async () => {
  const { userId: sub, auth } = await service.signedIn()
  expect(await service.get('/oauth/userinfo', auth)).toMatchObject({ status: 200, body: { sub } })
})

test('without a token the answer names the scheme, and with a useless one the fault', async () => {
  const without = await service.get('/oauth/userinfo')
  expect(without).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } })
  const useless = await service.get('/oauth/userinfo', { authorization: 'Bearer x' })
  expect(useless).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } })
  const { auth, sessionId } = await asClient(service, { scope: 'openid' })
  await service.deps.db.deleteFrom('sessions').where('id', '=', sessionId).execute()
  expect(await service.get('/oauth/userinfo', auth)).toMatchObject({
    status: 401,
    body: { error_code: 'session_not_found' },
  })
})
