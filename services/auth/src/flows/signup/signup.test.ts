import { perFile } from '@services/common/testing/per-file'
import { describe, expect } from 'vitest'
import { test as base, linkPath, startTestService, type TestService } from '../../../test/service.ts'

const test = base.extend<object & { autoconfirm: TestService }>({
  autoconfirm: perFile(() => startTestService({ AUTH_MAILER_AUTOCONFIRM: 'true' })),
})

const password = 'correct horse'

describe('a new address', () => {
  test('gets an unconfirmed user with caller data in user_metadata, and one mail', async ({ service }) => {
    const { status, body } = await service.post('/signup', {
      email: 'New@Example.com',
      password,
      data: { plan: 'pro' },
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      email: 'new@example.com',
      phone: '',
      aud: 'authenticated',
      role: 'authenticated',
      is_anonymous: false,
      app_metadata: { provider: 'email', providers: ['email'] },
      user_metadata: { plan: 'pro', sub: body.id, email: 'new@example.com', email_verified: false },
      identities: [{ user_id: body.id, id: body.id, provider: 'email', email: 'new@example.com' }],
    })
    expect(body.confirmation_sent_at).toBe(body.created_at)
    expect(body).not.toHaveProperty('email_confirmed_at')
    expect(body).not.toHaveProperty('access_token')
    await service.mailbox.waitFor('new@example.com')
    expect(service.mailbox.messages({ to: 'new@example.com' })).toHaveLength(1)
  })

  test('caller data never overrides what the service knows', async ({ service }) => {
    const data = { sub: 'mine', email: 'other@example.com', email_verified: true, phone_verified: true }
    const { body } = await service.post('/signup', { email: 'override@example.com', password, data })
    expect(body.user_metadata).toMatchObject({ sub: body.id, email: 'override@example.com', email_verified: false })
  })

  test('gives no privileges, whatever it claims, and neither does a change', async ({ service }) => {
    const claims = { role: 'service_role', aud: 'admin', is_super_admin: true, email_confirmed_at: '2020-01-01' }
    const email = 'climber@example.com'
    const signUp = { ...claims, app_metadata: { role: 'admin' }, email, password, data: claims }
    const { status, body } = await service.post('/signup', signUp)
    expect([status, body.email_confirmed_at]).toEqual([200, undefined])
    const { auth } = await service.signedIn('climbs-later@example.com')
    await service.put('/user', { ...claims, data: claims }, auth)
    for (const user of [body, (await service.get('/user', auth)).body]) {
      expect(user).toMatchObject({ role: 'authenticated', aud: 'authenticated' })
      expect(user.app_metadata).toEqual({ provider: 'email', providers: ['email'] })
    }
    expect((await service.get('/admin/users', auth)).status).toBe(403)
  })

  test('twenty parallel sign-ups make one user and one mail', async ({ service }) => {
    const email = 'parallel@example.com'
    const answers = await Promise.all(Array.from({ length: 20 }, () => service.post('/signup', { email, password })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(19)
    await service.mailbox.waitFor(email)
    const users = await service.deps.db.selectFrom('users').select('id').where('email', '=', email).execute()
    expect(users).toHaveLength(1)
  })
})

describe('an address that exists', () => {
  /** Keys in order and value types, which an outsider could compare. */
  const outline = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(outline)
      : value && typeof value === 'object'
        ? Object.entries(value).map(([key, member]) => [key, outline(member)])
        : typeof value

  test('is answered like a new one, confirmed or not, and its account stays as it was', async ({ service }) => {
    const confirmed = await service.signedUp('confirmed@example.com')
    await service.post('/signup', { email: 'pending@example.com', password })
    service.clock.advance({ seconds: 901 })
    const data = { name: 'Mallory' }
    const fresh = await service.post('/signup', { email: 'fresh@example.com', password, data })
    for (const email of ['confirmed@example.com', 'pending@example.com']) {
      const before = await service.deps.db.selectFrom('users').selectAll().where('email', '=', email).execute()
      const { status, body } = await service.post('/signup', { email, password: 'another horse', data })
      expect(status).toBe(200)
      expect(outline(body)).toEqual(outline(fresh.body))
      expect(body.role).toBe('authenticated')
      expect(body.created_at).toBe(body.confirmation_sent_at)
      expect(body.user_metadata).toMatchObject(data)
      expect([confirmed.userId, before[0]?.id]).not.toContain(body.id)
      const after = await service.deps.db.selectFrom('users').selectAll().where('email', '=', email).execute()
      expect(after.map((user) => user.user_metadata)).toEqual(before.map((user) => user.user_metadata))
      expect(after.map((user) => user.password_hash)).toEqual(before.map((user) => user.password_hash))
    }
  })

  test('of a confirmed account sends its owner a mail that it exists, once in the gap, with no link or code', async ({
    service,
  }) => {
    const email = 'owner@example.com'
    const { userId } = await service.signedIn(email, password)
    const answers = []
    for (let i = 0; i < 2; i++)
      answers.push((await service.post('/signup', { email, password: 'another horse' })).status)
    expect(answers).toEqual([200, 429])
    const mail = await service.mailbox.waitFor(email)
    expect(mail.subject).toBe('You already have an account')
    expect(mail.text).toContain(`A sign-up at https://site.example used ${email}`)
    expect(mail.text).not.toMatch(/verify|\d{6}/)
    await service.settled()
    const { body } = await service.get(`/admin/messages?user_id=${userId}`, service.admin)
    expect(body.messages).toEqual([expect.objectContaining({ kind: 'account_exists', state: 'sent' })])
    expect((await service.post('/token?grant_type=password', { email, password })).status).toBe(200)
  })

  test('of an account that a setting confirmed sends a mail without the data and the language of its registrant', async () => {
    const email = 'assumed@example.com'
    const subject = 'Hello {{ .Data.name }}'
    const own = await startTestService({ AUTH_MAILER_SUBJECTS_ACCOUNT_EXISTS: subject })
    const careless = await own.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
    await careless.post('/signup', { email, password, data: { locale: 'de', name: 'Planted' } })
    expect((await own.post('/signup', { email, password: 'another horse' })).status).toBe(200)
    const mail = await own.mailbox.waitFor(email)
    expect(mail.subject).not.toContain('Planted')
    expect(mail.text).toContain('you already have an account')
    await careless.close()
    await own.close()
  })

  test('of a confirmed account sends nothing where that is disabled, nor a resend', async ({ service }) => {
    const email = 'undisturbed@example.com'
    await service.signedIn(email, password)
    const quiet = await service.with({ AUTH_MAILER_ACCOUNT_EXISTS_ENABLED: 'false' })
    expect((await quiet.post('/signup', { email, password })).status).toBe(200)
    await quiet.close()
    service.clock.advance({ seconds: 901 })
    expect((await service.post('/resend', { email, type: 'signup' })).status).toBe(200)
    await service.settled()
    expect(service.mailbox.messages({ to: email })).toEqual([])
  })

  test('gets a new mail while unconfirmed, and one that it exists once confirmed', async ({ service }) => {
    await service.signedUp('done@example.com')
    await service.post('/signup', { email: 'again@example.com', password })
    const first = await service.mailbox.waitFor('again@example.com')
    service.clock.advance({ seconds: 901 })
    await service.post('/signup', { email: 'done@example.com', password })
    await service.post('/signup', { email: 'again@example.com', password })
    await expect.poll(() => service.mailbox.messages({ to: 'again@example.com' }).length).toBe(2)
    const toDone = () => service.mailbox.messages({ to: 'done@example.com' }).map(({ subject }) => subject)
    await expect.poll(toDone).toEqual(['You already have an account', 'Confirm your email address'])
    // The newer link replaces the older one.
    expect((await service.get(linkPath(first.text))).headers.location).toContain('otp_expired')
  })

  test('waits the same time for its next mail whether confirmed, pending or only just signed up', async ({
    service,
  }) => {
    await service.signedUp('gap-confirmed@example.com')
    await service.post('/signup', { email: 'gap-pending@example.com', password })
    for (const email of ['gap-confirmed@example.com', 'gap-pending@example.com']) {
      const { status, body, headers } = await service.post('/signup', { email, password })
      expect([email, status, body.error_code]).toEqual([email, 429, 'over_email_send_rate_limit'])
      expect(Number(headers['retry-after'])).toBeGreaterThan(890)
    }
    service.clock.advance({ seconds: 901 })
    expect((await service.post('/signup', { email: 'gap-pending@example.com', password })).status).toBe(200)
  })
})

describe('with autoconfirm', () => {
  // Section 18: email_verified of the identity.
  test('the answer is a session and no mail is sent', async ({ autoconfirm }) => {
    const { status, body } = await autoconfirm.post('/signup', { email: 'auto@example.com', password })
    expect(status).toBe(200)
    expect(body).toMatchObject({ token_type: 'bearer', user: { user_metadata: { email_verified: true } } })
    expect(body.user.identities[0].identity_data.email_verified).toBe(true)
    expect(body.user.email_confirmed_at).toBe(body.user.confirmed_at)
    const auth = { authorization: `Bearer ${body.access_token}` }
    expect((await autoconfirm.get('/user', auth)).status).toBe(200)
    expect(autoconfirm.mailbox.messages()).toEqual([])
  })

  test('a second sign-up is refused with the words of the specification', async ({ autoconfirm }) => {
    await autoconfirm.post('/signup', { email: 'twice@example.com', password })
    const { status, body } = await autoconfirm.post('/signup', { email: 'twice@example.com', password })
    expect(status).toBe(400)
    expect(body).toMatchObject({ code: 400, error_code: 'user_already_exists', msg: 'User already registered' })
  })

  test('a pending account is not given to a second sign-up with its address', async ({ autoconfirm }) => {
    const careful = await autoconfirm.with({ AUTH_MAILER_AUTOCONFIRM: 'false' })
    await careful.post('/signup', { email: 'victim@example.com', password })
    await careful.close()
    const { status, body } = await autoconfirm.post('/signup', { email: 'victim@example.com', password: 'their horse' })
    expect([status, body.access_token]).toEqual([400, undefined])
  })
})

test('DISABLE_SIGNUP refuses every kind of sign-up', async ({ service: shared }) => {
  const service = await shared.with({
    AUTH_DISABLE_SIGNUP: 'true',
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
  })
  for (const body of [{ email: 'a-1@example.com', password }, { phone: '123456789', password }, {}]) {
    expect(await service.post('/signup', body)).toMatchObject({ status: 422, body: { error_code: 'signup_disabled' } })
  }
  await service.close()
})

test('an anonymous user is signed in at once, if the service allows it', async ({ service }) => {
  const { status, body } = await service.post('/signup', { data: { theme: 'dark' } })
  expect([status, body.error_code]).toEqual([422, 'anonymous_provider_disabled'])
  const allowing = await startTestService({ AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' })
  const anonymous = await allowing.post('/signup', { data: { theme: 'dark' } })
  expect(anonymous).toMatchObject({
    status: 200,
    body: {
      user: {
        is_anonymous: true,
        email: '',
        phone: '',
        identities: [],
        user_metadata: { theme: 'dark' },
        app_metadata: {},
      },
    },
  })
  await allowing.close()
})

test.for<[string, object, number, string]>([
  ['no password', { email: 'a@example.com' }, 400, 'validation_failed'],
  ['an empty password', { email: 'a@example.com', password: '' }, 400, 'validation_failed'],
  ['a short password', { email: 'a@example.com', password: '12345' }, 422, 'weak_password'],
  ['a password of 1,025 bytes', { email: 'a@example.com', password: 'x'.repeat(1025) }, 400, 'validation_failed'],
  ['two addresses', { email: 'a@example.com', phone: '123456789', password }, 400, 'validation_failed'],
  ['no address at all in the address', { email: 'nobody', password }, 400, 'validation_failed'],
  ['an address with a space', { email: 'a b@example.com', password }, 400, 'validation_failed'],
  ['an address of 256 bytes', { email: `${'a'.repeat(244)}@example.com`, password }, 400, 'validation_failed'],
  ['a number as address', { email: 5, password }, 400, 'bad_json'],
  ['a list as data', { email: 'a@example.com', password, data: [] }, 400, 'bad_json'],
  ['a phone number', { phone: '+49 151 12345678', password }, 400, 'phone_provider_disabled'],
])('sign-up with %s is refused', async ([, body, status, code], { service }) => {
  expect(await service.post('/signup', body)).toMatchObject({ status, body: { code: status, error_code: code } })
})

test('required character sets are all demanded, with the reason', async ({ service: shared }) => {
  const service = await shared.with({ AUTH_PASSWORD_REQUIRED_CHARACTERS: String.raw`abc:0123:\:!` })
  const { status, body } = await service.post('/signup', { email: 'a-2@example.com', password: 'aaa000xx' })
  expect([status, body.weak_password]).toEqual([422, { reasons: ['characters'] }])
  expect((await service.post('/signup', { email: 'a-2@example.com', password: 'aaa000:' })).status).toBe(200)
  await service.close()
})
