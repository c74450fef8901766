// Everything a phone number can do: sign-up, sign-in by code and by password, change of number, reauthentication. The
// gateway is an upstream on loopback that answers as Twilio does.
import { perFile } from '@services/common/testing/per-file'
import { test as base, describe, expect } from 'vitest'
import { startTestService, type TestService } from './service.ts'
import { type SmsUpstream, startSmsGateways } from './upstreams/sms-gateways.ts'

const password = 'correct horse'

interface Fixture {
  phone: { service: TestService; gateways: SmsUpstream }
}

async function open(settings: Record<string, string> = {}) {
  const gateways = await startSmsGateways()
  const service = await startTestService({
    ...gateways.settings('twilio'),
    AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
    AUTH_SMS_MAX_PER_NUMBER: '1000/1h',
    ...settings,
  })
  return {
    service,
    gateways,
    close: async () => {
      await service.close()
      await gateways.close()
    },
  }
}

const test = base.extend<object & Fixture>({
  phone: perFile(() => open()),
})

let counter = 0
const freshPhone = () => `4915112${String(++counter).padStart(6, '0')}`

/** The code of the newest message to a number, waiting for the one after `seen`. */
async function codeFor({ gateways }: Fixture['phone'], number: string, seen = 0): Promise<string> {
  const sent = () => gateways.messages.filter(({ to }) => to.replace('+', '') === number)
  await expect.poll(() => sent().length).toBeGreaterThan(seen)
  return /\d{6,}/.exec(sent().at(-1)?.text ?? '')?.[0] as string
}

async function signedIn(phone: Fixture['phone'], number: string) {
  await phone.service.post('/signup', { phone: number, password })
  const token = await codeFor(phone, number)
  const { body } = await phone.service.post('/verify', { type: 'sms', phone: number, token })
  return { userId: body.user.id as string, auth: { authorization: `Bearer ${body.access_token}` } }
}

describe('sign-up by phone', () => {
  test('with the number of an account sends its owner nothing, or where enabled an SMS that it exists', async ({
    phone,
  }) => {
    const number = freshPhone()
    await signedIn(phone, number)
    const texts = () => phone.gateways.messages.filter(({ to }) => to.endsWith(number)).map(({ text }) => text)
    const before = texts()
    phone.service.clock.advance({ seconds: 901 })
    expect((await phone.service.post('/signup', { phone: number, password })).status).toBe(200)
    await phone.service.settled()
    expect(texts()).toEqual(before)
    const outspoken = await phone.service.with({ AUTH_SMS_ACCOUNT_EXISTS_ENABLED: 'true' })
    phone.service.clock.advance({ seconds: 901 })
    expect((await outspoken.post('/signup', { phone: number, password })).status).toBe(200)
    await expect.poll(texts).toEqual([...before, 'You already have an account at site.example.'])
    await outspoken.close()
  })

  test('sends a code, which confirms; then the password signs in', async ({ phone }) => {
    const number = freshPhone()
    const { status, body } = await phone.service.post('/signup', {
      phone: `+${number}`,
      password,
      data: { plan: 'pro' },
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      phone: number,
      email: '',
      app_metadata: { provider: 'phone', providers: ['phone'] },
      user_metadata: { plan: 'pro', phone_verified: false },
    })
    expect(body).not.toHaveProperty('phone_confirmed_at')
    const early = await phone.service.post('/token?grant_type=password', { phone: number, password })
    expect(early).toMatchObject({ status: 400, body: { error_code: 'phone_not_confirmed' } })
    const token = await codeFor(phone, number)
    const verified = await phone.service.post('/verify', { type: 'sms', phone: `+${number}`, token })
    expect(verified).toMatchObject({
      status: 200,
      body: { type: 'sms', user: { phone: number, identities: [{ identity_data: { phone_verified: true } }] } },
    })
    expect(await phone.service.post('/verify', { type: 'sms', phone: number, token })).toMatchObject({ status: 403 })
    expect((await phone.service.post('/token?grant_type=password', { phone: `+${number}`, password })).status).toBe(200)
  })

  test('of a number that exists gets the same answer and sends nothing', async ({ phone }) => {
    const number = freshPhone()
    await signedIn(phone, number)
    phone.service.clock.advance({ seconds: 61 })
    const sent = () => phone.gateways.messages.filter(({ to }) => to === number)
    const again = await phone.service.post('/signup', { phone: number, password: 'another horse' })
    expect(again).toMatchObject({ status: 200, body: { phone: number, role: 'authenticated' } })
    expect(again.body).not.toHaveProperty('phone_confirmed_at')
    await phone.service.settled()
    expect(sent()).toHaveLength(1)
  })

  test('again within a minute is refused', async ({ phone }) => {
    const number = freshPhone()
    await phone.service.post('/signup', { phone: number, password })
    expect(await phone.service.post('/signup', { phone: number, password })).toMatchObject({
      status: 429,
      body: { error_code: 'over_sms_send_rate_limit' },
    })
  })

  test.for<[string, object, string]>([
    ['a number with a zero in front', { phone: '01511234567' }, 'validation_failed'],
    ['an unknown channel', { phone: '491511234567', channel: 'pigeon' }, 'validation_failed'],
    [
      'a code challenge',
      { phone: '491511234567', code_challenge: 'x'.repeat(43), code_challenge_method: 's256' },
      'validation_failed',
    ],
  ])('with %s is refused', async ([, body, code], { phone }) => {
    expect(await phone.service.post('/signup', { password, ...body })).toMatchObject({
      status: 400,
      body: { error_code: code },
    })
  })

  test('with SMS_AUTOCONFIRM is a session at once, and a second one is refused in the words of the specification', async ({
    phone: shared,
  }) => {
    const phone = { ...shared, service: await shared.service.with({ AUTH_SMS_AUTOCONFIRM: 'true' }) }
    const number = freshPhone()
    const first = await phone.service.post('/signup', { phone: number, password })
    expect(first).toMatchObject({ status: 200, body: { token_type: 'bearer', user: { phone: number } } })
    expect(first.body.user.phone_confirmed_at).toBeTruthy()
    const second = await phone.service.post('/signup', { phone: number, password })
    expect(second).toMatchObject({ status: 400, body: { code: 400, msg: 'User already registered' } })
    expect(phone.gateways.messages.filter(({ to }) => to.replace('+', '') === number)).toEqual([])
    await phone.service.close()
  })
})

describe('sign-in by code', () => {
  test('works for a known number and makes an account for a new one', async ({ phone }) => {
    const known = freshPhone()
    const { userId } = await signedIn(phone, known)
    phone.service.clock.advance({ seconds: 61 })
    expect(await phone.service.post('/otp', { phone: known })).toMatchObject({ status: 200, body: {} })
    const token = await codeFor(phone, known, 1)
    expect(await phone.service.post('/verify', { type: 'sms', phone: known, token })).toMatchObject({
      body: { user: { id: userId } },
    })
    const fresh = freshPhone()
    await phone.service.post('/otp', { phone: fresh })
    const verified = await phone.service.post('/verify', {
      type: 'sms',
      phone: fresh,
      token: await codeFor(phone, fresh),
    })
    expect(verified).toMatchObject({ status: 200, body: { user: { phone: fresh } } })
  })

  test('expires after five failed attempts', async ({ phone }) => {
    const number = freshPhone()
    await phone.service.post('/otp', { phone: number })
    const token = await codeFor(phone, number)
    const wrong = token === '000000' ? '111111' : '000000'
    const verify = (code: string) => phone.service.post('/verify', { type: 'sms', phone: number, token: code })
    await Promise.all(Array.from({ length: 5 }, () => verify(wrong)))
    expect(await verify(token)).toMatchObject({ status: 403, body: { error_code: 'otp_expired' } })
  })

  test('requested after a stranger used up two lets the owner in, however many wrong ones follow', async ({
    phone,
  }) => {
    const number = freshPhone()
    const { userId } = await signedIn(phone, number)
    const { service } = phone
    const verify = (token: string) => service.post('/verify', { type: 'sms', phone: number, token })
    const guess = (times: number) => Promise.all(Array.from({ length: times }, (_, i) => verify(`${100000 + i}`)))
    const ask = async (sent: number) => {
      service.clock.advance({ seconds: 61 })
      expect((await service.post('/otp', { phone: number })).status).toBe(200)
      return codeFor(phone, number, sent)
    }
    for (const sent of [1, 2]) {
      const usedUp = await ask(sent)
      expect(usedUp).toHaveLength(6)
      await guess(5)
      expect((await verify(usedUp)).status).toBe(403)
    }
    // A code that the stranger asks for meanwhile is as good.
    for (const sent of [3, 4]) {
      const code = await ask(sent)
      expect(code).toHaveLength(12)
      for (const answer of await guess(20)) expect(answer.status).toBe(403)
      if (sent === 4) expect(await verify(code)).toMatchObject({ status: 200, body: { user: { id: userId } } })
    }
    expect(await ask(5)).toHaveLength(6)
  })

  test('to an unknown number with create_user false sends nothing and says nothing', async ({ phone }) => {
    const number = freshPhone()
    expect(await phone.service.post('/otp', { phone: number, create_user: false })).toMatchObject({
      status: 200,
      body: {},
    })
    await phone.service.settled()
    expect(phone.gateways.messages.filter(({ to }) => to.includes(number))).toEqual([])
  })
})

test('a change of number is sent to the new one and takes effect with its code', async ({ phone }) => {
  const [from, to] = [freshPhone(), freshPhone()]
  const { auth } = await signedIn(phone, from)
  const asked = await phone.service.put('/user', { phone: `+${to}` }, auth)
  expect(asked).toMatchObject({ status: 200, body: { phone: from, new_phone: to } })
  const token = await codeFor(phone, to)
  expect(await phone.service.post('/verify', { type: 'phone_change', phone: to, token })).toMatchObject({
    status: 200,
    body: { type: 'phone_change', user: { phone: to } },
  })
  expect((await phone.service.get('/user', auth)).body).not.toHaveProperty('new_phone')
  phone.service.clock.advance({ seconds: 61 })
  const taken = await phone.service.put('/user', { phone: from }, auth)
  expect(taken.status).toBe(200)
  const other = await signedIn(phone, freshPhone())
  expect(await phone.service.put('/user', { phone: to }, other.auth)).toMatchObject({
    status: 422,
    body: { error_code: 'phone_exists' },
  })
})

// Section 18: two users with one pending number.
test('a number requested by two users goes to the one who proves it, by the code sent to them', async ({ phone }) => {
  const wanted = freshPhone()
  const first = await signedIn(phone, freshPhone())
  const second = await signedIn(phone, freshPhone())
  await phone.service.put('/user', { phone: wanted }, first.auth)
  const firstCode = await codeFor(phone, wanted)
  phone.service.clock.advance({ seconds: 61 })
  await phone.service.put('/user', { phone: wanted }, second.auth)
  const secondCode = await codeFor(phone, wanted, 1)
  const verify = (token: string) => phone.service.post('/verify', { type: 'phone_change', phone: wanted, token })
  expect(await verify(secondCode)).toMatchObject({ status: 200, body: { user: { id: second.userId, phone: wanted } } })
  expect(await verify(firstCode)).toMatchObject({ status: 422, body: { error_code: 'phone_exists' } })
  expect((await phone.service.get('/user', first.auth)).body).toMatchObject({ new_phone: wanted })
})

// contract/auth-core.md 18, BUG8.
test('resend sends a pending code again, by the type that is pending', async ({ phone }) => {
  const number = freshPhone()
  await phone.service.post('/signup', { phone: number, password })
  const first = await codeFor(phone, number)
  phone.service.clock.advance({ seconds: 61 })
  const answer = await phone.service.post('/resend', { type: 'sms', phone: number })
  expect(answer).toMatchObject({ status: 200, body: { message_id: expect.stringMatching(/^[0-9a-f-]{36}$/) } })
  const second = await codeFor(phone, number, 1)
  const { messages } = (await phone.service.get('/admin/messages?channel=sms', phone.service.admin)).body
  expect(messages.map(({ id }: { id: string }) => id)).toContain(answer.body.message_id)
  const verify = (token: string) => phone.service.post('/verify', { type: 'sms', phone: number, token })
  if (first !== second) expect((await verify(first)).status).toBe(403)
  expect((await verify(second)).status).toBe(200)
})

test('a user with only a number gets the nonce there', async ({ phone: shared }) => {
  const phone = {
    ...shared,
    service: await shared.service.with({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' }),
  }
  const number = freshPhone()
  const { auth } = await signedIn(phone, number)
  expect((await phone.service.get('/reauthenticate', auth)).status).toBe(200)
  const nonce = await codeFor(phone, number, 1)
  expect((await phone.service.put('/user', { password: 'a new horse', nonce }, auth)).status).toBe(200)
  await phone.service.close()
})

test('a code that its gateway refuses for good is a failed message, and the account is there all the same', async () => {
  const phone = await open()
  phone.gateways.behave('twilio', {
    status: 400,
    body: JSON.stringify({ code: 21211, message: 'Invalid number', status: 400 }),
  })
  const number = freshPhone()
  expect((await phone.service.post('/signup', { phone: number, password })).status).toBe(200)
  const failed = async () =>
    (await phone.service.get('/admin/messages?channel=sms&state=failed', phone.service.admin)).body.messages
  await expect.poll(async () => (await failed()).length).toBe(1)
  expect(JSON.stringify(await failed())).not.toContain(number)
  phone.gateways.behave('twilio')
  const [message] = await failed()
  expect((await phone.service.post(`/admin/messages/${message.id}/retry`, {}, phone.service.admin)).status).toBe(200)
  const token = await codeFor(phone, number)
  expect((await phone.service.post('/verify', { type: 'sms', phone: number, token })).status).toBe(200)
  await phone.close()
})

test('a test number gets nothing and signs in with its fixed code, once it was asked for', async () => {
  const phone = await open({ AUTH_SMS_TEST_OTP: '491700000001:123456' })
  const number = '491700000001'
  const verify = () => phone.service.post('/verify', { type: 'sms', phone: number, token: '123456' })
  expect((await verify()).status).toBe(403)
  expect(await phone.service.post('/signup', { phone: number, password })).toMatchObject({ status: 200 })
  expect((await verify()).status).toBe(200)
  phone.service.clock.advance({ seconds: 61 })
  expect((await phone.service.post('/resend', { type: 'sms', phone: number })).body).toEqual({ message_id: 'test-otp' })
  expect(phone.gateways.messages).toEqual([])
  await phone.close()
})

test("a test number's code is there when /otp or /resend has answered, whatever the worker does", async () => {
  const number = '491700000001'
  const phone = await open({ AUTH_SMS_TEST_OTP: `${number}:123456`, AUTH_WORKERS_ENABLED: 'false' })
  const { service } = phone
  const verify = () => service.post('/verify', { type: 'sms', phone: number, token: '123456' })
  expect(await service.post('/otp', { phone: number })).toMatchObject({ body: { message_id: 'test-otp' } })
  service.clock.advance({ seconds: 61 })
  expect((await service.post('/resend', { type: 'sms', phone: number })).status).toBe(200)
  expect(await verify()).toMatchObject({ status: 200, body: { user: { phone: number } } })
  service.clock.advance({ seconds: 61 })
  expect((await service.post('/otp', { phone: number, create_user: false })).status).toBe(200)
  expect((await verify()).status).toBe(200)
  await phone.close()
})

test('/otp by phone answers the id of its message, by mail nothing', async ({ phone }) => {
  const number = freshPhone()
  const { status, body } = await phone.service.post('/otp', { phone: number })
  expect(status).toBe(200)
  await codeFor(phone, number)
  const listed = await phone.service.get('/admin/messages?channel=sms&per_page=200', phone.service.admin)
  expect(listed.body.messages.map(({ id }: { id: string }) => id)).toContain(body.message_id)
  expect((await phone.service.post('/otp', { email: 'by-mail@example.com' })).body).toEqual({})
})

test('an anonymous user becomes permanent with the confirmation of a number', async ({ phone: shared }) => {
  const phone = { ...shared, service: await shared.service.with({ AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' }) }
  const { body } = await phone.service.post('/signup', {})
  const auth = { authorization: `Bearer ${body.access_token}` }
  const number = freshPhone()
  await phone.service.put('/user', { phone: number }, auth)
  const token = await codeFor(phone, number)
  const { body: verified } = await phone.service.post('/verify', { type: 'phone_change', phone: number, token })
  expect(verified.user).toMatchObject({
    id: body.user.id,
    is_anonymous: false,
    phone: number,
    app_metadata: { provider: 'phone', providers: ['phone'] },
  })
  expect(verified.user.identities).toHaveLength(1)
  await phone.service.close()
})
