// Changes of address that are sent again while the mail server or the gateway is away.
import { beforeAll, expect } from 'vitest'
import { codeIn, fragmentOf, linkPath, startTestService, type TestService, test } from '../../../test/service.ts'
import { type SmsUpstream, startSmsGateways } from '../../../test/upstreams/sms-gateways.ts'

let gateways: SmsUpstream
let service: TestService
beforeAll(async () => {
  gateways = await startSmsGateways()
  service = await startTestService(gateways.settings('twilio'))
  return async () => {
    await service.close()
    await gateways.close()
  }
})

const statesOf = async (userId: string, kind: string) => {
  const { messages } = (await service.get(`/admin/messages?user_id=${userId}`, service.admin)).body
  return messages.filter((each: { kind: string }) => each.kind === kind).map(({ state }: { state: string }) => state)
}

/** Requests a change and its repetition while nothing can leave. */
async function changeInOutage(email: string, wish: { email: string } | { phone: string }, gapSeconds: number) {
  const { auth, userId } = await service.signedIn(email)
  const type = 'email' in wish ? 'email_change' : 'phone_change'
  expect((await service.put('/user', wish, auth)).status).toBe(200)
  service.clock.advance({ seconds: gapSeconds })
  expect((await service.post('/resend', { type, email })).status).toBe(200)
  await expect.poll(() => service.deps.queue.depth('message-requests')).toBe(0)
  return { userId, verify: async (body: object) => (await service.post('/verify', { type, ...body })).status }
}

test('both mails of a change that was sent again have its code, which lives from the moment they leave', async () => {
  const addresses = { current: 'outage@example.com', next: 'outage-new@example.com' }
  await service.mailbox.refuse()
  const { verify } = await changeInOutage(addresses.current, { email: addresses.next }, 901)
  // Longer than the lifetime of the code since the first request, but the last attempt is younger.
  service.clock.advance({ seconds: 2600 })
  await service.mailbox.accept()
  await service.settled()
  const mailsTo = (to: string) => service.mailbox.messages({ to }).map(({ text }) => text)
  for (const to of Object.values(addresses)) {
    expect(mailsTo(to).length).toBe(2)
    expect(new Set(mailsTo(to).map(codeIn)).size).toBe(1)
  }
  service.clock.advance({ seconds: 3599 })
  expect(await verify({ email: addresses.next, token: codeIn(mailsTo(addresses.next)[0] as string) })).toBe(200)
  const [link] = mailsTo(addresses.current).map(linkPath)
  expect(fragmentOf(await service.get(String(link)))).toHaveProperty('access_token')
})

test('one SMS of a change leaves, the last one, with its code', async () => {
  const [email, phone] = ['sms-outage@example.com', '4915100003001']
  gateways.behave('twilio', { status: 503, body: '' })
  const { userId, verify } = await changeInOutage(email, { phone }, 61)
  expect(await statesOf(userId, 'phone_change')).toEqual(['queued', 'dropped'])
  // An attempt at the dropped one may have begun before.
  const running = async () => (await service.deps.queue.figures()).reduce((sum, queue) => sum + queue.running, 0)
  await expect.poll(running).toBe(0)
  gateways.behave('twilio')
  await service.settled()
  const sent = gateways.messages.filter(({ to }) => to === phone)
  expect(sent).toHaveLength(1)
  service.clock.advance({ seconds: 599 })
  expect(await verify({ phone, token: /\d{6}/.exec(String(sent[0]?.text))?.[0] })).toBe(200)
})
