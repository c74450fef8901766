// Addresses of an operator's own tests (MAILER_TEST_OTP): codes are fixed, and no mail is ever sent.
import { AuthClient } from '@supabase/auth-js'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from './service.ts'

const CODE = '135790'
/** An answer does not reveal that the address has a fixed code. */
const ORDINARY_ID = expect.stringMatching(/^[0-9a-f-]{36}$/)
const password = 'correct horse'
const NAMES = [
  'a',
  'b',
  'c',
  'd',
  'e',
  'f',
  'g',
  'h',
  'i',
  'j',
  'k',
  'l',
  'm',
  'n',
  'o',
  'p',
  'q',
  'r',
  's',
  't',
  'u',
  'v',
  'w',
  'x',
  'y',
]
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
  expect(resent).toMatchObject({ status: 200, body: { message_id: ORDINARY_ID } })
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
  expect(await own.get('/reauthenticate', auth)).toMatchObject({ status: 200, body: { message_id: ORDINARY_ID } })
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

test('after twenty wrong guesses the code is refused for hours, however often it is issued', async () => {
  const email = freshAddress()
  const guess = (token: string) => verify('email', email, token)
  for (let issue = 0; issue < 5; issue++) {
    await service.post('/otp', { email })
    for (let attempt = 0; attempt < 4; attempt++) expect((await guess('000000')).status).toBe(403)
    nextMinute()
  }
  await service.post('/otp', { email })
  expect((await guess(CODE)).status).toBe(403)
  service.clock.advance({ seconds: 6 * 3600 })
  await service.post('/otp', { email })
  expect((await guess(CODE)).status).toBe(200)
})

test('right codes do not count as guesses', async () => {
  const { email } = await signedUp()
  for (let time = 0; time < 21; time++) {
    nextMinute()
    await service.post('/otp', { email })
    expect((await verify('email', email)).status).toBe(200)
  }
})

test('wrong nonces count as guesses at the fixed code', async () => {
  const { auth } = await signedUp()
  const own = await service.with({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' })
  const change = (nonce: string) => own.put('/user', { password: 'another correct horse', nonce }, auth)
  for (let issue = 0; issue < 5; issue++) {
    await own.get('/reauthenticate', auth)
    for (let attempt = 0; attempt < 4; attempt++) await change('000000')
    nextMinute()
  }
  await own.get('/reauthenticate', auth)
  expect((await change(CODE)).status).toBe(422)
  await own.close()
})

test('a code challenge gives a network no gap of its own, because the code serves every network', async () => {
  const email = freshAddress()
  const own = await service.with({ AUTH_RATE_LIMIT_HEADER: 'x-client' })
  const request = (network: string) => {
    const code_challenge = 'x'.repeat(43)
    return own.post('/otp', { email, code_challenge, code_challenge_method: 's256' }, { 'x-client': network })
  }
  expect((await request('192.0.2.1')).status).toBe(200)
  expect((await request('198.51.100.1')).status).toBe(429)
  await own.close()
})

test('a change of address that is sent again keeps the attempts of the code', async () => {
  const { email, auth } = await signedUp()
  const next = freshAddress()
  await service.put('/user', { email: next }, auth)
  for (let attempt = 0; attempt < 4; attempt++) await verify('email_change', next, '000000')
  service.clock.advance({ seconds: 901 })
  expect((await service.post('/resend', { type: 'email_change', email })).status).toBe(200)
  expect((await verify('email_change', next, '000000')).status).toBe(403)
  expect((await verify('email_change', next)).status).toBe(403)
})

test.for([
  ['end', 'AUTH_MAILER_TEST_OTP_VALID_UNTIL'],
  ['removal', 'AUTH_MAILER_TEST_OTP'],
])('the %s of the setting ends codes that were issued', async ([, name]) => {
  const [invited, requested] = [freshAddress(), freshAddress()]
  const end = new Date(service.clock.now().getTime() + 60_000).toISOString()
  await service.post('/invite', { email: invited }, service.admin)
  await service.post('/otp', { email: requested })
  const own = await service.with({ [name as string]: name?.endsWith('UNTIL') ? end : '' })
  nextMinute()
  for (const [type, email] of [
    ['invite', invited],
    ['email', requested],
  ]) {
    expect((await own.post('/verify', { type, email, token: CODE })).status).toBe(403)
  }
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
