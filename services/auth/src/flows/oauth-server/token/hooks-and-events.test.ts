// Token hooks and receivers of events see the sessions of applications as such.
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type SignedIn, startTestService, type TestService } from '../../../../test/service.ts'
import { type Decider, startDecider, unsignedHooks } from '../../../../test/upstreams/hook-receiver.ts'
import { addPausedReceiver, eventsDuring } from '../../../../test/upstreams/paused-receiver.ts'
import { registered } from '../testing/applications.ts'
import { failure, shown, type TestClient } from '../testing/clients.ts'
import { codeOf, exchange, refresh, tokensOf } from '../testing/codes.ts'

interface Question {
  user_id: string
  authentication_method: string
  claims: Record<string, unknown>
}

let service: TestService
let receiver: Decider<Question>
let client: TestClient
let user: SignedIn
const unchanged = ({ claims }: Question) => ({ claims })
beforeAll(async () => {
  receiver = await startDecider<Question>(unchanged)
  service = await startTestService({
    AUTH_OAUTH_SERVER_ENABLED: 'true',
    AUTH_OAUTH_SERVER_RESOURCES: 'https://api.example',
    ...unsignedHooks(receiver, 'CUSTOM_ACCESS_TOKEN'),
  })
  client = await registered(service, { token_endpoint_auth_method: 'none' })
  user = await service.signedIn()
})
afterAll(async () => {
  await service.close()
  await receiver.close()
})

const scope = 'email offline_access'

test('the hook sees the application, its scopes and the audience, and may add claims', async () => {
  receiver.decide(({ claims }) => ({ claims: { ...claims, tenant: 'a' } }))
  const { claims, refresh_token: token } = await tokensOf(service, client, user, {
    scope,
    resource: 'https://api.example',
  })
  const question = receiver.asked().at(-1)
  const named = { client_id: client.clientId, act: { sub: client.clientId } }
  expect(question).toMatchObject({
    ...{ user_id: user.userId, authentication_method: 'oauth_provider/authorization_code' },
    claims: { ...named, scope: 'email offline_access', aud: 'https://api.example' },
  })
  expect(question?.claims).not.toHaveProperty('user_metadata')
  expect(claims).toMatchObject({ tenant: 'a', scope: 'email offline_access' })
  const { body } = await refresh(service, client, token)
  expect(decodeJwt(body.access_token)).toMatchObject({ tenant: 'a', ...named })
  receiver.decide(unchanged)
})

test.each([
  ['scope', 'email users:write'],
  ['client_id', 'another'],
  ['cnf', { jkt: 'x' }],
  ['act', { sub: 'x' }],
])('the hook cannot change %s, and a code that it failed stays valid', async (name, value) => {
  const code = await codeOf(service, client, user)
  receiver.decide(({ claims }) => ({ claims: { ...claims, [name]: value } }))
  expect(shown(await exchange(service, client, code))).toEqual(failure(500, 'server_error'))
  receiver.decide(unchanged)
  expect((await exchange(service, client, code)).status).toBe(200)
})

test('a refusal of the hook refuses the tokens, and neither code nor refresh token is used up', async () => {
  const { refresh_token: token } = await tokensOf(service, client, user, { scope })
  const code = await codeOf(service, client, user)
  receiver.decide(() => ({ error: { http_code: 403, message: 'no token today' } }))
  for (const answer of [await exchange(service, client, code), await refresh(service, client, token)]) {
    expect(answer.body).toMatchObject({ error: 'access_denied', error_description: 'no token today' })
  }
  receiver.decide(unchanged)
  expect((await exchange(service, client, code)).status).toBe(200)
  expect((await refresh(service, client, token)).status).toBe(200)
})

test('with a hook, too, of many uses at once one gets tokens', async () => {
  const code = await codeOf(service, client, user)
  const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(service, client, code)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
})

test('receivers hear of the session of an application, and of its end by the application or with it', async () => {
  await addPausedReceiver(service, ['session.created', 'session.ended'])
  const signedIn = await service.signedIn()
  const by = await registered(service, { token_endpoint_auth_method: 'none' })
  const events = await eventsDuring(service, async () => {
    const { refresh_token: token } = await tokensOf(service, by, signedIn, { scope })
    await service.submit('/oauth/revoke', { client_id: by.clientId, token })
    await tokensOf(service, by, signedIn, { scope })
    await service.delete(`/admin/oauth/clients/${by.clientId}`, service.admin)
  })
  expect(events.map(({ event, user_id: id, data }) => [event, id, data.reason])).toEqual([
    ['session.created', signedIn.userId, undefined],
    ['session.ended', signedIn.userId, 'signed_out'],
    ['session.created', signedIn.userId, undefined],
    ['session.ended', signedIn.userId, 'ended_by_admin'],
  ])
  expect(events[0]?.data.session).toMatchObject({ methods: ['oauth_provider/authorization_code'] })
})
