import { describe, expect } from 'vitest'
import { codeIn, fragmentOf, linkPath, startTestService, test } from '../../../test/service.ts'

const password = 'correct horse'

test('a pending sign-up gets a new mail, which replaces the old one and keeps the password', async ({ service }) => {
  const email = 'again@example.com'
  await service.post('/signup', { email, password })
  const first = await service.mailbox.waitFor(email)
  expect((await service.post('/resend', { type: 'signup', email })).status).toBe(429)
  service.clock.advance({ seconds: 901 })
  const answer = await service.post('/resend', { type: 'signup', email })
  expect(answer).toMatchObject({ status: 200, body: { message_id: expect.stringMatching(/^[0-9a-f-]{36}$/) } })
  const second = await service.mailbox.waitFor(email, { after: first })
  expect(fragmentOf(await service.get(linkPath(first.text)))).toMatchObject({ error_code: 'otp_expired' })
  expect(fragmentOf(await service.get(linkPath(second.text)))).toMatchObject({ type: 'signup' })
  expect((await service.post('/token?grant_type=password', { email, password })).status).toBe(200)
})

test('an address with nothing pending or no account gets the same answer and no message', async ({ service }) => {
  await service.signedIn('done@example.com')
  service.mailbox.clear()
  service.clock.advance({ seconds: 901 })
  for (const type of ['signup', 'email_change']) {
    for (const email of ['done@example.com', 'nobody@example.com']) {
      const answer = await service.post('/resend', { type, email })
      expect([answer.status, Object.keys(answer.body)]).toEqual([200, ['message_id']])
    }
  }
  await expect.poll(() => service.deps.queue.depth('message-requests')).toBe(0)
  expect(service.mailbox.messages()).toEqual([])
})

test('a pending change of address is sent to both again', async ({ service }) => {
  const { auth } = await service.signedIn('old@example.com')
  await service.put('/user', { email: 'wanted@example.com' }, auth)
  const first = await service.mailbox.waitFor('wanted@example.com')
  const firstOld = await service.mailbox.waitFor('old@example.com')
  service.clock.advance({ seconds: 901 })
  await service.post('/resend', { type: 'email_change', email: 'old@example.com' })
  const second = await service.mailbox.waitFor('wanted@example.com', { after: first })
  await service.mailbox.waitFor('old@example.com', { after: firstOld })
  expect(codeIn(second.text)).toMatch(/^\d{6}$/)
})

test('a request that comes too early waits a minute and does not lose the next mail; known and unknown addresses are answered alike', async ({
  service,
}) => {
  const { auth } = await service.signedIn('early@example.com')
  await service.put('/user', { email: 'early-new@example.com' }, auth)
  const first = await service.mailbox.waitFor('early-new@example.com')
  const resend = async (wait: number) => {
    service.clock.advance({ seconds: wait })
    const ask = async (email: string) => (await service.post('/resend', { type: 'email_change', email })).status
    const [known, unknown] = [await ask('early@example.com'), await ask('stranger@example.com')]
    await expect.poll(() => service.deps.queue.depth('message-requests')).toBe(0)
    expect(known).toBe(unknown)
    return known
  }
  expect(await resend(840)).toBe(200)
  expect(await resend(30)).toBe(429)
  expect(service.mailbox.messages({ to: 'early-new@example.com' })).toHaveLength(1)
  expect(await resend(31)).toBe(200)
  await service.mailbox.waitFor('early-new@example.com', { after: first })
})

test('changes that are asked for again wait in the queue only as many as mails may be sent', async () => {
  const service = await startTestService({ AUTH_RATE_LIMIT_EMAIL_SENT: '3', AUTH_WORKERS_ENABLED: 'false' })
  const statuses: number[] = []
  for (const type of ['email_change', 'phone_change']) {
    for (let i = 0; i < 4; i++) {
      const answer = await service.post('/resend', { type, email: `${type}-${i}@example.com` })
      statuses.push(answer.status)
      if (answer.status === 429) {
        expect(answer.body.error_code).toBe('over_request_rate_limit')
        expect(Number(answer.headers['retry-after'])).toBeGreaterThan(3000)
      }
    }
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429, 429, 429, 429])
  expect(await service.deps.queue.depth('message-requests')).toBe(3)
  // These count in a share of their own and cost other users no mail.
  expect((await service.post('/recover', { email: 'other@example.com' })).status).toBe(200)
  await service.close()
})

describe('a request', () => {
  test.for<[string, object]>([
    ['without type', { email: 'a@example.com' }],
    ['of an unknown type', { type: 'recovery', email: 'a@example.com' }],
    ['of a type that is a property of every object', { type: 'constructor', email: 'a@example.com' }],
    ['for a sign-up by phone number', { type: 'signup', phone: '491511234567' }],
    ['for SMS to a mail address', { type: 'sms', email: 'a@example.com' }],
    ['with both addresses', { type: 'email_change', email: 'a@example.com', phone: '491511234567' }],
    ['with none', { type: 'email_change' }],
    ['with a malformed address', { type: 'signup', email: 'a' }],
    ['with half a code challenge', { type: 'signup', email: 'a@example.com', code_challenge: 'x'.repeat(43) }],
  ])('%s is refused', async ([, body], { service }) => {
    expect(await service.post('/resend', body)).toMatchObject({
      status: 400,
      body: { error_code: 'validation_failed' },
    })
  })
})
