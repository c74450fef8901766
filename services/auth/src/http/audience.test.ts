import { expect } from 'vitest'
import { startOpenIdProvider } from '../../test/openid-provider.ts'
import { test, toSignedIn } from '../../test/service.ts'

const email = 'somebody@example.com'
const password = 'correct horse'
const FOREIGN = { 'x-jwt-aud': 'internal-admin-portal' }

test.for<[string, object]>([
  ['/signup', { email, password }],
  ['/token?grant_type=password', { email, password }],
  ['/token?grant_type=id_token', { provider: 'google', id_token: 'x' }],
  ['/otp', { email }],
  ['/magiclink', { email }],
  ['/recover', { email }],
  ['/resend', { type: 'signup', email }],
  ['/verify', { type: 'signup', email, token: '123456' }],
])('%s refuses an audience that is not configured', async ([url, body], { service }) => {
  expect(await service.post(url, body, FOREIGN)).toMatchObject({
    status: 400,
    body: { error_code: 'validation_failed', msg: 'X-JWT-AUD must name one of the audiences of this service' },
  })
})

test('the configured ones are JWT_AUD and JWT_AUDIENCES', async ({ service }) => {
  const audiences = await service.with({ AUTH_JWT_AUD: 'app', AUTH_JWT_AUDIENCES: 'shop, blog' })
  const signUp = (aud: string) =>
    audiences.post('/signup', { email: `of-${aud}@example.com`, password }, aud ? { 'x-jwt-aud': aud } : {})
  for (const [asked, given] of [
    ['', 'app'],
    ['app', 'app'],
    ['shop', 'shop'],
    ['blog', 'blog'],
  ] as const) {
    expect(await signUp(asked)).toMatchObject({ status: 200, body: { aud: given } })
  }
  for (const asked of ['authenticated', 'Shop', 'shop,blog']) expect((await signUp(asked)).status).toBe(400)
  await audiences.close()
})

test('an admin may name any', async ({ service }) => {
  const headers = { ...service.admin, ...FOREIGN }
  const created = await service.post('/admin/users', { email }, headers)
  expect(created).toMatchObject({ status: 200, body: { aud: 'internal-admin-portal' } })
  const { body } = await service.get('/admin/users', headers)
  expect(body.users).toMatchObject([{ id: created.body.id }])
})

test('an account at a provider signs in to the audience of its user and to no other', async ({ service }) => {
  const google = await startOpenIdProvider()
  const audiences = await service.with({
    ...google.settings('GOOGLE'),
    AUTH_JWT_AUD: 'app',
    AUTH_JWT_AUDIENCES: 'shop',
  })
  const person = { sub: 'of-the-shop', email: 'of-the-shop@example.com', email_verified: true, name: 'Somebody' }
  const signIn = async (aud: string) => {
    const body = { provider: 'google', id_token: await google.idToken(person) }
    return audiences.post('/token?grant_type=id_token', body, { 'x-jwt-aud': aud })
  }
  const inShop = await signIn('shop')
  expect(inShop).toMatchObject({ status: 200, body: { user: { aud: 'shop' } } })
  const before = await audiences.get('/user', { ...toSignedIn(inShop.body).auth, 'x-jwt-aud': 'shop' })
  audiences.clock.advance({ seconds: 1 })
  expect(await signIn('app')).toMatchObject({
    status: 403,
    body: {
      error_code: 'unexpected_audience',
      msg: 'This account at the provider belongs to a user of another audience',
    },
  })
  const after = await audiences.get('/user', { ...toSignedIn(inShop.body).auth, 'x-jwt-aud': 'shop' })
  expect(after).toMatchObject({ status: 200, body: before.body })
  expect((await signIn('shop')).body.user.id).toBe(inShop.body.user.id)
  await audiences.close()
  await google.close()
})
