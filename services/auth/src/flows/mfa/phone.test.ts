import { afterAll, beforeAll, expect, test } from 'vitest'
import { claimsOf, signInAgain } from '../../../test/second-factors.ts'
import { type SignedIn, startTestService, type TestService, toSignedIn } from '../../../test/service.ts'
import { type SmsUpstream, startSmsGateways } from '../../../test/upstreams/sms-gateways.ts'

let service: TestService
let gateways: SmsUpstream

beforeAll(async () => {
  gateways = await startSmsGateways()
  service = await startTestService({
    ...gateways.settings('twilio'),
    AUTH_MFA_PHONE_ENROLL_ENABLED: 'true',
    AUTH_MFA_PHONE_VERIFY_ENABLED: 'true',
    AUTH_MFA_PHONE_TEMPLATE: 'Second factor: {{ .Code }}',
    AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
    AUTH_SMS_TEST_OTP: '4915100000999:424242',
  })
})
afterAll(async () => {
  await service.close()
  await gateways.close()
})

const refusal = (status: number, code: string, msg?: string) => ({
  status,
  body: { code: status, error_code: code, ...(msg ? { msg } : {}) },
})

let numbers = 100
const newNumber = () => `4915177770${numbers++}`

const enroll = ({ auth }: SignedIn, phone: string, friendly_name = phone) =>
  service.post('/factors', { factor_type: 'phone', friendly_name, phone: `+${phone}` }, auth)
const challenge = ({ auth }: SignedIn, id: string, body: object = {}) =>
  service.post(`/factors/${id}/challenge`, body, auth)
const verify = ({ auth }: SignedIn, id: string, challenge_id: string, code: string) =>
  service.post(`/factors/${id}/verify`, { challenge_id, code }, auth)
const codeFor = async (phone: string) => {
  const { text } = await gateways.waitFor(phone)
  return /^Second factor: (\d{6})$/.exec(text)?.[1] as string
}

async function withPhone() {
  const [user, phone] = [await service.signedIn(), newNumber()]
  const { body: factor } = await enroll(user, phone)
  const { body: opened } = await challenge(user, factor.id)
  return { user, phone, id: factor.id as string, challengeId: opened.id as string }
}

test('a code sent to the number raises the session, by a text of its own', async () => {
  const user = await service.signedIn()
  const phone = newNumber()
  const { status, body } = await enroll(user, phone, 'mobile')
  expect(status).toBe(200)
  expect(body).toEqual({ id: expect.any(String), type: 'phone', friendly_name: 'mobile', phone: `+${phone}` })
  const opened = await challenge(user, body.id)
  expect(opened.body).toEqual({ id: expect.any(String), type: 'phone', expires_at: expect.any(Number) })
  const code = await codeFor(phone)
  const answer = await verify(user, body.id, opened.body.id, code)
  expect(answer.status).toBe(200)
  expect(claimsOf(toSignedIn(answer.body))).toMatchObject({
    aal: 'aal2',
    amr: [{ method: 'mfa/phone' }, { method: 'password' }],
  })
  expect(answer.body.user.factors).toMatchObject([
    { factor_type: 'phone', status: 'verified', phone: `+${phone}` },
    { factor_type: 'recovery_code' },
  ])
  expect(answer.body.recovery_codes).toHaveLength(10)
})

test('the code is stored as an HMAC and in no clear text', async () => {
  const { phone, challengeId } = await withPhone()
  const code = await codeFor(phone)
  const { rows } = await service.deps.pool.query(
    `select encode(code_hash, 'escape') as hash from factor_challenges where id = $1`,
    [challengeId],
  )
  expect(rows[0].hash.length).toBeGreaterThanOrEqual(32)
  const messages = await service.deps.pool.query('select * from messages')
  expect(JSON.stringify(rows) + JSON.stringify(messages.rows)).not.toContain(code)
})

test('of one right code sent many times at once exactly one is accepted', async () => {
  const { user, phone, id, challengeId } = await withPhone()
  const code = await codeFor(phone)
  const answers = await Promise.all([1, 2, 3, 4].map(() => verify(user, id, challengeId, code)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
})

test('five wrong attempts end the code, even if the waits are observed', async () => {
  const { user, phone, id, challengeId } = await withPhone()
  const code = await codeFor(phone)
  const wrong = code === '000000' ? '000001' : '000000'
  for (let i = 0; i < 5; i++) {
    const answer = await verify(user, id, challengeId, wrong)
    expect(answer).toMatchObject(refusal(422, 'mfa_verification_failed', 'Invalid MFA Phone code entered'))
  }
  expect(await verify(user, id, challengeId, code)).toMatchObject(refusal(429, 'over_request_rate_limit'))
  service.clock.advance({ seconds: 20 })
  expect(await verify(user, id, challengeId, code)).toMatchObject(refusal(422, 'mfa_verification_failed'))
})

test('the code of one challenge does not work for another', async () => {
  const { user, phone, id } = await withPhone()
  const code = await codeFor(phone)
  gateways.messages.length = 0
  service.clock.advance({ seconds: 61 })
  const { body } = await challenge(user, id)
  expect(await codeFor(phone)).not.toBe(code)
  expect((await verify(user, id, body.id, code)).status).toBe(422)
})

test('codes are a minute apart for one user and number, even for a factor enrolled again; another user does not wait', async () => {
  const { user, phone, id } = await withPhone()
  const refused = await challenge(user, id)
  expect(refused).toMatchObject(
    refusal(429, 'over_sms_send_rate_limit', 'For security purposes, you can only request this after 60 seconds.'),
  )
  expect(refused.headers['retry-after']).toBe('60')
  const { body: anew } = await enroll(user, phone)
  expect((await challenge(user, anew.id)).status).toBe(429)
  const other = await service.signedIn()
  const { body: same } = await enroll(other, phone)
  expect((await challenge(other, same.id)).status).toBe(200)
})

test('of challenges at once one sends a message', async () => {
  const [user, phone] = [await service.signedIn(), newNumber()]
  const { body } = await enroll(user, phone)
  const answers = await Promise.all([1, 2, 3].map(() => challenge(user, body.id)))
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 429, 429])
})

test('one number is one factor: a proven one stays, one that was begun is replaced', async () => {
  const { user, phone, id, challengeId } = await withPhone()
  // Waited for: arriving after the messages are cleared below, it would be taken for the next one.
  await codeFor(phone)
  const { body: replaced } = await enroll(user, phone)
  expect(replaced.id).not.toBe(id)
  expect((await verify(user, id, challengeId, '123456')).status).toBe(404)
  service.clock.advance({ seconds: 61 })
  gateways.messages.length = 0
  const { body: opened } = await challenge(user, replaced.id)
  const raised = toSignedIn((await verify(user, replaced.id, opened.id, await codeFor(phone))).body)
  expect(await enroll(raised, phone, 'again')).toMatchObject(
    refusal(
      422,
      'mfa_verified_factor_exists',
      'A verified phone factor already exists, unenroll the existing factor to continue',
    ),
  )
})

test("a second factor's code does not sign in, nor confirm a number", async () => {
  const { phone } = await withPhone()
  const token = await codeFor(phone)
  for (const type of ['sms', 'phone_change']) {
    expect((await service.post('/verify', { type, phone, token })).status).toBe(403)
  }
})

test('one code is stored differently for each challenge', async () => {
  const user = await service.signedIn()
  const { body: factor } = await enroll(user, '4915100000999')
  for (let i = 0; i < 2; i++) {
    expect((await challenge(user, factor.id)).status).toBe(200)
    service.clock.advance({ seconds: 61 })
  }
  const { rows } = await service.deps.pool.query(
    'select distinct code_hash from factor_challenges where factor_id = $1',
    [factor.id],
  )
  expect(rows).toHaveLength(2)
})

test('a number of tests has its fixed code, and gets no message', async () => {
  const user = await service.signedIn('fixed-code@example.com')
  const { body: factor } = await enroll(user, '4915100000999')
  const { body: opened } = await challenge(user, factor.id)
  expect((await verify(user, factor.id, opened.id, '424242')).status).toBe(200)
  expect(gateways.messages.some(({ to }) => to === '4915100000999')).toBe(false)
  const later = await signInAgain(service, 'fixed-code@example.com')
  expect(await enroll(later, newNumber())).toMatchObject(refusal(403, 'insufficient_aal'))
})

test.for([
  [{ phone: '' }, 'Phone number required to enroll Phone factor'],
  [{}, 'Phone number required to enroll Phone factor'],
  [{ phone: '0151' }, 'Invalid phone number format (E.164 required)'],
  [{ phone: 'x'.repeat(1000) }, 'Invalid phone number format (E.164 required)'],
] as const)('%j is no number', async ([body, msg]) => {
  const { auth } = await service.signedIn()
  expect(await service.post('/factors', { factor_type: 'phone', ...body }, auth)).toMatchObject(
    refusal(400, 'validation_failed', msg),
  )
})

test('WhatsApp is a channel where the gateway has it, anything else is none', async () => {
  const [user, phone] = [await service.signedIn(), newNumber()]
  const { body } = await enroll(user, phone)
  expect(await challenge(user, body.id, { channel: 'pigeon' })).toMatchObject(refusal(400, 'validation_failed'))
  expect((await challenge(user, body.id, { channel: 'whatsapp', factorId: body.id })).status).toBe(200)
  expect(await gateways.waitFor(phone)).toMatchObject({ channel: 'whatsapp' })
})

test('strangers who ask for all messages there are keep no user from the second factor', async () => {
  const { user, phone, id, challengeId } = await withPhone()
  const { body: raised } = await verify(user, id, challengeId, await codeFor(phone))
  // Messages of the tests before count too.
  await service.deps.db.deleteFrom('rate_limits').execute()
  const elsewhere = await service.with({
    AUTH_SMS_MAX_PER_NUMBER: '2',
    AUTH_SMS_MAX_PER_PREFIX: '8',
    AUTH_SMS_DAILY_BUDGET: '10',
    AUTH_RATE_LIMIT_SMS_SENT: '10',
  })
  const otp = async (number: string) => (await elsewhere.post('/otp', { phone: number })).status
  const used: Record<string, () => Promise<number>> = {
    'of the number': async () => {
      service.clock.advance({ seconds: 61 })
      return otp(phone)
    },
    'of its block': () => otp(newNumber()),
    'of all numbers': () => otp(`4916${numbers++}0000000`),
  }
  for (const [share, use] of Object.entries(used)) {
    for (let i = 0; (await use()) === 200; i++) expect(i, share).toBeLessThan(20)
  }
  const challenged = toSignedIn(raised)
  expect((await elsewhere.post(`/factors/${id}/challenge`, {}, challenged.auth)).status).toBe(200)
  const begun = await enroll(challenged, newNumber())
  const unproven = await elsewhere.post(`/factors/${begun.body.id}/challenge`, {}, challenged.auth)
  expect(unproven).toMatchObject(refusal(429, 'over_sms_send_rate_limit'))
})
