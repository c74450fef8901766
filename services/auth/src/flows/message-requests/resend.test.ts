import { describe, expect } from 'vitest'
import {
  codeIn,
  fragmentOf,
  linkPath,
  queryOf,
  startTestService,
  type TestService,
  test,
} from '../../../test/service.ts'
import { startSmsGateways } from '../../../test/upstreams/sms-gateways.ts'

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
  await service.settled()
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

describe('a change of address that is sent again by anyone', () => {
  let users = 0
  async function changing(service: TestService, more: object = {}) {
    const user = `half-${++users}`
    const addresses = { current: `${user}@example.com`, next: `${user}-new@example.com` }
    const { auth } = await service.signedIn(addresses.current)
    await service.put('/user', { email: addresses.next, ...more }, auth)
    const mails = {
      current: await service.mailbox.waitFor(addresses.current),
      next: await service.mailbox.waitFor(addresses.next),
    }
    const resend = async (body: object = {}) => {
      service.clock.advance({ seconds: 901 })
      expect((await service.post('/resend', { type: 'email_change', email: addresses.current, ...body })).status).toBe(
        200,
      )
      await service.settled()
    }
    const sentTo = (which: 'current' | 'next') => service.mailbox.messages({ to: addresses[which] }).length
    const email = async () => (await service.get('/user', auth)).body.email
    return { auth, addresses, mails, resend, sentTo, email }
  }

  test.for([
    ['current', 'next'],
    ['next', 'current'],
  ] as const)(
    'keeps the agreement of the %s address and goes to the other one alone',
    async ([first, second], { service }) => {
      const { addresses, mails, resend, sentTo, email } = await changing(service)
      expect(fragmentOf(await service.get(linkPath(mails[first].text)))).toHaveProperty('message')
      await resend()
      expect([sentTo(first), sentTo(second)]).toEqual([1, 2])
      // Either link of the other address completes the change: the mail of before and the repeated one.
      await service.get(linkPath(mails[second].text))
      expect(await email()).toBe(addresses.next)
    },
  )

  test('keeps the links of before beside those of the repeated mails', async ({ service }) => {
    for (const isRepeated of [false, true]) {
      const { addresses, mails, resend, email } = await changing(service)
      await resend()
      const again = {
        current: await service.mailbox.waitFor(addresses.current, { after: mails.current }),
        next: await service.mailbox.waitFor(addresses.next, { after: mails.next }),
      }
      await service.get(linkPath((isRepeated ? again : mails).current.text))
      await service.get(linkPath((isRepeated ? mails : again).next.text))
      expect(await email()).toBe(addresses.next)
    }
  })

  test('keeps the code of before, which is that of the repeated mail', async ({ service }) => {
    const { addresses, mails, resend, email } = await changing(service)
    await resend()
    const again = await service.mailbox.waitFor(addresses.next, { after: mails.next })
    expect(codeIn(again.text)).toBe(codeIn(mails.next.text))
    for (const which of ['current', 'next'] as const) {
      const body = { type: 'email_change', email: addresses[which], token: codeIn(mails[which].text) }
      expect((await service.post('/verify', body)).status).toBe(200)
    }
    expect(await email()).toBe(addresses.next)
  })

  test('has another code once the lifetime of the first one has passed, which no repetition prolongs', async ({
    service,
  }) => {
    const { addresses, mails, resend } = await changing(service)
    const verify = async (which: 'current' | 'next', code = codeIn(mails[which].text)) =>
      (await service.post('/verify', { type: 'email_change', email: addresses[which], token: code })).status
    for (let time = 0; time < 3; time++) await resend()
    const kept = service.mailbox.messages({ to: addresses.next })[0]
    expect(codeIn(String(kept?.text))).toBe(codeIn(mails.next.text))
    service.clock.advance({ seconds: 896 })
    expect(await verify('current')).toBe(200)
    // 3,600 s after the first mail, and 897 s after the last one, whose link is still valid.
    service.clock.advance({ seconds: 1 })
    expect(await verify('next')).toBe(403)
    await resend()
    const fresh = await service.mailbox.waitFor(addresses.next, { after: kept })
    expect(codeIn(fresh.text)).not.toBe(codeIn(mails.next.text))
    expect(fragmentOf(await service.get(linkPath(String(kept?.text))))).toHaveProperty('access_token')
  })

  test('keeps the code of a number, with its attempts and its end', async () => {
    const gateways = await startSmsGateways()
    const service = await startTestService({
      ...gateways.settings('twilio'),
      ...{ AUTH_SMS_MAX_PER_NUMBER: '100/1h', AUTH_SMS_MAX_PER_PREFIX: '1000/1h' },
    })
    let phones = 4_915_100_002_000
    const changing = async () => {
      const [phone, email] = [`${++phones}`, `n-${phones}@example.com`]
      const { auth } = await service.signedIn(email)
      await service.put('/user', { phone }, auth)
      const codes: string[] = []
      const sent = async () => {
        await service.settled()
        const texts = gateways.messages.filter(({ to }) => to === phone).map(({ text }) => text)
        codes.splice(0, codes.length, ...texts.map((text) => String(/\d{6,}/.exec(text)?.[0])))
      }
      await sent()
      const resend = async () => {
        service.clock.advance({ seconds: 61 })
        await service.post('/resend', { type: 'phone_change', email })
        await sent()
      }
      const verify = async (token: string) =>
        (await service.post('/verify', { type: 'phone_change', phone, token })).status
      const miss = (code: string) => verify(code.replace(/^./, (digit) => String((Number(digit) + 1) % 10)))
      return { codes, resend, verify, miss }
    }
    const kept = await changing()
    await kept.resend()
    expect([kept.codes.length, new Set(kept.codes).size]).toEqual([2, 1])
    expect(await kept.verify(kept.codes[0] as string)).toBe(200)

    const ended = await changing()
    await ended.resend()
    await ended.resend()
    service.clock.advance({ seconds: 478 })
    // 600 s after the first message, the lifetime of its code.
    expect(await ended.verify(ended.codes[1] as string)).toBe(403)
    await ended.resend()
    expect(await ended.verify(ended.codes[3] as string)).toBe(200)

    const guessed = await changing()
    const [first = ''] = guessed.codes
    for (let time = 0; time < 5; time++) {
      expect(await guessed.miss(first)).toBe(403)
      if (time === 2) await guessed.resend()
    }
    expect(await guessed.verify(first)).toBe(403)
    await guessed.resend()
    const [, repeated, fresh = ''] = guessed.codes
    expect(repeated).toBe(first)
    expect(fresh).not.toBe(first)
    expect(await guessed.verify(fresh)).toBe(200)
    await service.close()
    await gateways.close()
  })

  test('keeps the code challenge of the request', async ({ service }) => {
    const verifier = 'v'.repeat(43)
    const { addresses, mails, resend } = await changing(service, {
      code_challenge: verifier,
      code_challenge_method: 'plain',
    })
    await resend()
    await service.get(linkPath(mails.current.text))
    const again = await service.mailbox.waitFor(addresses.next, { after: mails.next })
    const { code } = queryOf(await service.get(linkPath(again.text)))
    const exchanged = await service.post('/token?grant_type=pkce', { auth_code: code, code_verifier: verifier })
    expect(exchanged.body.user?.email).toBe(addresses.next)
  })
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
