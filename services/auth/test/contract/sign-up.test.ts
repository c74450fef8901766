// Sign-up and anonymous users: cases that no test beside the code shows.
import { describe, expect } from 'vitest'
import { codeIn, fragmentOf, linkPath, startTestService, type TestService, test } from '../service.ts'

const password = 'correct horse'
const PHONES = { AUTH_SMS_TEST_OTP: '4915100000001:111111,4915100000002:222222' }
const HEADER = { AUTH_RATE_LIMIT_HEADER: 'x-real-address' }

describe('checks come in the order of the contract', () => {
  test.for<[string, object, number, string]>([
    ['the password before two addresses', { email: 'a@b.c', phone: '123', password: '' }, 400, 'validation_failed'],
    ['its length before two addresses', { email: 'a@b.c', phone: '123', password: 'x' }, 422, 'weak_password'],
    ['an invalid address before a guessable password', { email: 'a', password: '123456' }, 400, 'validation_failed'],
    ['two addresses before the provider', { email: 'a@b.c', phone: '123', password }, 400, 'validation_failed'],
    ['the channel before the provider', { phone: '123', channel: 'pigeon', password }, 400, 'validation_failed'],
    [
      'half a code challenge before the provider',
      { phone: '1', code_challenge: 'x', password },
      400,
      'validation_failed',
    ],
    ['the provider before the address', { phone: 'none', password }, 400, 'phone_provider_disabled'],
  ])('%s', async ([, body, status, code], { service }) => {
    expect(await service.post('/signup', body)).toMatchObject({ status, body: { error_code: code } })
  })

  test('closed sign-ups before everything that is wrong with the request', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_DISABLE_SIGNUP: 'true' })
    const answer = await service.post('/signup', { email: 'nobody', phone: 'none', password: '' })
    expect(answer).toMatchObject({ status: 422, body: { error_code: 'signup_disabled' } })
    await service.close()
  })
})

describe('an invited address', () => {
  test('signed up for again is answered only from the request, without anything of the invitation', async ({
    service,
  }) => {
    const email = 'invited-again@example.com'
    const data = { secret: 'of the inviter' }
    const invited = await service.post('/invite', { email, data }, service.admin)
    const { status, body, text } = await service.post('/signup', { email, password, data: { mine: true } })
    expect([status, body.user_metadata.mine]).toEqual([200, true])
    expect(body).not.toHaveProperty('invited_at')
    expect(text).not.toContain('of the inviter')
    expect(text).not.toContain(invited.body.id)
  })
})

// contract/auth-core.md 18, BUG5.
describe('a made-up answer reveals nothing of an existing account', () => {
  test('however much has happened to it', async ({ service }) => {
    const email = 'busy@example.com'
    const { userId, auth } = await service.signedUp(email)
    await service.put('/user', { email: 'busy-elsewhere@example.com' }, auth)
    const now = service.clock.now()
    const rich = {
      invited_at: now,
      recovery_sent_at: now,
      reauthentication_sent_at: now,
      phone: '4915199999999',
      phone_change: '4915188888888',
      phone_change_sent_at: now,
      banned_until: new Date(now.getTime() + 60_000),
    }
    await service.deps.db.updateTable('users').set(rich).where('id', '=', userId).execute()
    service.clock.advance({ seconds: 901 })
    const known = await service.post('/signup', { email, password })
    const fresh = await service.post('/signup', { email: 'never-seen@example.com', password })
    expect(Object.keys(known.body)).toEqual(Object.keys(fresh.body))
    for (const told of [userId, 'elsewhere', '49151']) expect(known.text).not.toContain(told)
  })

  test('reached through a linked identity, it does not reveal the address of the account', async ({ service }) => {
    const { userId } = await service.signedIn('own@example.com')
    await service.deps.db
      .insertInto('identities')
      .values({
        id: service.deps.newId(),
        user_id: userId,
        provider: 'google',
        provider_id: 'g-1',
        identity_data: JSON.stringify({ sub: 'g-1', email: 'linked@example.com' }),
        created_at: service.clock.now(),
        updated_at: service.clock.now(),
      })
      .execute()
    const { status, body, text } = await service.post('/signup', { email: 'linked@example.com', password })
    expect([status, body.email, body.app_metadata.providers]).toEqual([200, 'linked@example.com', ['email']])
    expect(text).not.toContain('own@example.com')
    expect(text).not.toContain(userId)
  })
})

describe('an anonymous user who names', () => {
  const settings = { ...PHONES, AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' }

  const verifications = {
    email: async (service: TestService) => {
      const mail = await service.mailbox.waitFor('named@example.com')
      return service.post('/verify', { type: 'email_change', email: 'named@example.com', token: codeIn(mail.text) })
    },
    phone: (service: TestService) =>
      service.post('/verify', { type: 'phone_change', phone: '4915100000001', token: '111111' }),
  }

  test.for<['email' | 'phone', string, object]>([
    ['email', 'named@example.com', {}],
    ['email', 'named@example.com', { password }],
    ['phone', '4915100000001', {}],
    ['phone', '4915100000001', { password }],
  ])('an address (%s, %s, %j) stays anonymous until it is proven', async ([channel, address, more]) => {
    const service = await startTestService(settings)
    const { body: anonymous } = await service.post('/signup', { data: { theme: 'dark' } })
    const auth = { authorization: `Bearer ${anonymous.access_token}` }
    const asked = await service.put('/user', { [channel]: address, ...more }, auth)
    expect(asked).toMatchObject({
      status: 200,
      body: { is_anonymous: true, [channel]: '', [`new_${channel}`]: address },
    })
    const { body } = await verifications[channel](service)
    expect(body.user).toMatchObject({
      id: anonymous.user.id,
      is_anonymous: false,
      [channel]: address,
      app_metadata: { provider: channel, providers: [channel] },
      user_metadata: { theme: 'dark' },
      identities: [{ provider: channel, identity_data: { [`${channel}_verified`]: true } }],
    })
    expect(body.user.identities).toHaveLength(1)
    expect(body.user.confirmed_at).toBe(body.user[`${channel}_confirmed_at`])
    const signIn = await service.post('/token?grant_type=password', { [channel]: address, password })
    expect(signIn.status).toBe('password' in more ? 200 : 400)
    await service.close()
  })

  test('nothing, but whom an admin gave an address, is permanent once they prove it', async ({ service: shared }) => {
    const service = await shared.with(settings)
    const { body } = await service.post('/signup', {})
    const email = 'given@example.com'
    const given = await service.put(`/admin/users/${body.user.id}`, { email }, service.admin)
    expect(given.body.is_anonymous).toBe(true)
    await service.post('/otp', { email })
    const mail = await service.mailbox.waitFor(email)
    expect(fragmentOf(await service.get(linkPath(mail.text)))).toHaveProperty('access_token')
    const after = await service.get(`/admin/users/${body.user.id}`, service.admin)
    expect(after.body.is_anonymous).toBe(false)
    await service.close()
  })
})

describe('anonymous sign-ups', () => {
  test('are counted per value of the trusted header, one hour long; X-Forwarded-For counts nothing', async ({
    service: shared,
  }) => {
    const service = await shared.with({
      ...HEADER,
      AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
      AUTH_RATE_LIMIT_ANONYMOUS_USERS: '2',
    })
    const statuses = async (times: number, headers: Record<string, string>) => {
      const answers = []
      for (let i = 0; i < times; i++) answers.push((await service.post('/signup', {}, headers)).status)
      return answers
    }
    expect(await statuses(3, { 'x-real-address': '192.0.2.1' })).toEqual([200, 200, 429])
    expect(await statuses(1, { 'x-real-address': '192.0.2.2' })).toEqual([200])
    expect(await statuses(4, { 'x-forwarded-for': '192.0.2.1' })).toEqual([200, 200, 200, 200])
    // Other sign-ups have a bucket of their own.
    const named = { email: 'named-3@example.com', password }
    expect((await service.post('/signup', named, { 'x-real-address': '192.0.2.1' })).status).toBe(200)
    await service.close()
  })

  test('that are switched off are refused as such, however often', async ({ service: shared }) => {
    const service = await shared.with({ ...HEADER, AUTH_RATE_LIMIT_ANONYMOUS_USERS: '1' })
    for (let i = 0; i < 3; i++) {
      const answer = await service.post('/signup', {}, { 'x-real-address': '192.0.2.1' })
      expect(answer).toMatchObject({ status: 422, body: { error_code: 'anonymous_provider_disabled' } })
    }
    await service.close()
  })
})

// Section 18: a unique index over all audiences.
describe('one address in two audiences', () => {
  const OTHER = { 'x-jwt-aud': 'other' }

  test('is two accounts, each with its own password, tokens and links', async ({ service }) => {
    const email = 'both@example.com'
    const first = await service.signedUp(email, 'first horse')
    // The gap belongs to the mailbox: naming another audience cannot make it get more mail. So do claims to it: within
    // an hour of the first one two passwords would leave none to the second account.
    expect((await service.post('/signup', { email, password: 'other horse' }, OTHER)).status).toBe(429)
    // So do claims to it: within an hour of the first one two passwords would leave none to the second account.
    service.clock.advance({ seconds: 3601 })
    const before = service.mailbox.messages({ to: email })[0]
    const answer = await service.post('/signup', { email, password: 'other horse' }, OTHER)
    expect(answer).toMatchObject({ status: 200, body: { aud: 'other' } })
    const mail = await service.mailbox.waitFor(email, before ? { after: before } : {})
    const verify = { type: 'signup', email, token: codeIn(mail.text) }
    expect((await service.post('/verify', verify)).status).toBe(403)
    // A browser that follows a link sends no such header.
    expect(fragmentOf(await service.get(linkPath(mail.text)))).toMatchObject({ type: 'signup' })
    const signIn = (typed: string, headers = {}) =>
      service.post('/token?grant_type=password', { email, password: typed }, headers)
    expect((await signIn('first horse')).body.user.id).toBe(first.userId)
    const second = await signIn('other horse', OTHER)
    expect(second.body.user).toMatchObject({ email, aud: 'other' })
    expect(second.body.user.id).not.toBe(first.userId)
    expect((await signIn('first horse', OTHER)).status).toBe(400)
    const auth = { authorization: `Bearer ${second.body.access_token}` }
    expect((await service.get('/user', auth)).body.aud).toBe('other')
    expect((await service.get('/user', { ...auth, ...OTHER })).status).toBe(200)
    expect((await service.get('/user', { ...auth, 'x-jwt-aud': 'authenticated' })).status).toBe(400)
  })

  test('at once, with many attempts in each, makes one account in each and fails in nothing', async ({
    service: shared,
  }) => {
    const service = await shared.with({ ...PHONES, AUTH_MAILER_AUTOCONFIRM: 'true', AUTH_SMS_AUTOCONFIRM: 'true' })
    for (const address of [{ email: 'raced@example.com' }, { phone: '4915100000002' }]) {
      const attempts = Array.from({ length: 20 }, (_, i) =>
        service.post('/signup', { ...address, password }, i % 2 ? OTHER : {}),
      )
      const answers = await Promise.all(attempts)
      const made = answers.filter(({ status }) => status === 200)
      expect(made.map(({ body }) => body.user.aud).toSorted()).toEqual(['authenticated', 'other'])
      for (const { status, body } of answers.filter((answer) => !made.includes(answer))) {
        expect([status, body.error_code]).toEqual([400, 'user_already_exists'])
      }
    }
    await service.close()
  })
})

test('of sign-ups, links and invitations of one new address at once, one account comes', async ({ service }) => {
  const email = 'crowded@example.com'
  const attempts = Array.from({ length: 5 }, () => [
    service.post('/signup', { email, password }),
    service.post('/otp', { email }),
    service.post('/invite', { email }, service.admin),
    service.post('/admin/generate_link', { type: 'signup', email, password }, service.admin),
  ]).flat()
  const statuses = (await Promise.all(attempts)).map(({ status }) => status)
  expect(statuses.filter((status) => ![200, 429].includes(status))).toEqual([])
  await expect.poll(() => service.deps.queue.depth('message-requests')).toBe(0)
  const users = await service.deps.db.selectFrom('users').select('id').where('email', '=', email).execute()
  expect(users).toHaveLength(1)
})
