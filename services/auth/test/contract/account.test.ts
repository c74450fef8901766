// GET and PUT /user, /reauthenticate, /logout: cases that no test beside the code shows.
import { createHash } from 'node:crypto'
import { perFile } from '@services/common/testing/per-file'
import { describe, expect } from 'vitest'
import { test as base, bearer, codeIn, linkPath, queryOf, startTestService, type TestService } from '../service.ts'

const password = 'correct horse'
const PHONES = { AUTH_SMS_TEST_OTP: '4915100000001:111111,4915100000002:222222' }

/** `strict`: wants a nonce and the current password for a new one. */
const test = base.extend<object & { strict: TestService }>({
  strict: perFile(() =>
    startTestService({
      AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true',
      AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
      AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
      AUTH_RATE_LIMIT_EMAIL_SENT: '1000',
    }),
  ),
})

describe('a caller of GET /user', () => {
  test('may write the scheme in any case', async ({ service }) => {
    const { accessToken } = await service.signedIn()
    for (const scheme of ['bearer', 'BEARER', 'bEaReR']) {
      expect((await service.get('/user', { authorization: `${scheme} ${accessToken}` })).status).toBe(200)
    }
  })

  // Section 18: a token without a session.
  test('may have a token without a session, with an empty or the nil one, which reads and changes nothing', async ({
    service,
  }) => {
    const { userId: sub } = await service.signedIn()
    for (const session of [{}, { session_id: '' }, { session_id: '00000000-0000-0000-0000-000000000000' }]) {
      const auth = await bearer({ sub, aud: 'authenticated', ...session })
      expect((await service.get('/user', auth)).status).toBe(200)
      for (const refused of [
        await service.put('/user', { password: 'a new horse' }, auth),
        await service.put('/user', { email: 'elsewhere@example.com' }, auth),
        await service.get('/reauthenticate', auth),
      ]) {
        expect(refused).toMatchObject({ status: 403, body: { error_code: 'session_not_found' } })
      }
    }
  })

  test('is refused without an audience in the token, header or not', async ({ service }) => {
    const { userId: sub } = await service.signedIn()
    for (const aud of [{}, { aud: '' }, { aud: ['other', 'authenticated'] }]) {
      const answer = await service.get('/user', { ...(await bearer({ sub, ...aud })), 'x-jwt-aud': 'authenticated' })
      expect(answer).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
    }
  })

  test('is let in again when a ban has ended or was lifted', async ({ service }) => {
    const { userId, auth } = await service.signedIn()
    const ban = (ban_duration: string) => service.put(`/admin/users/${userId}`, { ban_duration }, service.admin)
    await ban('10m')
    expect((await service.get('/user', auth)).body.error_code).toBe('user_banned')
    for (const refused of [await service.put('/user', {}, auth), await service.post('/logout', {}, auth)]) {
      expect(refused).toMatchObject({ status: 403, body: { error_code: 'user_banned' } })
    }
    await ban('none')
    expect((await service.get('/user', auth)).status).toBe(200)
    await ban('10m')
    service.clock.advance({ seconds: 601 })
    expect((await service.get('/user', auth)).status).toBe(200)
  })
})

describe('PUT /user checks in the order of the contract:', () => {
  test.for<[string, object, number, string]>([
    ['the address before the password', { email: 'nobody', password: 'x' }, 400, 'validation_failed'],
    ['the number before the password', { phone: '0', password: 'x' }, 400, 'validation_failed'],
    ['the password before app_metadata', { password: 'x', app_metadata: {} }, 422, 'weak_password'],
    ['its length before app_metadata', { password: 'x'.repeat(1025), app_metadata: {} }, 400, 'validation_failed'],
    ['the password before a taken address', { password: 'x', email: 'held@example.com' }, 422, 'weak_password'],
    ['app_metadata before a taken address', { app_metadata: {}, email: 'held@example.com' }, 403, 'not_admin'],
    ['a taken address before the nonce', { password: 'long enough', email: 'held@example.com' }, 422, 'email_exists'],
    ['the nonce before the current password', { password: 'long enough' }, 400, 'reauthentication_needed'],
    ['a wrong nonce before the current password', { password, nonce: '1' }, 422, 'reauthentication_not_valid'],
  ])('%s', async ([, body, status, code], { strict }) => {
    const { auth } = await strict.signedIn()
    await strict.post('/admin/users', { email: 'held@example.com' }, strict.admin)
    expect(await strict.put('/user', body, auth)).toMatchObject({ status, body: { error_code: code } })
  })

  test('that an anonymous user names an address, before whether it is taken and before the nonce', async ({
    strict,
  }) => {
    await strict.post('/admin/users', { email: 'held@example.com' }, strict.admin)
    const { body } = await strict.post('/signup', {})
    const auth = { authorization: `Bearer ${body.access_token}` }
    expect(await strict.put('/user', { password }, auth)).toMatchObject({
      status: 422,
      body: { error_code: 'validation_failed' },
    })
  })
})

describe('app_metadata', () => {
  test('is merged for members of the inherited admin group alone', async ({ service }) => {
    const { userId, auth } = await service.signedIn()
    const put = () => service.put('/user', { app_metadata: { plan: 'pro', provider: null } }, auth)
    expect(await put()).toMatchObject({ status: 403, body: { error_code: 'not_admin' } })
    await service.put(`/admin/users/${userId}`, { role: 'admin' }, service.admin)
    const { status, body } = await put()
    expect([status, body.app_metadata]).toEqual([200, { providers: ['email'], plan: 'pro' }])
  })
})

describe('a change of number where numbers need no proof', () => {
  test('keeps the time of the first proof, so that tokens of older devices still read the account after a sign-out', async ({
    service: shared,
  }) => {
    const service = await shared.with({ ...PHONES, AUTH_SMS_AUTOCONFIRM: 'true' })
    const account = { phone: '4915100000051', password }
    await service.post('/admin/users', { ...account, phone_confirm: true }, service.admin)
    service.clock.advance({ seconds: 60 })
    const [older, newer] = await Promise.all([1, 2].map(() => service.post('/token?grant_type=password', account)))
    const authOf = (answer: typeof older) => ({ authorization: `Bearer ${answer?.body.access_token}` })
    service.clock.advance({ seconds: 60 })
    expect((await service.put('/user', { phone: '4915100000052' }, authOf(newer))).status).toBe(200)
    await service.post('/logout?scope=local', {}, authOf(older))
    expect((await service.get('/user', authOf(older))).status).toBe(200)
    await service.close()
  })

  test('takes effect at once; the same one is none, a taken one is refused', async ({ service: shared }) => {
    const service = await shared.with({ ...PHONES, AUTH_SMS_AUTOCONFIRM: 'true' })
    const [holder, user] = [await service.signedIn(), await service.signedIn()]
    const changed = await service.put('/user', { phone: '+4915100000001' }, holder.auth)
    expect(changed).toMatchObject({
      status: 200,
      body: { phone: '4915100000001', app_metadata: { providers: ['email', 'phone'] } },
    })
    expect(changed.body.phone_confirmed_at).toBeTruthy()
    expect(changed.body).not.toHaveProperty('new_phone')
    expect((await service.put('/user', { phone: '4915100000001' }, holder.auth)).status).toBe(200)
    expect(await service.put('/user', { phone: '4915100000001' }, user.auth)).toMatchObject({
      status: 422,
      body: { error_code: 'phone_exists' },
    })
    await service.close()
  })

  test('sends nothing and so counts no message', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_SMS_AUTOCONFIRM: 'true', AUTH_RATE_LIMIT_SMS_SENT: '1' })
    const { auth } = await service.signedIn()
    for (const phone of ['4915111111111', '4915122222222', '4915133333333']) {
      expect(await service.put('/user', { phone }, auth)).toMatchObject({ status: 200, body: { phone } })
    }
    await service.close()
  })
})

test('no code is demanded of a number if no SMS can be sent', async ({ service }) => {
  const { auth } = await service.signedIn()
  expect(await service.put('/user', { phone: '4915111111111' }, auth)).toMatchObject({
    status: 400,
    body: { error_code: 'phone_provider_disabled' },
  })
})

describe('a request repeated too soon uses up no other mail:', () => {
  test('a change of address', async ({ service: shared }) => {
    const service = await shared.onAnotherDay({ AUTH_RATE_LIMIT_EMAIL_SENT: '4' })
    const { auth } = await service.signedIn()
    for (const status of [200, 429, 429, 429, 429]) {
      expect((await service.put('/user', { email: 'wished@example.com' }, auth)).status).toBe(status)
    }
    expect((await service.post('/signup', { email: `${crypto.randomUUID()}@example.com`, password })).status).toBe(200)
    await service.close()
  })

  test('a nonce', async ({ service: shared }) => {
    const service = await shared.onAnotherDay({ AUTH_RATE_LIMIT_EMAIL_SENT: '4' })
    const { auth } = await service.signedIn()
    for (const status of [200, 429, 429, 429, 429]) {
      expect((await service.get('/reauthenticate', auth)).status).toBe(status)
    }
    expect((await service.post('/signup', { email: `${crypto.randomUUID()}@example.com`, password })).status).toBe(200)
    await service.close()
  })
})

describe('a new password', () => {
  test('ends every link, code and PKCE code that was under way, and forgets when they were sent', async ({
    service,
  }) => {
    const email = 'under-way@example.com'
    const { auth, userId } = await service.signedIn(email)
    await service.put('/user', { email: 'under-way-new@example.com' }, auth)
    await service.get('/reauthenticate', auth)
    const link = await service.post('/admin/generate_link', { type: 'recovery', email }, service.admin)
    const { body } = await service.put('/user', { password: 'a new horse' }, auth)
    for (const kind of ['confirmation', 'recovery', 'email_change', 'phone_change', 'reauthentication']) {
      expect(body).not.toHaveProperty(`${kind}_sent_at`)
    }
    expect(await service.post('/verify', { type: 'recovery', token_hash: link.body.hashed_token })).toMatchObject({
      status: 403,
    })
    const { rows } = await service.deps.pool.query('select 1 from one_time_tokens where user_id = $1', [userId])
    expect(rows).toEqual([])
  })

  test('requires the current one also from a user who has just changed their address by the PKCE flow', async ({
    service: shared,
  }) => {
    const service = await shared.with({
      AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
      AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false',
    })
    const { auth } = await service.signedIn('from@example.com')
    const verifier = 'v'.repeat(43)
    const code_challenge = createHash('sha256').update(verifier).digest('base64url')
    const pkce = { code_challenge, code_challenge_method: 's256' }
    await service.put('/user', { email: 'to@example.com', current_password: 'correct horse', ...pkce }, auth)
    const { text } = await service.mailbox.waitFor('to@example.com')
    const { code } = queryOf(await service.get(linkPath(text)))
    const { body } = await service.post('/token?grant_type=pkce', { auth_code: code, code_verifier: verifier })
    const came = { authorization: `Bearer ${body.access_token}` }
    expect(await service.put('/user', { password: 'a new horse' }, came)).toMatchObject({
      status: 400,
      body: { error_code: 'current_password_required' },
    })
    await service.close()
  })

  test('is no reason to ask for the current one where there is none', async () => {
    const service = await startTestService({
      AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
      ...PHONES,
    })
    const phone = '4915100000001'
    await service.post('/otp', { phone })
    await expect.poll(() => service.deps.queue.depth('message-requests')).toBe(0)
    const { body } = await service.post('/verify', { type: 'sms', phone, token: '111111' })
    const auth = { authorization: `Bearer ${body.access_token}` }
    const changed = await service.put('/user', { password: 'a new horse' }, auth)
    // A password makes no identity, and no address either.
    expect(changed).toMatchObject({ status: 200, body: { email: '', identities: [{ provider: 'phone' }] } })
    expect(changed.body.identities).toHaveLength(1)
    await service.close()
  })
})

describe('GET /reauthenticate', () => {
  test('is refused to a user without a proven address', async ({ service: shared }) => {
    const service = await shared.with({ ...PHONES, AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' })
    const { body } = await service.post('/signup', {})
    const auth = { authorization: `Bearer ${body.access_token}` }
    const path = `/admin/users/${body.user.id}`
    const asked = () => service.get('/reauthenticate', auth)
    expect(await asked()).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
    await service.put(path, { phone: '4915100000002' }, service.admin)
    expect(await asked()).toMatchObject({ status: 422, body: { error_code: 'phone_not_confirmed' } })
    // An unproven e-mail address counts before a proven number.
    await service.put(path, { phone_confirm: true, email: 'a@example.com' }, service.admin)
    expect(await asked()).toMatchObject({ status: 422, body: { error_code: 'email_not_confirmed' } })
    await service.put(path, { email_confirm: true }, service.admin)
    expect((await asked()).status).toBe(200)
    const mail = await service.mailbox.waitFor('a@example.com')
    expect(codeIn(mail.text)).toMatch(/^\d{6}$/)
    expect(mail.text).not.toContain('/verify')
    await service.close()
  })
  test('says so to a user with a number alone, once no gateway is left', async ({ service: after }) => {
    const before = await after.with({ ...PHONES, AUTH_SMS_AUTOCONFIRM: 'true' })
    const { body } = await before.post('/signup', { phone: '4915100000061', password })
    const asked = await after.get('/reauthenticate', { authorization: `Bearer ${body.access_token}` })
    expect(asked).toMatchObject({ status: 400, body: { error_code: 'phone_provider_disabled' } })
    await before.close()
  })
})
