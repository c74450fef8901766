// /otp, /magiclink, /recover and /resend: cases that no test beside the code shows.
import { describe, expect } from 'vitest'
import { test as base, codeIn, linkPath, startTestService, type TestService, tokenIn } from '../service.ts'

const password = 'correct horse'
const PHONE = '4915100000001'
const PHONES = { AUTH_SMS_TEST_OTP: `${PHONE}:111111,4915100000002:222222` }
const PKCE = { code_challenge: 'x'.repeat(43), code_challenge_method: 'plain' }

/** `closed`: neither e-mail nor phone is a way in. */
const test = base.extend<object & { closed: TestService }>({
  closed: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures a fixture uses from it
    async ({}, use) => {
      const off = { AUTH_EXTERNAL_EMAIL_ENABLED: 'false', AUTH_EXTERNAL_PHONE_ENABLED: 'false' }
      const service = await startTestService(off)
      await use(service)
      await service.close()
    },
    { scope: 'file' },
  ],
})

/** Requests are answered and their mails gone. */
async function settled({ deps }: TestService) {
  for (const queue of ['message-requests', 'mail']) {
    await expect.poll(() => deps.queue.depth(queue)).toBe(0)
  }
}

const rowOf = (service: TestService, column: 'email' | 'phone', value: string) =>
  service.deps.db.selectFrom('users').selectAll().where(column, '=', value).executeTakeFirstOrThrow()

describe('checks come in the order of the contract', () => {
  test.for<[string, string, object, number, string]>([
    ['/otp', 'two addresses', { email: 'a@b.c', phone: '1' }, 400, 'validation_failed'],
    ['/otp', 'a channel for mail', { email: 'a@b.c', channel: 'sms' }, 400, 'validation_failed'],
    ['/otp', 'half a code challenge', { email: 'a@b.c', code_challenge: 'x' }, 400, 'validation_failed'],
    ['/otp', 'half a code challenge by phone', { phone: '1', code_challenge_method: 's256' }, 400, 'validation_failed'],
    ['/otp', 'no address', {}, 400, 'validation_failed'],
    ['/otp', 'the provider before the format', { email: 'nobody' }, 422, 'email_provider_disabled'],
    ['/otp', 'the provider before number and channel', { phone: 'x', channel: 'x' }, 400, 'phone_provider_disabled'],
    ['/magiclink', 'the provider before the address', {}, 422, 'email_provider_disabled'],
    ['/recover', 'the provider before the address', {}, 400, 'email_provider_disabled'],
    ['/resend', 'half a code challenge before the type', { type: 'x', code_challenge: 'x' }, 400, 'validation_failed'],
    ['/resend', 'the type before the provider', { type: 'x', email: 'a@b.c' }, 400, 'validation_failed'],
    ['/resend', 'the address its type needs', { type: 'sms', email: 'a@b.c' }, 400, 'validation_failed'],
    ['/resend', 'two addresses', { type: 'signup', email: 'a@b.c', phone: '1' }, 400, 'validation_failed'],
    ['/resend', 'the provider before the format', { type: 'signup', email: 'nobody' }, 400, 'email_provider_disabled'],
    ['/resend', 'the provider of numbers', { type: 'phone_change', phone: 'x' }, 400, 'phone_provider_disabled'],
  ])('%s: %s', async ([path, , body, status, code], { closed }) => {
    expect(await closed.post(path, body)).toMatchObject({ status, body: { error_code: code } })
  })
})

// Section 18.
test('create_user false with a malformed address is a malformed address', async ({ service }) => {
  const answer = await service.post('/otp', { email: 'nobody', create_user: false })
  expect(answer).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
})

describe('a second link for an address never confirmed', () => {
  test('replaces the confirmation and is none to recover or sign in with', async ({ service }) => {
    const email = 'twice@example.com'
    await service.post('/otp', { email })
    const first = await service.mailbox.waitFor(email)
    const { confirmation_sent_at: before } = await rowOf(service, 'email', email)
    service.clock.advance({ seconds: 901 })
    await service.post('/otp', { email })
    const second = await service.mailbox.waitFor(email, { after: first })
    expect(linkPath(second.text)).toContain('type=signup')
    const row = await rowOf(service, 'email', email)
    expect(row.recovery_sent_at).toBeNull()
    expect(row.confirmation_sent_at?.getTime()).toBe((before as Date).getTime() + 901_000)
    const magic = { type: 'magiclink', email, token: codeIn(second.text) }
    expect((await service.post('/verify', magic)).status).toBe(403)
    expect((await service.post('/verify', { ...magic, type: 'email' })).body.type).toBe('signup')
  })
})

// Section 18: a random password that breaks the rules.
test('a sign-up by code needs no password that the rules would accept', async () => {
  const service = await startTestService({ ...PHONES, AUTH_PASSWORD_REQUIRED_CHARACTERS: 'abc:ABC:0123456789:!' })
  expect(await service.post('/otp', { phone: PHONE })).toMatchObject({ status: 200, body: {} })
  await settled(service)
  expect((await service.post('/verify', { type: 'sms', phone: PHONE, token: '111111' })).status).toBe(200)
  expect((await service.post('/otp', { email: 'rules@example.com' })).status).toBe(200)
  const { text } = await service.mailbox.waitFor('rules@example.com')
  const verify = { type: 'email', email: 'rules@example.com', token: codeIn(text) }
  expect((await service.post('/verify', verify)).status).toBe(200)
  await service.close()
})

test('a banned user gets the mail and is refused with it', async ({ service }) => {
  const email = 'banned-mail@example.com'
  const { userId } = await service.signedIn(email)
  await service.put(`/admin/users/${userId}`, { ban_duration: '24h' }, service.admin)
  service.mailbox.clear()
  expect((await service.post('/otp', { email })).status).toBe(200)
  const { text } = await service.mailbox.waitFor(email)
  expect(await service.post('/verify', { type: 'magiclink', token_hash: tokenIn(text) })).toMatchObject({
    status: 403,
    body: { error_code: 'user_banned' },
  })
})

describe('the record of a message', () => {
  test('is when it was asked for, by kind; using it leaves that, and the next one has to wait', async ({ service }) => {
    const email = 'noted@example.com'
    await service.signedIn(email)
    service.clock.advance({ seconds: 61 })
    service.mailbox.clear()
    await service.post('/otp', { email })
    const { text } = await service.mailbox.waitFor(email)
    const asked = service.clock.now()
    expect((await rowOf(service, 'email', email)).recovery_sent_at).toEqual(asked)
    service.clock.advance({ seconds: 10 })
    const { body } = await service.post('/verify', { type: 'magiclink', token_hash: tokenIn(text) })
    expect(body.user.recovery_sent_at).toBe(asked.toISOString())
    expect((await service.post('/recover', { email })).status).toBe(429)
  })

  test('to a test number, too: its time moves on, although nothing is sent', async () => {
    const service = await startTestService(PHONES)
    await service.post('/signup', { phone: PHONE, password })
    const { confirmation_sent_at: first } = await rowOf(service, 'phone', PHONE)
    expect((await service.post('/resend', { type: 'sms', phone: PHONE })).status).toBe(429)
    service.clock.advance({ seconds: 61 })
    await service.post('/resend', { type: 'sms', phone: PHONE })
    await settled(service)
    expect((await rowOf(service, 'phone', PHONE)).confirmation_sent_at?.getTime()).toBe(
      (first as Date).getTime() + 61_000,
    )
    expect((await service.get('/admin/messages', service.admin)).body.messages).toEqual([])
    await service.close()
  })
})

describe('POST /resend', () => {
  test('in the PKCE flow sends a link of that flow, whatever the first one was', async ({ service }) => {
    const email = 'resent@example.com'
    await service.post('/signup', { email, password })
    const first = await service.mailbox.waitFor(email)
    expect(tokenIn(first.text)).not.toMatch(/^pkce_/)
    service.clock.advance({ seconds: 901 })
    await service.post('/resend', { type: 'signup', email, ...PKCE })
    const second = await service.mailbox.waitFor(email, { after: first })
    expect(tokenIn(second.text)).toMatch(/^pkce_/)
  })

  test('of a change of address or number finds its user by either of their addresses', async () => {
    const service = await startTestService(PHONES)
    await service.post('/signup', { phone: PHONE, password })
    const { body } = await service.post('/verify', { type: 'sms', phone: PHONE, token: '111111' })
    const auth = { authorization: `Bearer ${body.access_token}` }
    await service.put('/user', { email: 'by-number@example.com' }, auth)
    const first = await service.mailbox.waitFor('by-number@example.com')
    service.clock.advance({ seconds: 901 })
    expect(await service.post('/resend', { type: 'email_change', phone: PHONE })).toMatchObject({ status: 200 })
    await service.mailbox.waitFor('by-number@example.com', { after: first })
    await service.close()
  })

  test('of a change that no longer exists sends nothing and gets the same answer', async ({ service }) => {
    const email = 'changed-mind@example.com'
    const { userId, auth } = await service.signedIn(email)
    await service.put('/user', { email: 'changed-mind-new@example.com' }, auth)
    await service.mailbox.waitFor('changed-mind-new@example.com')
    // The current address gets one too.
    await settled(service)
    await service.put(`/admin/users/${userId}`, { email: 'settled@example.com', email_confirm: true }, service.admin)
    service.clock.advance({ seconds: 901 })
    service.mailbox.clear()
    expect((await service.post('/resend', { type: 'email_change', email: 'settled@example.com' })).status).toBe(200)
    await settled(service)
    expect(service.mailbox.messages()).toEqual([])
  })
})
