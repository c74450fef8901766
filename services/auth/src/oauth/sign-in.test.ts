import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OpenIdProvider, startOpenIdProvider } from '../../test/openid-provider.ts'
import { fragmentOf, startTestService, type TestService } from '../../test/service.ts'

let provider: OpenIdProvider
let service: TestService
beforeAll(async () => {
  provider = await startOpenIdProvider()
  service = await startTestService(provider.settings('GOOGLE'))
})
afterAll(async () => {
  await service.close()
  await provider.close()
})

test('a stranger with a verified address gets an account and a session', async () => {
  provider.next({ sub: 'g-1', email: 'New.Person@example.com', email_verified: true, name: 'New Person' })
  const begun = await service.get('/authorize?provider=google&redirect_to=https://site.example/app')
  expect(begun.status).toBe(302)
  const callback = await provider.visit(String(begun.headers.location))
  const answer = await service.get(callback.pathname + callback.search)
  expect(answer.status).toBe(302)
  const { access_token } = fragmentOf(answer)
  await service.get('/user', { authorization: `Bearer ${access_token}` })
})
