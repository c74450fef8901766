// Defects of contract/auth-core.md 18 that no other test shows.
import { perFile } from '@services/common/testing/per-file'
import { describe, expect } from 'vitest'
import { test as base, codeIn, startTestService, type TestService, toSignedIn } from '../service.ts'

const password = 'correct horse'
const PHONE = '4915100000001'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({
      AUTH_SMS_TEST_OTP: `${PHONE}:111111`,
      AUTH_MAILER_EXTERNAL_HOSTS: 'eu.example',
    }),
  ),
})

// contract/auth-core.md 18, BUG2 and the list after it: PUT /user and /resend do not check the pair as the others do.
describe('a code challenge is checked alike wherever it is taken:', () => {
  const challenge = 'x'.repeat(43)
  test.for<[string, object]>([
    ['a method nobody knows', { code_challenge: challenge, code_challenge_method: 'md5' }],
    ['a challenge without a method', { code_challenge: challenge }],
    ['a method without a challenge', { code_challenge_method: 's256' }],
    ['a short challenge', { code_challenge: 'x'.repeat(42), code_challenge_method: 's256' }],
    ['a long challenge', { code_challenge: 'x'.repeat(129), code_challenge_method: 'plain' }],
    ['characters a challenge has not', { code_challenge: `+${challenge}`, code_challenge_method: 's256' }],
  ])('%s', async ([, pair], { service }) => {
    const { auth } = await service.signedIn()
    const email = 'challenged@example.com'
    const answers = [
      await service.post('/signup', { email, password, ...pair }),
      await service.post('/otp', { email, ...pair }),
      await service.post('/magiclink', { email, ...pair }),
      await service.post('/recover', { email, ...pair }),
      await service.post('/resend', { type: 'signup', email, ...pair }),
      await service.post('/resend', { type: 'email_change', email, ...pair }),
      await service.put('/user', { email, ...pair }, auth),
    ]
    const refused = { status: 400, body: { error_code: 'validation_failed' } }
    expect(answers).toMatchObject(answers.map(() => refused))
    expect((await service.get('/user', auth)).body).not.toHaveProperty('new_email')
    expect(service.mailbox.messages({ to: email })).toEqual([])
  })
})

// contract/auth-core.md 18, BUG12: more than the 72 bytes bcrypt reads.
test('of a long password set by an admin every byte counts', async ({ service }) => {
  const email = 'long@example.com'
  const long = 'ü'.repeat(50)
  const made = await service.post('/admin/users', { email, password: long, email_confirm: true }, service.admin)
  expect(made.status).toBe(200)
  const signIn = (typed: string) => service.post('/token?grant_type=password', { email, password: typed })
  expect((await signIn(long.slice(0, 40))).body.error_code).toBe('invalid_credentials')
  expect((await signIn(long)).status).toBe(200)
  const longer = `${long}!`
  expect((await service.put(`/admin/users/${made.body.id}`, { password: longer }, service.admin)).status).toBe(200)
  expect([(await signIn(longer)).status, (await signIn(long)).status]).toEqual([200, 400])
})

// Section 18: confirmed_at is missing in some answers.
test('confirmed_at is in every answer that shows the user', async ({ service }) => {
  const email = 'everywhere@example.com'
  const { auth, refreshToken, userId } = await service.signedIn(email)
  const shown = [
    (await service.get('/user', auth)).body,
    (await service.put('/user', { data: { a: 1 } }, auth)).body,
    (await service.post('/token?grant_type=password', { email, password })).body.user,
    (await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })).body.user,
    (await service.get(`/admin/users/${userId}`, service.admin)).body,
    (await service.put(`/admin/users/${userId}`, { role: 'editor' }, service.admin)).body,
    (await service.get(`/admin/users?filter=${email}`, service.admin)).body.users[0],
    (await service.post('/admin/generate_link', { type: 'magiclink', email }, service.admin)).body,
  ]
  const [{ confirmed_at }] = shown
  expect(confirmed_at).toMatch(/^\d{4}-/)
  expect(shown.map((user) => [user.id, user.confirmed_at, user.email_confirmed_at])).toEqual(
    shown.map(() => [userId, confirmed_at, confirmed_at]),
  )
})

test('a user with only a number confirms a first e-mail address with just the code sent to it', async ({ service }) => {
  const email = 'first@example.com'
  await service.post('/signup', { phone: PHONE, password })
  const { body } = await service.post('/verify', { type: 'sms', phone: PHONE, token: '111111' })
  const { auth, userId } = toSignedIn(body)
  expect((await service.put('/user', { email }, auth)).body).toMatchObject({ email: '', new_email: email })
  const token = codeIn((await service.mailbox.waitFor(email)).text)
  const verified = await service.post('/verify', { type: 'email_change', email, token })
  expect(verified).toMatchObject({
    status: 200,
    body: {
      user: {
        id: userId,
        email,
        phone: PHONE,
        email_confirmed_at: expect.any(String),
        confirmed_at: expect.any(String),
      },
    },
  })
  expect(verified.body.user.app_metadata.providers.toSorted()).toEqual(['email', 'phone'])
})

describe('links go to the host a request came to, if it is listed:', () => {
  test.for([
    ['eu.example', 'https://eu.example'],
    ['evil.test', 'https://auth.example'],
  ])('%s', async ([host = '', base], { service }) => {
    const headers = { 'x-forwarded-host': host }
    const email = `from-${host}@example.com`
    const order = { type: 'invite', email: `to-${host}@example.com` }
    const link = await service.post('/admin/generate_link', order, { ...service.admin, ...headers })
    expect(new URL(link.body.action_link).origin).toBe(base)
    await service.post('/signup', { email, password }, headers)
    expect((await service.mailbox.waitFor(email)).text).toContain(`${base}/verify?`)
  })
})
