// POST /oauth/device_authorization (RFC 8628, section 3.1).
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { DEVICE_GRANT, pollDevice } from '../../../core/oauth-server/devices/redeem-device-code.ts'
import { hashLinkToken } from '../../../core/one-time-tokens/one-time-token.ts'
import { visitor } from '../../pages/oauth/testing/visitor.ts'
import { registered } from '../testing/applications.ts'
import { failure } from '../testing/clients.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ AUTH_OAUTH_SERVER_ENABLED: 'true', AUTH_HOSTED_PAGES_ENABLED: 'true' })
})
afterAll(() => service.close())

const begin = (form: Record<string, string>, headers = {}) =>
  service.submit('/oauth/device_authorization', form, headers)

test('a device gets a code for its user and one for itself, of which the database has the hash alone', async () => {
  const { clientId: id } = await registered(service, { client_type: 'public', grant_types: [DEVICE_GRANT] })
  const { status, body, headers } = await begin({ client_id: id, scope: 'email' })
  expect([status, headers['cache-control'], body]).toEqual([
    200,
    'no-store',
    {
      device_code: expect.stringMatching(/^[\w-]{43}$/),
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: 'https://auth.example/ui/device',
      verification_uri_complete: `https://auth.example/ui/device?user_code=${body.user_code}`,
      ...{ expires_in: 600, interval: 5 },
    },
  ])
  const { rows } = await service.deps.pool.query('select * from oauth_device_codes where client_id = $1', [id])
  expect(JSON.stringify(rows)).not.toContain(body.device_code)
})

test('a client without the grant, a scope beyond its own and an unknown client are refused', async () => {
  const { clientId: id } = await registered(service, { client_type: 'public' })
  expect(await begin({ client_id: id })).toMatchObject(failure(400, 'unauthorized_client'))
  const device = await registered(service, { client_type: 'public', grant_types: [DEVICE_GRANT], scope: 'email' })
  expect(await begin({ client_id: device.clientId, scope: 'phone' })).toMatchObject(failure(400, 'invalid_scope'))
  expect(await begin({ client_id: '3f2504e0-4f89-41d3-9a0c-0305e82c3301' })).toMatchObject(
    failure(401, 'invalid_client'),
  )
})

test('a device that asks too early has to wait longer, and one whose code has expired begins anew', async () => {
  const { clientId: id } = await registered(service, { client_type: 'public', grant_types: [DEVICE_GRANT] })
  const { body } = await begin({ client_id: id, scope: 'email' })
  const poll = async (seconds: number) => {
    service.clock.advance({ seconds })
    return pollDevice(service.deps, { id }, hashLinkToken(body.device_code)).catch(({ code }: { code: string }) => code)
  }
  const answers: unknown[] = []
  for (const seconds of [5, 4, 9, 15, 600]) answers.push(await poll(seconds))
  const [pending, early] = ['authorization_pending', 'slow_down']
  expect(answers).toEqual([pending, early, early, pending, 'expired_token'])
  const other = await registered(service, { client_type: 'public', grant_types: [DEVICE_GRANT] })
  const wrong = pollDevice(service.deps, { id: other.clientId }, hashLinkToken(body.device_code))
  await expect(wrong).rejects.toMatchObject({ code: 'invalid_grant' })
})

const poll = (clientId: string, code: string, at: TestService = service) =>
  at.submit('/oauth/token', { grant_type: DEVICE_GRANT, device_code: code, client_id: clientId })

/** A device whose user gives an answer. */
async function answered(answer: 'allow' | 'deny') {
  const { clientId: id } = await registered(service, {
    client_type: 'public',
    grant_types: [DEVICE_GRANT, 'refresh_token'],
  })
  const { body } = await begin({ client_id: id, scope: 'email offline_access' })
  expect(await poll(id, body.device_code)).toMatchObject(failure(400, 'authorization_pending'))
  const user = await visitor(service)
  const page = await user.signIn(await user.open(body.verification_uri_complete.replace('https://auth.example', '')))
  await user.press(page, { answer })
  service.clock.advance({ seconds: 5 })
  return { id, code: body.device_code as string, user }
}

test('a device whose user agrees gets tokens of the scopes that were shown, and one whose user refuses gets none', async () => {
  const { id, code, user } = await answered('allow')
  const { status, body } = await poll(id, code)
  expect([status, body.scope]).toEqual([200, 'email offline_access'])
  const seen = await service.get('/user', { authorization: `Bearer ${body.access_token}` })
  expect([seen.status, seen.body.email]).toEqual([200, user.email])
  const renewed = { grant_type: 'refresh_token', refresh_token: body.refresh_token, client_id: id }
  expect((await service.submit('/oauth/token', renewed)).status).toBe(200)
  const refused = await answered('deny')
  expect(await poll(refused.id, refused.code)).toMatchObject(failure(400, 'access_denied'))
})

test('of twenty uses of a device code at once on two replicas one gets tokens, and a later use ends its session', async () => {
  const { id, code } = await answered('allow')
  const other = await service.with({})
  const uses = await Promise.all(Array.from({ length: 20 }, (_, n) => poll(id, code, n % 2 ? other : service)))
  const given = uses.filter(({ status }) => status === 200)
  expect(given).toHaveLength(1)
  for (const use of uses) if (use.status !== 200) expect(use).toMatchObject(failure(400, 'invalid_grant'))
  expect(await poll(id, code)).toMatchObject(failure(400, 'invalid_grant'))
  const auth = { authorization: `Bearer ${given[0]?.body.access_token}` }
  expect((await service.get('/user', auth)).body.error_code).toBe('session_not_found')
  await other.close()
})
