import { describe, expect } from 'vitest'
import {
  codeIn,
  fragmentOf,
  linkPath,
  startTestService,
  type TestService,
  test,
  tokenIn,
} from '../../../test/service.ts'

const userOf = (service: TestService, email: string) =>
  service.deps.db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst()

/** Waits until every request for a message has been looked after. */
const settled = (service: TestService) => expect.poll(() => service.deps.queue.depth('message-requests')).toBe(0)

describe('POST /otp with an e-mail address', () => {
  test('of a confirmed account sends a link and a code, each of which signs in', async ({ service }) => {
    const { userId } = await service.signedUp('confirmed@example.com')
    service.mailbox.clear()
    expect(await service.post('/otp', { email: 'Confirmed@example.com' })).toMatchObject({ status: 200, body: {} })
    const mail = await service.mailbox.waitFor('confirmed@example.com')
    expect(linkPath(mail.text)).toContain('type=magiclink')
    const answer = await service.get(linkPath(mail.text))
    expect(fragmentOf(answer)).toMatchObject({ type: 'magiclink', token_type: 'bearer' })

    service.clock.advance({ seconds: 61 })
    await service.post('/otp', { email: 'confirmed@example.com' })
    const second = await service.mailbox.waitFor('confirmed@example.com', { after: mail })
    const byCode = await service.post('/verify', {
      type: 'email',
      email: 'confirmed@example.com',
      token: codeIn(second.text),
    })
    expect(byCode).toMatchObject({ status: 200, body: { type: 'magiclink', user: { id: userId } } })
  })

  test('that is unknown gets an account without a password, which the code confirms', async ({ service }) => {
    await service.post('/otp', { email: 'new@example.com', data: { plan: 'pro' } })
    const mail = await service.mailbox.waitFor('new@example.com')
    expect(linkPath(mail.text)).toContain('type=signup')
    expect(await userOf(service, 'new@example.com')).toMatchObject({ password_hash: null, email_confirmed_at: null })
    const { body } = await service.post('/verify', {
      type: 'email',
      email: 'new@example.com',
      token: codeIn(mail.text),
    })
    expect(body).toMatchObject({ type: 'signup', user: { user_metadata: { plan: 'pro', email_verified: true } } })
  })

  test('that is unknown gets nothing with create_user false or closed sign-ups, and the same answer', async ({
    service,
  }) => {
    const closed = await startTestService({ AUTH_DISABLE_SIGNUP: 'true' })
    expect(await service.post('/otp', { email: 'nobody@example.com', create_user: false })).toMatchObject({
      status: 200,
      body: {},
    })
    expect(await closed.post('/otp', { email: 'nobody@example.com' })).toMatchObject({ status: 200, body: {} })
    await Promise.all([settled(service), settled(closed)])
    for (const each of [service, closed]) {
      expect(await userOf(each, 'nobody@example.com')).toBeUndefined()
      expect(each.mailbox.messages({ to: 'nobody@example.com' })).toEqual([])
    }
    await closed.close()
  })

  test('known or not, is refused within 60 seconds, with the time to wait', async ({ service }) => {
    await service.signedIn('spaced@example.com')
    for (const email of ['spaced@example.com', 'unknown-spaced@example.com']) {
      expect((await service.post('/otp', { email, create_user: false })).status).toBe(200)
      const second = await service.post('/recover', { email })
      expect(second).toMatchObject({ status: 429, body: { error_code: 'over_email_send_rate_limit' } })
      expect(Number(second.headers['retry-after'])).toBeGreaterThan(50)
    }
    service.clock.advance({ seconds: 61 })
    expect((await service.post('/otp', { email: 'spaced@example.com' })).status).toBe(200)
  })

  // contract/auth-core.md 18, BUG7.
  test('with autoconfirm a new account is confirmed, gets a link and no session of its own', async () => {
    const service = await startTestService({ AUTH_MAILER_AUTOCONFIRM: 'true' })
    await service.post('/otp', { email: 'auto@example.com' })
    const mail = await service.mailbox.waitFor('auto@example.com')
    expect(linkPath(mail.text)).toContain('type=magiclink')
    expect((await userOf(service, 'auto@example.com'))?.email_confirmed_at).not.toBeNull()
    expect(await service.deps.db.selectFrom('sessions').selectAll().execute()).toEqual([])
    await service.close()
  })

  test('takes a password away that a stranger chose for the address', async ({ service }) => {
    const email = 'mine@example.com'
    await service.post('/signup', { email, password: 'the stranger knows' })
    const first = await service.mailbox.waitFor(email)
    await service.post('/otp', { email })
    const mail = await service.mailbox.waitFor(email, { after: first })
    expect((await service.post('/verify', { type: 'email', email, token: codeIn(mail.text) })).status).toBe(200)
    const stranger = await service.post('/token?grant_type=password', { email, password: 'the stranger knows' })
    expect(stranger).toMatchObject({ status: 400, body: { error_code: 'invalid_credentials' } })
  })

  test.for<[string, object, number, string]>([
    ['no address', {}, 400, 'validation_failed'],
    ['two addresses', { email: 'a@example.com', phone: '123' }, 400, 'validation_failed'],
    ['a channel for mail', { email: 'a@example.com', channel: 'sms' }, 400, 'validation_failed'],
    ['a malformed address', { email: 'a' }, 400, 'validation_failed'],
    ['half a code challenge', { email: 'a@example.com', code_challenge_method: 's256' }, 400, 'validation_failed'],
    [
      'a short code challenge',
      { email: 'a@example.com', code_challenge: 'x', code_challenge_method: 's256' },
      400,
      'validation_failed',
    ],
    [
      'an unknown challenge method',
      { email: 'a@example.com', code_challenge: 'x'.repeat(43), code_challenge_method: 'md5' },
      400,
      'validation_failed',
    ],
    ['a phone without a gateway', { phone: '+4915112345678' }, 400, 'phone_provider_disabled'],
    ['a number as address', { email: 1 }, 400, 'bad_json'],
  ])('with %s is refused', async ([, body, status, code], { service }) => {
    expect(await service.post('/otp', body)).toMatchObject({ status, body: { error_code: code } })
  })
})

describe('POST /magiclink', () => {
  test('does what /otp does and says that it is deprecated', async ({ service }) => {
    await service.signedIn('elder@example.com')
    service.mailbox.clear()
    const answer = await service.post('/magiclink', { email: 'elder@example.com' })
    expect([answer.status, answer.body]).toEqual([200, {}])
    expect(answer.headers.deprecation).toMatch(/^@\d+$/)
    const mail = await service.mailbox.waitFor('elder@example.com')
    expect(await service.post('/verify', { type: 'magiclink', token_hash: tokenIn(mail.text) })).toMatchObject({
      status: 200,
      body: { type: 'magiclink' },
    })
  })

  test('ignores the members that only POST /otp has', async ({ service }) => {
    const body = { email: 'member@example.com', create_user: false, channel: 'pigeon', phone: '+4915112345678' }
    expect(await service.post('/magiclink', body)).toMatchObject({ status: 200, body: {} })
    await service.mailbox.waitFor('member@example.com')
  })

  test('is refused without an address, and if magic links are disabled', async ({ service }) => {
    expect(await service.post('/magiclink', {})).toMatchObject({
      status: 422,
      body: { error_code: 'validation_failed' },
    })
    const without = await startTestService({ AUTH_EXTERNAL_EMAIL_MAGIC_LINK_ENABLED: 'false' })
    for (const path of ['/magiclink', '/otp']) {
      expect(await without.post(path, { email: 'a@example.com' })).toMatchObject({
        status: 422,
        body: { error_code: 'email_provider_disabled' },
      })
    }
    await without.close()
  })
})
