// A receiver of messages that is down, hangs, refuses, answers late, twice or nonsense, and two replicas that ask it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWorker } from '../src/worker.ts'
import { startTestService, type TestService } from './service.ts'
import {
  answers,
  type HookReceiver,
  type Respond,
  startReceiver,
  startSendingService,
} from './upstreams/hook-receiver.ts'

const password = 'correct horse'

let receiver: HookReceiver
let service: TestService
/** The same on a database of its own, which gives each attempt a second. */
let hasty: TestService
const behaviours = new Map<string, (response: Parameters<Respond>[0], attempt: number) => void>()
const attempts = new Map<string, number>()

beforeAll(async () => {
  receiver = await startReceiver()
  // One receiver for all tests: it behaves as the recipient's name says.
  receiver.answer((response, body) => {
    const [name = ''] = (JSON.parse(body).email_data?.recipient ?? '').split('@')
    const attempt = (attempts.get(name) ?? 0) + 1
    attempts.set(name, attempt)
    const behave = behaviours.get(name)
    if (behave) behave(response, attempt)
    else answers({})(response, body)
  })
  ;[service, hasty] = await Promise.all([
    startSendingService(receiver),
    startSendingService(receiver, { AUTH_HOOK_SEND_EMAIL_TIMEOUT: '1s' }),
  ])
})
afterAll(async () => {
  await Promise.all([service.close(), hasty.close()])
  await receiver.close()
})

const accept = (response: Parameters<Respond>[0]) => answers({})(response, '')

async function signUp(name: string, behave: (response: Parameters<Respond>[0], attempt: number) => void, at = service) {
  behaviours.set(name, behave)
  // Each has a domain of its own: messages to one that gets no answer wait for each other, twice as long each time.
  const email = `${name}@${name}.example`
  const { status, body } = await at.post('/signup', { email, password })
  expect(status).toBe(200)
  return { email, userId: body.id as string }
}

const messageOf = async (userId: string, at = service) =>
  (await at.get(`/admin/messages?user_id=${userId}`, at.admin)).body.messages[0]

const idsOf = (email: string) =>
  receiver.questions().flatMap(({ id, email_data: data }) => (data.recipient === email ? [id] : []))

/** Receivers whose silence ends an attempt. On a busy machine a second is too short for the answers of the others. */
const SILENT = ['hangs at first', 'answers too late']

describe('a message is sent, under one id, by a receiver that', () => {
  test.concurrent.for<[string, (response: Parameters<Respond>[0], attempt: number) => void]>([
    ['is down for a while', (response, attempt) => void (attempt < 5 ? response.destroy() : accept(response))],
    ['hangs at first', (response, attempt) => void (attempt > 1 && accept(response))],
    ['answers too late', (response, attempt) => void setTimeout(accept, attempt > 1 ? 0 : 1_500, response)],
    ['is broken', (response, attempt) => void (attempt > 1 ? accept(response) : response.writeHead(500).end('oops'))],
    [
      'does not know its secret yet',
      (response, attempt) => void (attempt > 1 ? accept(response) : response.writeHead(401).end()),
    ],
    [
      'asks for another attempt',
      (response, attempt) =>
        attempt > 1 ? accept(response) : answers({ error: { http_code: 429, message: 'later' } })(response, ''),
    ],
    [
      'breaks off',
      (response, attempt) => {
        if (attempt > 2) return accept(response)
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{')
        setTimeout(() => response.destroy(), 10)
      },
    ],
  ])('%s', async ([name, behave], { expect }) => {
    const at = SILENT.includes(name) ? hasty : service
    const { email, userId } = await signUp(name.replaceAll(' ', '-'), behave, at)
    await expect.poll(async () => (await messageOf(userId, at)).state).toBe('sent')
    const message = await messageOf(userId, at)
    expect(message.attempts).toBeGreaterThan(1)
    expect(new Set(idsOf(email))).toEqual(new Set([message.id]))
  })
})

describe('a message ends, with the reason in its state, when the receiver', () => {
  test.concurrent.for<[string, Respond, string]>([
    [
      'refuses it',
      answers({ error: { http_code: 403, message: 'not to this domain' } }),
      'the hook refused it: not to this domain',
    ],
    ['refuses it by status', answers({ error: { message: 'unsubscribed' } }, 422), 'the hook refused it: unsubscribed'],
    ['names no status', answers({ error: { message: 'no quota' } }), 'the hook refused it: no quota'],
    [
      'accepts it in words',
      (response) => void response.writeHead(200, { 'content-type': 'text/plain' }).end('ok'),
      'not repeated, because the hook accepted it with a bad answer',
    ],
    ['answers 201', answers({}, 201), 'not repeated, because the hook accepted it with a bad answer'],
    [
      'answers without end',
      (response) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end(`"${'x'.repeat(300_000)}"`),
      'not repeated, because the hook accepted it with a bad answer',
    ],
  ])('%s', async ([name, respond, reason], { expect }) => {
    const { email, userId } = await signUp(name.replaceAll(' ', '-'), (response) => respond(response, ''))
    await expect.poll(async () => (await messageOf(userId)).state).toBe('failed')
    expect(await messageOf(userId)).toMatchObject({ attempts: 1, last_error: expect.stringContaining(reason) })
    expect(idsOf(email)).toHaveLength(1)
  })
})

test('an admin sends a refused message again, and the hook gets its address and code anew', async () => {
  const { email, userId } = await signUp('quoting', (response, attempt) => {
    const { recipient, token } = receiver.questions().at(-1)?.email_data ?? {}
    if (attempt > 1) accept(response)
    else answers({ error: { http_code: 400, message: `cannot send ${token} to ${recipient}` } })(response, '')
  })
  await expect.poll(async () => (await messageOf(userId)).state).toBe('failed')
  const { id, last_error: reason } = await messageOf(userId)
  // Admins read it, so it has neither.
  expect(reason).toBe('the hook refused it: cannot send … to …')
  expect((await service.post(`/admin/messages/${id}/retry`, {}, service.admin)).status).toBe(200)
  await expect.poll(async () => (await messageOf(userId)).state).toBe('sent')
  expect(idsOf(email)).toEqual([id, id])
})

test('two replicas ask once for each message, whichever queued it', async () => {
  const own = await startReceiver()
  const first = await startSendingService(own, { AUTH_RATE_LIMIT_OTP: '1000' })
  const url = first.deps.config.database.url
  const second = await startSendingService(own, { AUTH_DATABASE_URL: url, AUTH_RATE_LIMIT_OTP: '1000' })
  const emails = Array.from({ length: 12 }, (_, i) => `r${i}@example.com`)
  await Promise.all(emails.map((email, i) => (i % 2 ? first : second).post('/signup', { email, password })))
  await first.settled()
  const asked = own.questions()
  expect(asked.map(({ email_data: data }) => data.recipient).toSorted()).toEqual(emails.toSorted())
  expect(new Set(asked.map(({ id }) => id)).size).toBe(emails.length)
  await second.close()
  await first.close()
  await own.close()
})

test('a receiver that answers twice on its connection is asked the next question, too', async () => {
  const own = await startReceiver()
  const both = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}'
  own.answer((response) => void response.socket?.write(both + both))
  const twice = await startSendingService(own)
  for (const email of ['one@example.com', 'two@example.com']) {
    await twice.post('/signup', { email, password })
    await own.next({ to: email })
  }
  await expect
    .poll(async () => (await twice.get('/admin/messages?state=sent', twice.admin)).body.messages.length)
    .toBe(2)
  await twice.close()
  await own.close()
})

test('mails of an address change that was queued for a hook leave by the mail server of a worker without one', async () => {
  const own = await startReceiver()
  const asking = await startTestService({ AUTH_WORKERS_ENABLED: 'false', ...own.settings('EMAIL') })
  const { auth } = await asking.signedIn('rolled@example.com')
  expect((await asking.put('/user', { email: 'rolled-new@example.com' }, auth)).status).toBe(200)
  const sends = await startTestService(
    { AUTH_DATABASE_URL: asking.deps.config.database.url, AUTH_WORKERS_ENABLED: 'false' },
    asking.clock,
  )
  const stop = await startWorker(sends.deps)
  const mails = await Promise.all(
    ['rolled@example.com', 'rolled-new@example.com'].map((email) => sends.mailbox.waitFor(email)),
  )
  expect(new Set(mails.map(({ text }) => /token=([\w-]+)/.exec(text)?.[1])).size).toBe(2)
  expect(own.requests).toEqual([])
  await stop()
  await sends.close()
  await asking.close()
  await own.close()
})

test('a function of PostgreSQL sends under the id of the message, and its refusal ends it', async () => {
  const uri = 'pg-functions://postgres/public/send_mail'
  const service = await startTestService({ AUTH_HOOK_SEND_EMAIL_ENABLED: 'true', AUTH_HOOK_SEND_EMAIL_URI: uri })
  const { pool } = service.deps
  await pool.query(`create table sent (asked jsonb);
    create function send_mail(event jsonb) returns jsonb language plpgsql as $$ begin
      if event->'email_data'->>'recipient' like 'refused%' then
        raise exception 'not to this address' using errcode = 'PT403';
      end if;
      insert into sent values (event);
      return '{}';
    end $$`)
  const stateOf = async (id: string) =>
    (await service.get(`/admin/messages?user_id=${id}`, service.admin)).body.messages[0]
  const [taken, refused] = await Promise.all(
    ['taken', 'refused'].map((name) => service.post('/signup', { email: `${name}@example.com`, password })),
  )
  await expect.poll(() => stateOf(taken?.body.id)).toMatchObject({ state: 'sent', provider: 'hook' })
  const reason = 'the hook refused it: not to this address'
  await expect.poll(() => stateOf(refused?.body.id)).toMatchObject({ state: 'failed', last_error: reason })
  const { rows } = await pool.query(`select asked->'metadata'->>'uuid' as id from sent`)
  expect(rows).toEqual([{ id: (await stateOf(taken?.body.id)).id }])
  await service.close()
})
