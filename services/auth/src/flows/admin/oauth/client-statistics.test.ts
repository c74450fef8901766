// Sign-ins by client of the OAuth server (contract/auth-oauth-server.md 2).
import { expect, onTestFinished, test } from 'vitest'
import { createDatabase, startTestService, type TestService } from '../../../../test/service.ts'
import { DAY_MS } from '../../../core/statistics/statistics.ts'
import { deleteExpired } from '../../../housekeeping.ts'
import { registered } from '../../oauth-server/testing/applications.ts'
import { askForTokens, exchange, refresh, tokensOf } from '../../oauth-server/testing/codes.ts'

const SETTINGS = {
  AUTH_OAUTH_SERVER_ENABLED: 'true',
  AUTH_CONSOLE_ENABLED: 'true',
  AUTH_HOSTED_PAGES_ENABLED: 'true',
}

const clientOf = (service: TestService) =>
  registered(service, {
    token_endpoint_auth_method: 'client_secret_post',
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
    scope: 'email offline_access users:read',
  })
const read = (service: TestService, id: string, query = '') =>
  service.get(`/admin/oauth/clients/${id}/statistics${query}`, service.admin)
const grantsOf = async (service: TestService, id: string, query = '') =>
  (await read(service, id, query)).body.days.map(({ grants }: { grants: object }) => grants)

test('sign-ins of a client are counted by day and grant, survive a restart, and are no part of the overview', async () => {
  const database = await createDatabase()
  onTestFinished(database.drop)
  const settings = { ...SETTINGS, AUTH_DATABASE_URL: database.url }
  const service = await startTestService(settings)
  const { clock } = service
  const [client, { clientId: other }] = [await clientOf(service), await clientOf(service)]
  const { clientId: id } = client
  const user = await service.signedIn()
  await tokensOf(service, client, user)
  const { refresh_token: token } = await tokensOf(service, client, user, { scope: 'email offline_access' })
  expect((await refresh(service, client, token)).status).toBe(200)
  expect((await exchange(service, client, 'no code')).status).toBe(400)
  const machine = { grant_type: 'client_credentials', scope: 'users:read' }
  expect((await askForTokens(service, client, machine)).status).toBe(200)
  const today = { authorization_code: 2, client_credentials: 1 }
  expect((await grantsOf(service, id)).slice(-2)).toEqual([{}, today])
  expect((await read(service, id)).body.days.at(-1).from).toBe(
    `${clock.now().toISOString().slice(0, 10)}T00:00:00.000Z`,
  )
  expect(await grantsOf(service, other, '?days=2')).toEqual([{}, {}])
  const { body } = await service.get('/admin/statistics', service.admin)
  expect(JSON.stringify(body)).not.toContain(id)
  await service.close()

  const restarted = await startTestService(settings, clock)
  onTestFinished(() => restarted.close())
  clock.advance({ seconds: (3 * DAY_MS) / 1000 })
  await deleteExpired(restarted.deps, restarted.deps.log)
  expect(await grantsOf(restarted, id, '?days=4')).toEqual([today, {}, {}, {}])
})

test('an unknown client, a wrong id and a wrong number of days are refused', async () => {
  const service = await startTestService(SETTINGS)
  onTestFinished(() => service.close())
  const { clientId: id } = await clientOf(service)
  expect(await read(service, service.deps.newId())).toMatchObject({ body: { error_code: 'oauth_client_not_found' } })
  expect(await read(service, 'x')).toMatchObject({ status: 400, body: { msg: 'invalid client_id format' } })
  expect((await read(service, id, '?days=397')).status).toBe(400)
  const uncounted = await service.with({ AUTH_CONSOLE_ENABLED: 'false' })
  onTestFinished(() => uncounted.close())
  expect(await read(uncounted, id)).toMatchObject({ status: 404, body: { error_code: 'feature_disabled' } })
})
