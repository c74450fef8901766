// Codes as users type and paste them, at every field that takes one (core/one-time-tokens/typed-code.ts).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { challenge, claimsOf, enrollTotp, signInAgain, totpCode, withTotp } from './second-factors.ts'
import { codeIn, startTestService, type TestService } from './service.ts'
import { type SmsUpstream, startSmsGateways } from './upstreams/sms-gateways.ts'

const PHONE = '4915100000951'
const TEST_PHONE = '4915100000952'

let gateways: SmsUpstream
let service: TestService
beforeAll(async () => {
  gateways = await startSmsGateways()
  service = await startTestService({
    ...gateways.settings('twilio'),
    AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
    AUTH_SMS_TEST_OTP: `${TEST_PHONE}:987654`,
    AUTH_MFA_PHONE_ENROLL_ENABLED: 'true',
    AUTH_MFA_PHONE_VERIFY_ENABLED: 'true',
    AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true',
  })
})
afterAll(async () => {
  await service.close()
  await gateways.close()
})

let emails = 0
const newEmail = () => `typed-${emails++}@example.com`

/** A code in groups, copied with the blanks and hyphens around it. */
const pasted = (code: string) => `\u200b ${code.slice(0, 3)} -\u00a0${code.slice(3, 5)}\u2013${code.slice(5)}\n`

const smsCode = async (phone: string) => {
  const { text } = await gateways.waitFor(phone)
  gateways.messages.length = 0
  return /\d{6}/.exec(text)?.[0] as string
}

/** Requests a code in each way that there is, and gives it as it was typed. */
const WAYS: Record<string, (typed: (code: string) => string) => Promise<{ status: number }>> = {
  'a mail to sign in': async (typed) => {
    const { userId } = await service.signedIn()
    const { body } = await service.get(`/admin/users/${userId}`, service.admin)
    await service.post('/otp', { email: body.email })
    const token = typed(codeIn((await service.mailbox.waitFor(body.email)).text))
    return service.post('/verify', { type: 'email', email: body.email, token })
  },
  'a mail that confirms': async (typed) => {
    const email = newEmail()
    await service.post('/signup', { email, password: 'correct horse' })
    const token = typed(codeIn((await service.mailbox.waitFor(email)).text))
    return service.post('/verify', { type: 'signup', email, token })
  },
  'a change of address': async (typed) => {
    const { auth } = await service.signedIn()
    const email = newEmail()
    await service.put('/user', { email }, auth)
    const token = typed(codeIn((await service.mailbox.waitFor(email)).text))
    return service.post('/verify', { type: 'email_change', email, token })
  },
  'an SMS': async (typed) => {
    service.clock.advance({ seconds: 61 })
    await service.post('/otp', { phone: PHONE })
    return service.post('/verify', { type: 'sms', phone: PHONE, token: typed(await smsCode(PHONE)) })
  },
  'a fixed code of a number': async (typed) => {
    service.clock.advance({ seconds: 61 })
    await service.post('/otp', { phone: TEST_PHONE })
    return service.post('/verify', { type: 'sms', phone: TEST_PHONE, token: typed('987654') })
  },
  'an authenticator app': async (typed) => {
    const user = await service.signedIn()
    const totp = await enrollTotp(service, user)
    const challenge_id = await challenge(service, user, totp.id)
    const code = typed(totpCode(totp.secret, service.clock.now()))
    return service.post(`/factors/${totp.id}/verify`, { challenge_id, code }, user.auth)
  },
  'an SMS as second factor': async (typed) => {
    service.clock.advance({ seconds: 61 })
    const user = await service.signedIn()
    const factor = { factor_type: 'phone', phone: PHONE, friendly_name: 'mobile' }
    const { body } = await service.post('/factors', factor, user.auth)
    const challenge_id = await challenge(service, user, body.id)
    const code = typed(await smsCode(PHONE))
    return service.post(`/factors/${body.id}/verify`, { challenge_id, code }, user.auth)
  },
  'a recovery code': async (typed) => {
    const { email, recoveryCodes } = await withTotp(service)
    const { auth } = await signInAgain(service, email)
    const code = typed((recoveryCodes[0] as string).toUpperCase())
    return service.post('/factors/recovery-codes/verify', { code }, auth)
  },
  'a nonce': async (typed) => {
    const user = await service.signedIn()
    await service.get('/reauthenticate', user.auth)
    const { text } = await service.mailbox.waitFor(claimsOf(user).email, { subject: 'verification code' })
    return service.put('/user', { password: 'another horse', nonce: typed(codeIn(text)) }, user.auth)
  },
}

describe('as it was typed, the service takes the code of', () => {
  test.for(Object.entries(WAYS))('%s', async ([, way]) => {
    expect((await way(pasted)).status).toBe(200)
  })
})

describe('with a sign that is neither, the service refuses the code of', () => {
  const other = (code: string) => pasted(code.replace(/.$/, '.'))
  test.for(Object.entries(WAYS))('%s', async ([, way]) => {
    expect((await way(other)).status).toBeGreaterThanOrEqual(400)
  })
})

describe('a number instead of a string is refused by name and type:', () => {
  test.for<[string, object]>([
    ['token', { type: 'sms', phone: PHONE, token: 12345 }],
    ['phone', { type: 'sms', phone: 4915100000951, token: '012345' }],
  ])('%s', async ([field, body]) => {
    expect(await service.post('/verify', body)).toMatchObject({
      status: 400,
      body: { error_code: 'bad_json', msg: `Could not read the request: ${field} must be a string, not a number` },
    })
  })

  test('code of a second factor', async () => {
    const { auth } = await service.signedIn()
    const { body } = await service.post(`/factors/3f2504e0-4f89-41d3-9a0c-0305e82c3301/verify`, { code: 123456 }, auth)
    expect(body.msg).toBe('Could not read the request: code must be a string, not a number')
  })
})
