import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ProviderSignIns, startProviderSignIns } from './provider-sign-in.ts'
import { type Answer, fragmentOf, linkPath, locationOf, type TestService } from './service.ts'

// Each answer of a test service is held to headers of 4,000 bytes (service.ts).

let signIns: ProviderSignIns
let service: TestService
beforeAll(async () => {
  signIns = await startProviderSignIns()
  service = signIns.service
})
afterAll(() => signIns.close())

/** The service adds keys of its own to the metadata of a user. */
const large = { text: 'x'.repeat(16 * 1024 - 200) }

async function userWithLargeMetadata(email: string) {
  const made = await service.post(
    '/admin/users',
    { email, password: 'correct horse', email_confirm: true, user_metadata: large, app_metadata: large },
    service.admin,
  )
  expect(made.status).toBe(200)
}

async function linkTo(email: string, form: object = {}): Promise<string> {
  expect((await service.post('/otp', { email, ...form })).status).toBe(200)
  return linkPath((await service.mailbox.waitFor(email)).text)
}

test('a link of a user with the largest metadata opens a page that goes on with the session', async () => {
  await userWithLargeMetadata('large@example.com')
  const answer = await service.get(await linkTo('large@example.com'))
  expect(answer.status).toBe(200)
  expect(answer.headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' })
  expect(locationOf(answer)).toMatch(/^https:\/\/site\.example\/?#access_token=/)
  const { access_token, type } = fragmentOf(answer)
  expect(type).toBe('magiclink')
  const { body } = await service.get('/user', { authorization: `Bearer ${access_token}` })
  expect(body).toMatchObject({ email: 'large@example.com', user_metadata: expect.objectContaining(large) })
})

test('a link of a user with usual metadata still redirects', async () => {
  const email = 'usual@example.com'
  await service.post('/admin/users', { email, email_confirm: true, user_metadata: { plan: 'pro' } }, service.admin)
  const { status, headers } = await service.get(await linkTo(email))
  expect([status, headers.location]).toEqual([303, expect.stringContaining('#access_token=')])
})

test.each(['azure', 'keycloak'])('a sign-in at %s whose tokens are long opens such a page', async (name) => {
  const token = 'x'.repeat(2500)
  signIns.far.answer(name, 'token', (response, usual) => {
    response.end(JSON.stringify({ ...JSON.parse(usual), access_token: token }))
  })
  const { answer } = await signIns.signIn(name, signIns.newAccount(name))
  expect(answer.status).toBe(200)
  expect(fragmentOf(answer as Answer)).toMatchObject({ provider: name, provider_token: token })
})

test.each(['login_hint', 'prompt'])(
  'a sign-in that passes a long %s on to a provider begins by such a page',
  async (key) => {
    const value = 'x'.repeat(2000)
    const answer = await service.get(`/authorize?provider=google&${key}=${value}&more=${value}`)
    expect(answer.status).toBe(200)
    expect(new URL(locationOf(answer)).searchParams.get(key)).toBe(value)
  },
)
