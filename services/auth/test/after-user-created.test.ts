// The hook after-user-created fails once the user exists and the message is queued: that leaves, so it stays counted.
import { expect, onTestFinished, test } from 'vitest'
import type { TestService } from './service.ts'
import { answers, HOOK_SECRET, startReceiver, startSendingService } from './upstreams/hook-receiver.ts'

const password = 'correct horse'
const NO_SEAT = { status: 409, body: { error_code: 'hook_rejected', msg: 'no seat' } }

async function start(settings: Record<string, string>) {
  const receiver = await startReceiver()
  receiver.answer((response, body) => {
    const isAfter = JSON.parse(body).metadata.name === 'after-user-created'
    answers(isAfter ? { error: { http_code: 409, message: 'no seat' } } : {})(response, body)
  })
  const service = await startSendingService(receiver, {
    AUTH_HOOK_AFTER_USER_CREATED_ENABLED: 'true',
    AUTH_HOOK_AFTER_USER_CREATED_URI: `${receiver.url}/hook`,
    AUTH_HOOK_AFTER_USER_CREATED_SECRETS: `v1,${HOOK_SECRET}`,
    ...settings,
  })
  onTestFinished(async () => {
    await service.close()
    await receiver.close()
  })
  const sent = () => receiver.questions().filter(({ metadata: { name } }) => name.startsWith('send-')).length
  return { service, sent }
}

test.for<[string, Record<string, string>, (service: TestService, attempt: number) => Promise<unknown>]>([
  [
    'a sign-up by phone, in the budget of SMS',
    { AUTH_SMS_DAILY_BUDGET: '1' },
    (service, attempt) => service.post('/signup', { phone: `491511234567${attempt}`, password }),
  ],
  [
    'a sign-up by e-mail, in the gap of its address',
    {},
    (service) => service.post('/signup', { email: 'gap@example.com', password }),
  ],
  [
    'a sign-up whose request sends its mail',
    { AUTH_HOOK_SEND_EMAIL_SYNC: 'true' },
    (service) => service.post('/signup', { email: 'sync@example.com', password }),
  ],
])('counts the message of %s', async ([, settings, request]) => {
  const { service, sent } = await start(settings)
  expect(await request(service, 1)).toMatchObject(NO_SEAT)
  expect(await request(service, 2)).toMatchObject({ status: 429 })
  await expect.poll(sent).toBe(1)
})

test.for(['false', 'true'])(
  'is in the log at POST /otp, whose message leaves and counts; sent by the request: %s',
  async (isSync) => {
    const { service, sent } = await start({ AUTH_HOOK_SEND_EMAIL_SYNC: isSync })
    expect((await service.post('/otp', { email: 'otp@example.com' })).status).toBe(200)
    await expect.poll(sent).toBe(1)
    expect((await service.post('/otp', { email: 'otp@example.com' })).status).toBe(429)
  },
)

test('counts an invitation in the budget of mails', async () => {
  const { service, sent } = await start({ AUTH_RATE_LIMIT_EMAIL_SENT: '1' })
  const invite = (name: string) => service.post('/invite', { email: `${name}@example.com` }, service.admin)
  expect(await invite('first')).toMatchObject(NO_SEAT)
  expect((await invite('second')).status).toBe(429)
  await expect.poll(sent).toBe(1)
})
