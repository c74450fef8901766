// Replicas of one service on one database whose machines' clocks differ, or whose settings do, as they do while a
// change of them rolls out.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newKey } from './encryption-keys.ts'
import { codeIn, linkPath, startTestService, type TestService } from './service.ts'
import { startSmsGateways } from './upstreams/sms-gateways.ts'

const refresh = (service: TestService, refresh_token: string) =>
  service.post('/token?grant_type=refresh_token', { refresh_token })

describe('with clocks apart', () => {
  let exact: TestService
  beforeAll(async () => {
    exact = await startTestService({}, undefined, () => new Date())
  })
  afterAll(() => exact.close())

  const startReplica = (aheadSeconds: number, settings: Record<string, string> = {}) =>
    startTestService(
      { AUTH_DATABASE_URL: exact.deps.config.database.url, AUTH_WORKERS_ENABLED: 'false', ...settings },
      undefined,
      () => new Date(Date.now() + aheadSeconds * 1000),
    )

  test.for([15, -15, 3_600])('two tabs that refresh at replicas %i s apart both stay signed in', async (seconds) => {
    const other = await startReplica(seconds)
    const { refreshToken } = await exact.signedIn()
    const first = await refresh(exact, refreshToken)
    const second = await refresh(other, refreshToken)
    expect(second).toMatchObject({ status: 200, body: { refresh_token: first.body.refresh_token } })
    expect((await refresh(exact, second.body.refresh_token)).status).toBe(200)
    await other.close()
  })

  test('a code, the gap after it and a session mean the same at a replica two hours ahead', async () => {
    const limits = { AUTH_SESSIONS_TIMEBOX: '1h', AUTH_SESSIONS_INACTIVITY_TIMEOUT: '1h' }
    const other = await startReplica(7_200, limits)
    const { userId } = await exact.signedIn('apart@example.com')
    await exact.post('/otp', { email: 'apart@example.com' })
    const mail = await exact.mailbox.waitFor('apart@example.com')
    expect((await other.post('/otp', { email: 'apart@example.com' })).status).toBe(429)
    const token = codeIn(mail.text)
    const { status, body } = await other.post('/verify', { type: 'email', email: 'apart@example.com', token })
    expect([status, body.user?.id]).toEqual([200, userId])
    expect(body.expires_at - Date.now() / 1000).toBeLessThan(3_660)
    const auth = { authorization: `Bearer ${body.access_token}` }
    expect((await other.put('/user', { data: { seen: true } }, auth)).status).toBe(200)
    expect((await refresh(other, body.refresh_token)).status).toBe(200)
    await other.close()
  })
})

test.for([7_200, -7_200])(
  'limits are shared with a replica whose clock is %i s off, for their time and no longer',
  async (seconds) => {
    const settings = {
      AUTH_RATE_LIMIT_HEADER: 'x-real-address',
      AUTH_RATE_LIMIT_VERIFY: '2',
      AUTH_RATE_LIMIT_EMAIL_SENT: '2',
    }
    let passed = 0
    const startAt = (ahead: number, more: Record<string, string> = {}) =>
      startTestService({ ...settings, ...more }, undefined, () => new Date(Date.now() + (ahead + passed) * 1000))
    const exact = await startAt(0)
    const other = await startAt(seconds, {
      AUTH_DATABASE_URL: exact.deps.config.database.url,
      AUTH_WORKERS_ENABLED: 'false',
    })
    const verify = async (service: TestService) =>
      (await service.post('/verify', { type: 'signup', token_hash: 'x' }, { 'x-real-address': '192.0.2.1' })).status
    let names = 0
    const signUp = (service: TestService) =>
      service.post('/signup', { email: `${names++}@example.com`, password: 'correct horse' })
    expect([await verify(exact), await verify(other)]).toEqual([403, 403])
    expect([(await signUp(other)).status, (await signUp(exact)).status]).toEqual([200, 200])
    for (const service of [other, exact]) {
      expect(await verify(service)).toBe(429)
      const refused = await signUp(service)
      expect([refused.status, Math.round(Number(refused.headers['retry-after']) / 600)]).toEqual([429, 6])
    }
    passed = 3_601
    for (const service of [other, exact]) expect(await verify(service)).toBe(403)
    expect((await signUp(other)).status).toBe(200)
    await Promise.all([other.close(), exact.close()])
  },
)

describe('with settings apart', () => {
  const asked: TestService[] = []
  let answering: TestService
  /** An instance on the database of the one that answers, without a worker. */
  const startAsked = async (settings: Record<string, string>) => {
    const service = await startTestService(
      { AUTH_DATABASE_URL: answering.deps.config.database.url, AUTH_WORKERS_ENABLED: 'false', ...settings },
      answering.clock,
    )
    asked.push(service)
    return service
  }
  const userOf = (email: string) =>
    answering.deps.db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst()

  beforeAll(async () => {
    answering = await startTestService({ AUTH_MAILER_AUTOCONFIRM: 'true' })
  })
  afterAll(async () => {
    await Promise.all(asked.map((service) => service.close()))
    await answering.close()
  })

  test('a worker with autoconfirm confirms no account of an instance without', async () => {
    const strict = await startAsked({ AUTH_MAILER_OTP_LENGTH: '8', AUTH_SITE_URL: 'https://strict.example' })
    await strict.post('/otp', { email: 'strict@example.com' })
    const mail = await answering.mailbox.waitFor('strict@example.com')
    expect(linkPath(mail.text)).toContain('type=signup')
    expect(codeIn(mail.text)).toHaveLength(8)
    expect(await userOf('strict@example.com')).toMatchObject({ email_confirmed_at: null })
    await answering.post('/otp', { email: 'trusting@example.com' })
    await answering.mailbox.waitFor('trusting@example.com')
    expect((await userOf('trusting@example.com'))?.email_confirmed_at).not.toBeNull()
  })

  test('an instance with closed sign-ups makes no account, whichever replica answers', async () => {
    const closed = await startAsked({ AUTH_DISABLE_SIGNUP: 'true' })
    expect((await closed.post('/otp', { email: 'closed@example.com' })).status).toBe(200)
    await answering.settled()
    expect(await userOf('closed@example.com')).toBeUndefined()
    expect(answering.mailbox.messages({ to: 'closed@example.com' })).toEqual([])
  })

  test('a message sealed under another secret waits for a worker that can open it', async () => {
    const email = { signup: 'sealed-signup@example.com', otp: 'sealed-otp@example.com' }
    const unable = await startTestService()
    const secret = { AUTH_JWT_SECRET: 'another-secret-of-the-tests-with-32-bytes' }
    const shared = { ...secret, AUTH_DATABASE_URL: unable.deps.config.database.url }
    const asked = await startTestService({ ...shared, AUTH_WORKERS_ENABLED: 'false' }, unable.clock)
    await asked.post('/signup', { email: email.signup, password: 'correct horse' })
    await asked.post('/otp', { email: email.otp })
    await expect.poll(() => triedInVain(unable)).toBe(2)
    const failed = await unable.get('/admin/messages?state=failed', unable.admin)
    expect(failed.body.messages).toEqual([])
    await unable.stopWorker()

    const able = await startTestService(shared, unable.clock)
    for (const to of Object.values(email)) {
      expect(linkPath((await able.mailbox.waitFor(to)).text)).toContain('type=signup')
    }
    for (const service of [able, asked, unable]) await service.close()
  })

  test('with encryption keys a message outlives the secret of the instance that wrote it', async () => {
    const keys = { AUTH_ENCRYPTION_KEYS: newKey('shared') }
    const email = 'outlives@example.com'
    const secret = { AUTH_JWT_SECRET: 'an-older-secret-of-the-tests-with-32-bytes' }
    const asked = await startTestService({ ...keys, ...secret, AUTH_WORKERS_ENABLED: 'false' })
    await asked.post('/signup', { email, password: 'correct horse' })
    const able = await startTestService({ ...keys, AUTH_DATABASE_URL: asked.deps.config.database.url }, asked.clock)
    expect(linkPath((await able.mailbox.waitFor(email)).text)).toContain('type=signup')
    for (const service of [able, asked]) await service.close()
  })

  test('an SMS waits for a worker with a gateway, and says what the instance that received the request says', async () => {
    const gateways = await startSmsGateways()
    const settings = gateways.settings('twilio')
    const without = await startTestService()
    const shared = { ...settings, AUTH_DATABASE_URL: without.deps.config.database.url }
    const talkative = { ...shared, AUTH_WORKERS_ENABLED: 'false', AUTH_SMS_TEMPLATE: 'Hello, {{ .Code }} it is' }
    const asked = await startTestService(talkative, without.clock)
    expect((await asked.post('/otp', { phone: '4915112345678' })).status).toBe(200)
    const left = async () => (await without.get('/admin/messages?channel=sms', without.admin)).body.messages
    await expect
      .poll(left)
      .toMatchObject([{ state: 'queued', last_error: 'no gateway delivers by sms', kind: 'phone_confirmation' }])
    await without.stopWorker()

    const able = await startTestService(shared, without.clock)
    await expect
      .poll(() => gateways.messages.map(({ text }) => text))
      .toEqual([expect.stringMatching(/^Hello, \d+ it/)])
    for (const service of [able, asked, without]) await service.close()
    await gateways.close()
  })
})

/** Jobs that a worker has given back. */
async function triedInVain({ deps }: TestService): Promise<number> {
  const { rows } = await deps.pool.query(
    "select count(*)::int as jobs from auth_queue.job where state = 'retry' or retry_count > 0",
  )
  return rows[0].jobs
}
