// Lifetime of a claim to an unproven address, per audience: as long as a message could prove the address.
import { expect } from 'vitest'
import { deleteExpired } from '../src/housekeeping.ts'
import { linkPath, queryOf, startTestService, type TestService, test } from './service.ts'
import { startSmsGateways } from './upstreams/sms-gateways.ts'

const STRANGERS = 'the stranger knows'
const OWNERS = 'only the owner knows'
const SHOP = { 'x-jwt-aud': 'shop' }

const signIn = (service: TestService, address: object, password: string, headers = {}) =>
  service.post('/token?grant_type=password', { ...address, password }, headers)

const follow = async (service: TestService, { text }: { text: string }) =>
  expect((await service.get(linkPath(text))).headers.location).toContain('access_token')

const codeOf = ({ text }: { text: string }) => /\b\d{6}\b/.exec(text)?.[0]

test.for(['/signup', '/otp', '/recover'])(
  'a request by %s for another audience, which the gap of the address refuses, is a claim all the same',
  async (door, { service }) => {
    const audiences = await service.with({ AUTH_JWT_AUDIENCES: 'shop' })
    const email = `audience${door.replace('/', '-')}@example.com`
    await audiences.post('/signup', { email, password: STRANGERS })
    const mail = await audiences.mailbox.waitFor(email)
    await audiences.post(door, { email, ...(door === '/signup' ? { password: OWNERS } : {}) }, SHOP)
    await follow(audiences, mail)
    expect((await signIn(audiences, { email }, STRANGERS)).body.error_code).toBe('invalid_credentials')
    await audiences.close()
  },
)

test('an owner who signs up with one password in two audiences keeps it in both', async ({ service }) => {
  const audiences = await service.with({ AUTH_JWT_AUDIENCES: 'shop' })
  const email = 'in-both@example.com'
  const signUp = (headers: Record<string, string>) => audiences.post('/signup', { email, password: OWNERS }, headers)
  await signUp({})
  const first = await audiences.mailbox.waitFor(email)
  await follow(audiences, first)
  audiences.clock.advance({ seconds: 901 })
  await signUp(SHOP)
  await follow(audiences, await audiences.mailbox.waitFor(email, { after: first }))
  expect((await signIn(audiences, { email }, OWNERS)).status).toBe(200)
  expect((await signIn(audiences, { email }, OWNERS, SHOP)).status).toBe(200)
  await audiences.close()
})

test('a link sent again after it expired sets the password of its requester, not of a stranger who asks next', async ({
  service,
}) => {
  const email = 'again-after-all@example.com'
  await service.post('/signup', { email, password: OWNERS })
  const first = await service.mailbox.waitFor(email)
  await service.settled()
  service.clock.advance({ seconds: 3700 })
  await deleteExpired(service.deps, service.deps.log)
  await service.post('/resend', { type: 'signup', email })
  const again = await service.mailbox.waitFor(email, { after: first })
  await service.settled()
  service.clock.advance({ seconds: 60 })
  expect((await service.post('/signup', { email, password: STRANGERS })).status).toBe(429)
  await follow(service, again)
  expect((await signIn(service, { email }, STRANGERS)).body.error_code).toBe('email_not_confirmed')
})

test.for(['waits for its server', 'has left late'])(
  'a claim counts while the mail of the sign-up %s, however long that takes',
  async (when) => {
    const service = await startTestService()
    const email = 'outage@example.com'
    await service.mailbox.answer(550)
    const { body } = await service.post('/signup', { email, password: OWNERS })
    const failed = async () =>
      (await service.get(`/admin/messages?user_id=${body.id}&state=failed`, service.admin)).body.messages
    await expect.poll(failed).toHaveLength(1)
    const [{ id }] = await failed()
    service.clock.advance({ seconds: 20 * 3600 })
    await deleteExpired(service.deps, service.deps.log)
    // Its mails are refused too: the first one's link decides.
    const limited = await service.with({ AUTH_RATE_LIMIT_EMAIL_SENT: '0' })
    const stranger = () => limited.post('/signup', { email, password: STRANGERS })
    if (when.startsWith('waits')) expect((await stranger()).status).toBe(429)
    await service.mailbox.accept()
    await service.post(`/admin/messages/${id}/retry`, {}, service.admin)
    const mail = await service.mailbox.waitFor(email)
    if (when.endsWith('late')) expect((await stranger()).status).toBe(429)
    await follow(service, mail)
    expect((await signIn(service, { email }, STRANGERS)).body.error_code).toBe('email_not_confirmed')
    await limited.close()
    await service.close()
  },
)

test('a claim counts while the link of a mail that was sent late is valid, beside newer ones with other challenges', async () => {
  const service = await startTestService({ AUTH_RATE_LIMIT_HEADER: 'X-Real-IP' })
  const email = 'late-challenge@example.com'
  const signUp = (password: string, verifier: string, address: string) =>
    service.post(
      '/signup',
      { email, password, code_challenge: verifier, code_challenge_method: 'plain' },
      { 'x-real-ip': address },
    )
  const verifier = 'o'.repeat(43)
  const stranger = () => signUp(STRANGERS, 's'.repeat(43), '203.0.113.9')
  await service.mailbox.answer(550)
  const { body } = await signUp(OWNERS, verifier, '192.0.2.1')
  const failed = async () =>
    (await service.get(`/admin/messages?user_id=${body.id}&state=failed`, service.admin)).body.messages
  await expect.poll(failed).toHaveLength(1)
  const [{ id }] = await failed()
  await service.mailbox.accept()
  expect((await stranger()).status).toBe(200)
  const theirs = await service.mailbox.waitFor(email)
  await service.settled()
  service.clock.advance({ seconds: 3600 })
  await service.post(`/admin/messages/${id}/retry`, {}, service.admin)
  const late = await service.mailbox.waitFor(email, { after: theirs })
  // The code is dead: typing it would cost an attempt at the newer one.
  expect([codeOf(theirs), codeOf(late)]).toEqual([expect.any(String), undefined])
  service.clock.advance({ seconds: 3000 })
  await deleteExpired(service.deps, service.deps.log)
  expect((await stranger()).status).toBe(200)
  const { code } = queryOf(await service.get(linkPath(late.text)))
  const exchanged = await service.post('/token?grant_type=pkce', { auth_code: code, code_verifier: verifier })
  expect(exchanged.body.user?.email).toBe(email)
  expect((await signIn(service, { email }, STRANGERS)).body.error_code).toBe('email_not_confirmed')
  await service.close()
})

test('a claim to a number outlives its code: a stranger who asks again after it is not the only one', async () => {
  const gateways = await startSmsGateways()
  const service = await startTestService(gateways.settings('twilio'))
  const phone = '4915100000051'
  const stranger = () => service.post('/signup', { phone, password: STRANGERS })
  await stranger()
  await gateways.waitFor(phone)
  expect((await service.post('/signup', { phone, password: OWNERS })).status).toBe(429)
  service.clock.advance({ seconds: 601 })
  await stranger()
  await expect.poll(() => gateways.messages.filter(({ to }) => to === phone)).toHaveLength(2)
  const { text } = await gateways.waitFor(phone)
  const { status } = await service.post('/verify', { type: 'sms', phone, token: codeOf({ text }) })
  expect(status).toBe(200)
  expect((await signIn(service, { phone }, STRANGERS)).body.error_code).toBe('phone_not_confirmed')
  await service.close()
  await gateways.close()
})
