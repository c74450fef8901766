// Requests that wait for the hook that sends their message (AUTH_HOOK_SEND_EMAIL_SYNC, AUTH_HOOK_SEND_SMS_SYNC): its
// error is theirs, as in the reference. Only the request asks, once.
import { test as base, describe, expect } from 'vitest'
import type { Answer, SignedIn, TestService } from './service.ts'
import { answers, type HookReceiver, startReceiver, startSendingService } from './upstreams/hook-receiver.ts'
import { PASSKEYS, SITE } from './webauthn/passkeys.ts'
import { createSecurityKey } from './webauthn/security-key.ts'

interface Waiting {
  service: TestService
  receiver: HookReceiver
}

const test = base.extend<object & { waiting: Waiting }>({
  waiting: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures a fixture uses from it
    async ({}, use) => {
      const receiver = await startReceiver()
      const service = await startSendingService(receiver, {
        AUTH_HOOK_SEND_EMAIL_SYNC: 'true',
        AUTH_HOOK_SEND_SMS_SYNC: 'true',
        AUTH_HOOK_SEND_EMAIL_ATTEMPTS: '1',
        ...PASSKEYS,
        AUTH_PASSKEY_SIGNUP_ENABLED: 'true',
        AUTH_MFA_PHONE_ENROLL_ENABLED: 'true',
        AUTH_MFA_PHONE_VERIFY_ENABLED: 'true',
        AUTH_MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true',
      })
      await use({ service, receiver })
      await service.close()
      await receiver.close()
    },
    { scope: 'file' },
  ],
})

const password = 'correct horse'
const refuses = answers({ error: { http_code: 418, message: 'not to this domain' } })
const REFUSED = { status: 418, body: { error_code: 'hook_rejected', msg: 'not to this domain' } }

/** The message that the receiver was asked last to send. */
const lastMessage = ({ service, receiver }: Waiting) =>
  service.deps.db
    .selectFrom('messages')
    .select(['state', 'last_error'])
    .where('id', '=', receiver.questions().at(-1)?.id ?? '')
    .executeTakeFirst()

type Request = () => Promise<Answer>

const byUser = async (service: TestService, email: string, request: (auth: SignedIn['auth']) => Promise<Answer>) => {
  const { auth } = await service.signedIn(email)
  return () => request(auth)
}

describe("the hook's error is the request's, which may be repeated at once, at", () => {
  test.for<[string, (service: TestService, email: string) => Request | Promise<Request>]>([
    ['POST /signup', (service, email) => () => service.post('/signup', { email, password })],
    ['POST /otp', (service, email) => () => service.post('/otp', { email })],
    ['POST /otp by phone', (service) => () => service.post('/otp', { phone: '4915112345678' })],
    ['POST /invite', (service, email) => () => service.post('/invite', { email }, service.admin)],
    [
      'POST /recover',
      async (service, email) => {
        await service.signedIn(email)
        return () => service.post('/recover', { email })
      },
    ],
    [
      'PUT /user',
      (service, email) => byUser(service, email, (auth) => service.put('/user', { email: `new-${email}` }, auth)),
    ],
    ['GET /reauthenticate', (service, email) => byUser(service, email, (auth) => service.get('/reauthenticate', auth))],
    [
      'a challenge to a phone',
      async (service, email) => {
        const { auth } = await service.signedIn(email)
        const { body } = await service.post('/factors', { factor_type: 'phone', phone: '+4915112345679' }, auth)
        return () => service.post(`/factors/${body.id}/challenge`, {}, auth)
      },
    ],
  ])('%s', async ([name, prepare], { waiting }) => {
    const { service, receiver } = waiting
    const request = await prepare(service, `${name.toLowerCase().replaceAll(/\W+/g, '-')}@example.com`)
    receiver.forget()
    receiver.answer(refuses)
    expect(await request()).toMatchObject(REFUSED)
    const reason = 'the hook refused it: not to this domain'
    expect(await lastMessage(waiting)).toEqual({ state: 'failed', last_error: reason })
    receiver.answer(answers({}))
    expect((await request()).status).toBe(200)
    expect(await lastMessage(waiting)).toEqual({ state: 'sent', last_error: null })
    expect(receiver.requests).toHaveLength(2)
  })
})

test('a hook that quotes addresses, codes and link tokens leaves none in the state of the message', async ({
  waiting,
}) => {
  const { service, receiver } = waiting
  receiver.answer((response, body) => {
    const { email_data: mail, user } = JSON.parse(body)
    const bare = mail.token_hash.replace('pkce_', '')
    const message = [mail.token, mail.token_hash, bare, mail.recipient, user.email].join(' ')
    answers({ error: { http_code: 403, message } })(response, body)
  })
  const pkce = { code_challenge: 'x'.repeat(43), code_challenge_method: 'plain' }
  await service.post('/signup', { email: 'quoted@example.com', password, ...pkce })
  receiver.answer(answers({}))
  const reason = (await lastMessage(waiting))?.last_error
  expect(reason).toBe('the hook refused it: … pkce_… … … …')
})

test('a hook that hangs is the error of the request after its time limit', async ({ waiting }) => {
  const { receiver } = waiting
  const service = await waiting.service.with({ AUTH_HOOK_SEND_EMAIL_TIMEOUT: '1s' })
  receiver.answer(() => {})
  expect(await service.post('/otp', { email: 'hangs@example.com' })).toMatchObject({
    status: 422,
    body: { error_code: 'hook_timeout', msg: 'Failed to reach hook within maximum time of 1.000000 seconds' },
  })
  await service.close()
})

test('requests at once all ask the hook, and none waits for the answer to another', async ({ waiting }) => {
  const { service, receiver } = waiting
  const held: (() => void)[] = []
  receiver.answer((response, body) => {
    held.push(() => answers({})(response, body))
    if (held.length === 3) for (const answer of held) answer()
  })
  const requests = [1, 2, 3].map((i) => service.post('/otp', { email: `at-once-${i}@example.com` }))
  expect((await Promise.all(requests)).map(({ status }) => status)).toEqual([200, 200, 200])
})

test('a hook may ask the service about the user meanwhile, whose row no transaction holds', async ({
  waiting: { service, receiver },
}) => {
  receiver.answer((response, body) => {
    const { user } = JSON.parse(body)
    void service
      .put(`/admin/users/${user.id}`, { user_metadata: { asked: true } }, service.admin)
      .then(({ status }) => answers(status === 200 ? {} : { error: { message: String(status) } })(response, body))
  })
  const { auth } = await service.signedIn('meanwhile@example.com')
  expect((await service.get('/reauthenticate', auth)).status).toBe(200)
})

test('a sign-up with a passkey keeps its session, because the account stands before its address is requested', async ({
  waiting: { service, receiver },
}) => {
  receiver.answer(refuses)
  receiver.forget()
  const email = 'by-passkey@example.com'
  const begun = await service.post('/passkeys/signup/options', { email })
  const credential = createSecurityKey().create({ ...SITE, challenge: begun.body.options.challenge })
  const body = { challenge_id: begun.body.challenge_id, credential, email }
  const signedUp = await service.post('/passkeys/signup/verify', body)
  expect(signedUp).toMatchObject({ status: 200, body: { user: { email: '', new_email: email } } })
  await receiver.next({ to: email })
  // The address is still requested, and a repetition has the error of the hook.
  const auth = { authorization: `Bearer ${signedUp.body.access_token}` }
  expect(await service.put('/user', { email }, auth)).toMatchObject(REFUSED)
  receiver.answer(answers({}))
  expect((await service.put('/user', { email }, auth)).status).toBe(200)
})

test('the failure of a notice concerns no request', async ({ waiting }) => {
  const { service, receiver } = waiting
  receiver.answer(refuses)
  receiver.forget()
  const { auth } = await service.signedIn('notice@example.com')
  expect((await service.put('/user', { password: 'a new horse' }, auth)).status).toBe(200)
  await receiver.next({ to: 'notice@example.com' })
  await expect.poll(() => lastMessage(waiting)).toMatchObject({ state: 'failed' })
})
