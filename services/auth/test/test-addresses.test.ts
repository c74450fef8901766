// Addresses of an operator's own tests (MAILER_TEST_OTP): codes are fixed, and no mail is ever sent.
import { AuthClient } from '@supabase/auth-js'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from './service.ts'

const CODE = '135790'
const password = 'correct horse'
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p']
const SETTINGS = {
  AUTH_MAILER_TEST_OTP: NAMES.map((name) => `${name}@tests.example:${CODE}`).join(','),
  AUTH_MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true',
  AUTH_MAILER_NOTIFICATIONS_EMAIL_CHANGED_ENABLED: 'true',
  // One counted message empties each budget, and no worker answers a request.
  AUTH_MAILER_MAX_PER_ADDRESS: '1/24h',
  AUTH_RATE_LIMIT_EMAIL_SENT: '1',
  AUTH_WORKERS_ENABLED: 'false',
}

let service: TestService
beforeAll(async () => {
  service = await startTestService(SETTINGS)
})
afterEach(async () => {
  const { body } = await service.get('/admin/messages', service.admin)
  await service.deps.pool.query('delete from messages')
  expect(body.messages).toEqual([])
})
afterAll(() => service.close())

const names = [...NAMES]
const freshAddress = () => `${names.shift()}@tests.example`
const verify = (type: string, email: string, token = CODE) => service.post('/verify', { type, email, token })
const bearer = ({ body }: { body: { access_token: string } }) => ({ authorization: `Bearer ${body.access_token}` })
const nextMinute = () => service.clock.advance({ seconds: 61 })

async function signedUp() {
  const email = freshAddress()
  await service.post('/signup', { email, password })
  const session = await verify('signup', email)
  expect(session.status).toBe(200)
  return { email, auth: bearer(session), userId: session.body.user.id }
}

test('a sign-up is confirmed by the code, which must have been requested and works once', async () => {
  const email = freshAddress()
  expect((await verify('signup', email)).status).toBe(403)
  expect(await service.post('/signup', { email, password })).toMatchObject({ status: 200 })
  expect((await verify('signup', email, '135791')).status).toBe(403)
  expect(await verify('signup', email)).toMatchObject({ status: 200, body: { user: { email } } })
  expect((await verify('signup', email)).status).toBe(403)
})

test('the code is there when /otp has answered, for a new user and a known one', async () => {
  const email = freshAddress()
  expect((await service.post('/otp', { email })).status).toBe(200)
  expect((await verify('email', email)).status).toBe(200)
  nextMinute()
  expect((await service.post('/otp', { email, create_user: false })).status).toBe(200)
  expect((await verify('email', email)).status).toBe(200)
})

test('the public client signs in by it', async () => {
  const email = freshAddress()
  const url = await service.app.listen({ port: 0, host: '127.0.0.1' })
  const client = new AuthClient({ url, autoRefreshToken: false, persistSession: false })
  expect((await client.signInWithOtp({ email })).error).toBeNull()
  const { data, error } = await client.verifyOtp({ email, token: CODE, type: 'email' })
  expect([error, data.user?.email]).toEqual([null, email])
})

test('/recover and /resend issue the code at once', async () => {
  const email = freshAddress()
  await service.post('/signup', { email, password })
  service.clock.advance({ seconds: 901 })
  const resent = await service.post('/resend', { type: 'signup', email })
  expect(resent).toMatchObject({ status: 200, body: { message_id: 'test-otp' } })
  expect((await verify('signup', email)).status).toBe(200)
  nextMinute()
  expect((await service.post('/recover', { email })).status).toBe(200)
  expect((await verify('recovery', email)).status).toBe(200)
})

test('a change of address is confirmed by the code at both addresses, and notifies neither', async () => {
  const { email, auth } = await signedUp()
  const next = freshAddress()
  expect((await service.put('/user', { email: next }, auth)).status).toBe(200)
  expect((await verify('email_change', email)).status).toBe(200)
  expect(await verify('email_change', next)).toMatchObject({ status: 200, body: { user: { email: next } } })
})

test('a nonce is the code, and a new password is not notified', async () => {
  const { auth } = await signedUp()
  const own = await service.with({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' })
  expect(await own.get('/reauthenticate', auth)).toMatchObject({ status: 200, body: { message_id: 'test-otp' } })
  const change = { password: 'another correct horse' }
  expect((await own.put('/user', { ...change, nonce: '000000' }, auth)).status).toBe(422)
  expect((await own.put('/user', { ...change, nonce: CODE }, auth)).status).toBe(200)
  await own.close()
})

test('an invitation and a generated link have the code, too', async () => {
  const [invited, linked] = [freshAddress(), freshAddress()]
  expect((await service.post('/invite', { email: invited }, service.admin)).status).toBe(200)
  expect((await verify('invite', invited)).status).toBe(200)
  const order = { type: 'magiclink', email: linked }
  const { body } = await service.post('/admin/generate_link', order, service.admin)
  expect(body.email_otp).toBe(CODE)
})

test('a sign-up with the address of an account sends nothing and lets no stranger in', async () => {
  const { email, userId } = await signedUp()
  service.clock.advance({ seconds: 901 })
  expect((await service.post('/signup', { email, password: 'a password of a stranger' })).status).toBe(200)
  expect((await verify('signup', email)).status).toBe(403)
  const { body } = await service.post('/token?grant_type=password', { email, password })
  expect(body.user.id).toBe(userId)
})

test('gaps hold, five wrong codes end one, and the next one is the same', async () => {
  const email = freshAddress()
  await service.post('/otp', { email })
  expect(await service.post('/otp', { email })).toMatchObject({
    status: 429,
    body: { error_code: 'over_email_send_rate_limit' },
  })
  for (let attempt = 0; attempt < 5; attempt++) await verify('email', email, '000000')
  expect((await verify('email', email)).status).toBe(403)
  nextMinute()
  await service.post('/otp', { email })
  expect((await verify('email', email)).status).toBe(200)
})

test('an address that is not listed has no fixed code, whatever its label', async () => {
  const own = await service.with({ AUTH_RATE_LIMIT_EMAIL_SENT: '100' })
  const addresses = ['a+label@tests.example', 'a@other.example', 'z@tests.example']
  for (const email of addresses) {
    await own.post('/signup', { email, password })
    expect((await own.post('/verify', { type: 'signup', email, token: CODE })).status).toBe(403)
  }
  const { body } = await own.get('/admin/messages', own.admin)
  expect(body.messages).toHaveLength(addresses.length)
  await own.deps.pool.query('delete from messages')
  await own.close()
})

const ONLY_STAFF = { AUTH_EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES: 'staff@site.example' }

test('addresses that get no mail have their code beside a list of those that may', async () => {
  const { auth } = await signedUp()
  const next = freshAddress()
  const own = await service.with({ ...ONLY_STAFF, AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
  expect((await own.put('/user', { email: 'z@tests.example' }, auth)).status).toBe(400)
  expect((await own.put('/user', { email: next }, auth)).status).toBe(200)
  expect((await verify('email_change', next)).status).toBe(200)
  await own.close()
})

test('after the end of the fixed codes an address is like any other', async () => {
  const email = freshAddress()
  const end = new Date(service.clock.now().getTime() + 60_000).toISOString()
  const own = await service.with({ ...ONLY_STAFF, AUTH_MAILER_TEST_OTP_VALID_UNTIL: end })
  expect((await own.post('/otp', { email })).status).toBe(200)
  service.clock.advance({ seconds: 61 })
  expect(await own.post('/otp', { email })).toMatchObject({
    status: 400,
    body: { error_code: 'email_address_not_authorized' },
  })
  await own.close()
})
