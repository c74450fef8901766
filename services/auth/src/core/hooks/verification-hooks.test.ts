import { perFile } from '@services/common/testing/per-file'
import { describe, expect } from 'vitest'
import { challenge, type SecondUser, signInAgain, totpCode, withTotp } from '../../../test/second-factors.ts'
import { type Answer, test as base, type TestService } from '../../../test/service.ts'
import { json, startUpstream, type Upstream } from '../../../test/upstream.ts'
import { unsignedHooks } from '../../../test/upstreams/hook-receiver.ts'

const password = 'correct horse'
const POINTS = ['PASSWORD_VERIFICATION_ATTEMPT', 'MFA_VERIFICATION_ATTEMPT']

const settingsOf = (receiver: Upstream) => unsignedHooks(receiver, ...POINTS)

type Respond = Parameters<Upstream['answer']>[0]
const answers =
  (body: object, afterMs = 0): Respond =>
  (response) => {
    response.setHeader('content-type', 'application/json')
    setTimeout(() => json(body)(response, ''), afterMs)
  }
const fails: Respond = (response) => void response.writeHead(500).end()

const test = base.extend<object & { receiver: Upstream; on: TestService }>({
  receiver: perFile(() => startUpstream(answers({}))),
  on: [
    async ({ service, receiver }, use) => {
      const on = await service.with(settingsOf(receiver))
      await use({ ...on, with: (more) => service.with({ ...settingsOf(receiver), ...more }) })
      await on.close()
    },
    { scope: 'file' },
  ],
})

/** Sets the answer to the next questions, and returns a reader of them. */
function respond(receiver: Upstream, how: Respond) {
  receiver.answer(how)
  receiver.requests.length = 0
  return () => receiver.requests.map(({ body }) => JSON.parse(body))
}

const signIn = (on: TestService, email: string, typed = password) =>
  on.post('/token?grant_type=password', { email, password: typed })

const sessionsOf = async (on: TestService, userId: string) =>
  (await on.get(`/admin/users/${userId}/sessions`, on.admin)).body.length

const refusal = (status: number, error_code: string, msg: string) => ({ status, body: { error_code, msg } })
const WRONG = refusal(400, 'invalid_credentials', 'Invalid login credentials')

describe('a password', () => {
  test('right or wrong is shown, and counts unless it is rejected', async ({ on, receiver, service }) => {
    const { userId } = await service.signedIn('shown@example.com')
    const shown = respond(receiver, answers({ decision: 'continue' }))
    expect((await signIn(on, 'shown@example.com')).status).toBe(200)
    expect(await signIn(on, 'shown@example.com', 'wrong')).toMatchObject(WRONG)
    expect(shown()).toMatchObject([
      { metadata: { name: 'password-verification' }, user_id: userId, valid: true },
      { user_id: userId, valid: false },
    ])
    respond(receiver, answers({ decision: 'reject', message: 'too often' }))
    const rejected = refusal(400, 'invalid_credentials', 'too often')
    expect(await signIn(on, 'shown@example.com')).toMatchObject(rejected)
    expect(await signIn(on, 'shown@example.com', 'wrong')).toMatchObject(rejected)
    expect(await sessionsOf(on, userId)).toBe(2)
    respond(receiver, answers({ decision: 'reject', should_logout_user: true }))
    const usual = 'Further password verification attempts will be rejected.'
    expect(await signIn(on, 'shown@example.com')).toMatchObject(refusal(400, 'invalid_credentials', usual))
    expect(await sessionsOf(on, userId)).toBe(0)
  })

  test('is not shown for an account that accepts none: unknown, banned, without a password, unconfirmed', async ({
    on,
    receiver,
    service,
  }) => {
    const banned = await service.signedIn('banned@example.com')
    respond(receiver, answers({}))
    await signIn(on, 'banned@example.com')
    await service.put(`/admin/users/${banned.userId}`, { ban_duration: '1h' }, service.admin)
    await service.post('/admin/users', { email: 'without@example.com', email_confirm: true }, service.admin)
    await service.post('/signup', { email: 'pending@example.com', password })
    const shown = respond(receiver, answers({ decision: 'reject' }))
    expect(await signIn(on, 'unknown@example.com')).toMatchObject(WRONG)
    expect(await signIn(on, 'without@example.com')).toMatchObject(WRONG)
    expect((await signIn(on, 'banned@example.com')).body.error_code).toBe('user_banned')
    expect((await signIn(on, 'pending@example.com')).body.error_code).toBe('email_not_confirmed')
    expect(shown()).toEqual([])
  })

  test('of an unknown account takes as long as that of a known one', async ({ on, receiver, service }) => {
    await service.signedIn('known@example.com')
    const fresh = await on.with({})
    const shown = respond(receiver, answers({}, 200))
    await signIn(fresh, 'known@example.com', 'wrong')
    const begun = performance.now()
    expect(await signIn(fresh, 'nobody@example.com', 'wrong')).toMatchObject(WRONG)
    expect(performance.now() - begun).toBeGreaterThan(190)
    expect(shown()).toHaveLength(1)
    await fresh.close()
  })

  test('of an unknown account is shown as that of a made-up one, until the hook has answered and while it fails', async ({
    on,
    receiver,
    service,
  }) => {
    const { userId } = await service.signedIn('outage@example.com')
    const fresh = await on.with({})
    let unknown = 0
    const attempts = async (how: Respond) => {
      const shown = respond(receiver, how)
      unknown += 2
      for (const email of [
        `nobody-${unknown}@example.com`,
        'outage@example.com',
        `nobody-${unknown + 1}@example.com`,
      ]) {
        expect(await signIn(fresh, email, 'wrong')).toMatchObject(WRONG)
      }
      return shown().map(({ user_id: id, valid }) => [id === userId, valid])
    }
    const [known, madeUp] = [
      [true, false],
      [false, false],
    ]
    expect(await attempts(answers({}))).toEqual([madeUp, known])
    expect(await attempts(fails)).toEqual([known, madeUp])
    expect(await attempts(answers({ decision: 'continue' }))).toEqual([madeUp, known])
    await fresh.close()
  })

  test('is refused while the hook gives no answer, unless it fails open; its own refusal holds', async ({
    on,
    receiver,
    service,
  }) => {
    await service.signedIn('failing@example.com')
    const open = await on.with({ AUTH_HOOK_PASSWORD_VERIFICATION_ATTEMPT_FAIL_OPEN: 'true' })
    respond(receiver, fails)
    expect((await signIn(on, 'failing@example.com')).body.error_code).toBe('unexpected_failure')
    expect((await signIn(open, 'failing@example.com')).status).toBe(200)
    expect(await signIn(open, 'failing@example.com', 'wrong')).toMatchObject(WRONG)
    respond(receiver, answers({ error: { http_code: 423, message: 'closed' } }))
    expect(await signIn(open, 'failing@example.com')).toMatchObject(refusal(423, 'hook_rejected', 'closed'))
    await open.close()
  })

  test('that is wrong gets no error of a hook, as at an unknown account', async ({ on, receiver, service }) => {
    await service.signedIn('no-error@example.com')
    const shown = respond(receiver, fails)
    expect(await signIn(on, 'no-error@example.com', 'wrong')).toMatchObject(WRONG)
    expect(shown()).toMatchObject([{ valid: false }])
    expect(await signIn(on, 'no-account@example.com', 'wrong')).toMatchObject(WRONG)
  })

  test('is not shown during the wait after failed ones, nor as proof of a change', async ({
    on,
    receiver,
    service,
  }) => {
    const { auth } = await service.signedIn('waits@example.com')
    respond(receiver, answers({}))
    for (let attempt = 0; attempt < 20; attempt++) await signIn(on, 'waits@example.com', 'wrong')
    const shown = respond(receiver, answers({}))
    expect((await signIn(on, 'waits@example.com')).status).toBe(429)
    await on.put('/user', { password: 'another horse', current_password: password }, auth)
    expect(shown()).toEqual([])
  })
})

describe('a second factor', () => {
  async function attempt(on: TestService, user: SecondUser, isRight = true): Promise<Answer> {
    on.clock.advance({ seconds: 30 })
    const challenge_id = await challenge(on, user, user.totp.id)
    const right = totpCode(user.totp.secret, on.clock.now())
    const code = isRight ? right : String((Number(right) + 1) % 1_000_000).padStart(6, '0')
    return on.post(`/factors/${user.totp.id}/verify`, { challenge_id, code }, user.auth)
  }

  test('right or wrong is shown; a rejected one ends all sessions of the user', async ({ on, receiver, service }) => {
    const user = await withTotp(service)
    const shown = respond(receiver, answers({ decision: 'continue' }))
    expect((await attempt(on, user)).status).toBe(200)
    expect((await attempt(on, user, false)).body.error_code).toBe('mfa_verification_failed')
    const about = { user_id: user.userId, factor_id: user.totp.id, factor_type: 'totp' }
    expect(shown()).toMatchObject([
      { metadata: { name: 'mfa-verification' }, ...about, valid: true },
      { ...about, valid: false },
    ])
    await signInAgain(service, user.email)
    respond(receiver, answers({ decision: 'reject', message: 'too often' }))
    expect(await attempt(on, user, false)).toMatchObject(refusal(403, 'mfa_verification_rejected', 'too often'))
    expect(await sessionsOf(on, user.userId)).toBe(0)
  })

  test('right is shown as wrong when its code was used before', async ({ on, receiver, service }) => {
    const user = await withTotp(service)
    service.clock.advance({ seconds: 30 })
    const code = totpCode(user.totp.secret, service.clock.now())
    const prove = async () => {
      const challenge_id = await challenge(on, user, user.totp.id)
      return on.post(`/factors/${user.totp.id}/verify`, { challenge_id, code }, user.auth)
    }
    const shown = respond(receiver, answers({}))
    expect((await prove()).status).toBe(200)
    expect((await prove()).body.error_code).toBe('mfa_verification_failed')
    expect(shown()).toMatchObject([{ valid: true }, { valid: false }])
  })

  test('that a function rejects is recorded by it all the same', async ({ service }) => {
    const user = await withTotp(service)
    await service.deps.pool.query(`create table public.shown (event jsonb);
      create function public.reject(event jsonb) returns jsonb language sql as $$
        insert into public.shown values (event) returning '{"decision": "reject"}'::jsonb $$`)
    const own = await service.with({
      AUTH_HOOK_MFA_VERIFICATION_ATTEMPT_ENABLED: 'true',
      AUTH_HOOK_MFA_VERIFICATION_ATTEMPT_URI: 'pg-functions://postgres/public/reject',
    })
    expect((await attempt(own, user)).body.error_code).toBe('mfa_verification_rejected')
    const { rows } = await service.deps.pool.query(`select event ->> 'valid' as valid from public.shown`)
    expect(rows).toEqual([{ valid: 'true' }])
    await own.close()
  })

  test('right, but rejected, raises no session and names the usual text', async ({ on, receiver, service }) => {
    const user = await withTotp(service)
    respond(receiver, answers({ decision: 'reject' }))
    const usual = 'Further MFA verification attempts will be rejected.'
    expect(await attempt(on, user)).toMatchObject(refusal(403, 'mfa_verification_rejected', usual))
    expect(await sessionsOf(on, user.userId)).toBe(0)
    const { body } = await service.get('/admin/audit?query=action:login_failed', service.admin)
    expect(body[0].payload).toMatchObject({
      actor_id: user.userId,
      traits: { provider: 'totp', error_code: 'mfa_verification_rejected' },
    })
  })

  test('is refused while the hook gives no answer, unless it fails open', async ({ on, receiver, service }) => {
    const user = await withTotp(service)
    const open = await on.with({ AUTH_HOOK_MFA_VERIFICATION_ATTEMPT_FAIL_OPEN: 'true' })
    respond(receiver, fails)
    expect((await attempt(on, user)).body.error_code).toBe('unexpected_failure')
    expect((await attempt(on, user, false)).body.error_code).toBe('unexpected_failure')
    expect((await attempt(open, user, false)).body.error_code).toBe('mfa_verification_failed')
    expect((await attempt(open, user)).status).toBe(200)
    await open.close()
  })

  test('is not shown by a recovery code', async ({ on, receiver, service }) => {
    const user = await withTotp(service)
    const shown = respond(receiver, answers({ decision: 'reject' }))
    const [code] = user.recoveryCodes
    expect((await on.post('/factors/recovery-codes/verify', { code }, user.auth)).status).toBe(200)
    expect(shown()).toEqual([])
  })
})
