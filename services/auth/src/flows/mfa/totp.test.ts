import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seal } from '@services/common/seal'
import { describe, expect } from 'vitest'
import { newKey } from '../../../test/encryption-keys.ts'
import {
  challenge,
  claimsOf,
  enrollTotp,
  refresh,
  signInAgain,
  totpCode,
  verifyTotp,
  withTotp,
} from '../../../test/second-factors.ts'
import { SECRET, startTestService, test, toSignedIn } from '../../../test/service.ts'
import { deriveKey } from '../../core/keys/derive-key.ts'

const UNKNOWN = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'

const refusal = (status: number, code: string, msg?: string) => ({
  status,
  body: { code: status, error_code: code, ...(msg ? { msg } : {}) },
})

describe('access', () => {
  const CALLS = [
    ['post', '/factors'],
    ['post', '/factors/nonsense/challenge'],
    ['post', '/factors/nonsense/verify'],
    ['delete', '/factors/nonsense'],
  ] as const
  const call = (
    service: { post: typeof fetch; delete: typeof fetch } | unknown,
    [method, url]: (typeof CALLS)[number],
    auth: object,
  ) => {
    // biome-ignore lint/suspicious/noExplicitAny: one of two methods
    const target = service as any
    return method === 'post' ? target.post(url, {}, auth) : target.delete(url, auth)
  }

  test('without a token the answer is about the token, whatever the factor id', async ({ service }) => {
    for (const one of CALLS) expect(await call(service, one, {})).toMatchObject(refusal(401, 'no_authorization'))
  })

  test('a token whose session has ended is not enough', async ({ service }) => {
    const { auth } = await service.signedIn()
    await service.post('/logout', {}, auth)
    for (const one of CALLS) expect(await call(service, one, auth)).toMatchObject(refusal(403, 'session_not_found'))
  })

  test('anonymous users have no second factors', async ({ service }) => {
    const open = await service.with({ AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' })
    const { auth } = toSignedIn((await open.post('/signup')).body)
    const text = 'Anonymous user not allowed to perform these actions'
    for (const one of CALLS) expect(await call(open, one, auth)).toMatchObject(refusal(403, 'no_authorization', text))
    await open.close()
  })

  test("a factor id that is none, unknown or another user's is 404", async ({ service }) => {
    const [{ auth }, other] = [await service.signedIn(), await service.signedIn()]
    const { id } = await enrollTotp(service, other)
    const answers = (factor: string) =>
      Promise.all([
        service.post(`/factors/${factor}/challenge`, {}, auth),
        service.post(`/factors/${factor}/verify`, {}, auth),
        service.delete(`/factors/${factor}`, auth),
      ])
    for (const answer of await answers('nonsense')) {
      expect(answer).toMatchObject(refusal(404, 'validation_failed', 'factor_id must be an UUID'))
    }
    for (const answer of [...(await answers(UNKNOWN)), ...(await answers(id))]) {
      expect(answer).toMatchObject(refusal(404, 'mfa_factor_not_found', 'Factor not found'))
    }
  })
})

describe('enrolling', () => {
  test('answers with a QR code as SVG, the secret and its address, and shows the factor to the user without them', async ({
    service,
  }) => {
    const { auth } = await service.signedIn('qr@example.com')
    expect((await service.get('/user', auth)).body).not.toHaveProperty('factors')
    const { status, body } = await service.post('/factors', { factor_type: 'totp', friendly_name: 'phone' }, auth)
    expect(status).toBe(200)
    expect(body).toMatchObject({ type: 'totp', friendly_name: 'phone' })
    const uri = new URL(body.totp.uri)
    expect(decodeURIComponent(uri.pathname)).toContain('site.example:qr@example.com')
    expect(Object.fromEntries(uri.searchParams)).toEqual({
      ...{ issuer: 'site.example', secret: body.totp.secret },
      ...{ algorithm: 'SHA1', digits: '6', period: '30' },
    })
    expect(body.totp.secret).toMatch(/^[A-Z2-7]{32}$/)
    expect(body.totp.qr_code).toMatch(/^<\?xml .*\?><svg .*<\/svg>$/s)
    // Clients put it behind `data:image/svg+xml;utf-8,` as it is: a fragment would cut it off.
    expect(body.totp.qr_code).not.toContain('#')
    const user = await service.get('/user', auth)
    expect(user.body.factors).toEqual([
      {
        ...{ id: body.id, factor_type: 'totp', status: 'unverified', friendly_name: 'phone' },
        ...{ created_at: expect.any(String), updated_at: expect.any(String) },
      },
    ])
    expect(user.text).not.toContain(body.totp.secret)
  })

  test('keeps the secret sealed', async ({ service }) => {
    const { secret, id } = await enrollTotp(service, await service.signedIn())
    const { rows } = await service.deps.pool.query('select * from factors where id = $1', [id])
    const bytes = Buffer.from(rows[0].sealed_secret.split('.').at(-1), 'base64').toString('latin1')
    expect(JSON.stringify(rows) + bytes).not.toContain(secret)
  })

  test('an issuer of the application is taken, one that no code can hold is not', async ({ service }) => {
    const { auth } = await service.signedIn()
    const enroll = (issuer: string) => service.post('/factors', { factor_type: 'totp', issuer }, auth)
    for (const issuer of ['x'.repeat(101), '🔑'.repeat(50)]) {
      expect(await enroll(issuer)).toMatchObject(refusal(400, 'validation_failed'))
    }
    expect((await enroll('Acme & Söhne: #1')).body.totp.uri).toContain('issuer=Acme%20%26%20S%C3%B6hne%3A%20%231')
  })

  test.for([
    [{}, 400, 'validation_failed', 'factor_type needs to be totp, phone, or webauthn'],
    [{ factor_type: 'sms' }, 400, 'validation_failed', 'factor_type needs to be totp, phone, or webauthn'],
    [{ factor_type: 'phone' }, 422, 'mfa_phone_enroll_not_enabled', 'MFA enroll is disabled for Phone'],
    [{ factor_type: 'webauthn' }, 422, 'mfa_webauthn_enroll_not_enabled', 'MFA enroll is disabled for WebAuthn'],
    [{ factor_type: 'totp', friendly_name: 'x'.repeat(256) }, 400, 'validation_failed', undefined],
    [{ factor_type: 'totp', friendly_name: 'a\0b' }, 400, 'validation_failed', undefined],
    [{ factor_type: ['totp'] }, 400, 'bad_json', undefined],
  ] as const)('%j is refused', async ([body, status, code, msg], { service }) => {
    const { auth } = await service.signedIn()
    expect(await service.post('/factors', body, auth)).toMatchObject(refusal(status, code, msg))
  })

  test('two factors of one name clash, two without a name too, even when begun at once', async ({ service }) => {
    const user = await service.signedIn()
    for (const friendly_name of ['', 'mine']) {
      const body = { factor_type: 'totp', friendly_name }
      const answers = await Promise.all([1, 2, 3].map(() => service.post('/factors', body, user.auth)))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 422, 422])
      const text = `A factor with the friendly name "${friendly_name}" for this user already exists`
      expect(await service.post('/factors', body, user.auth)).toMatchObject(
        refusal(422, 'mfa_factor_name_conflict', text),
      )
    }
  })

  test('one that was never proven gives way after its time', async ({ service }) => {
    const user = await service.signedIn()
    const { id } = await enrollTotp(service, user)
    service.clock.advance({ seconds: 301 })
    const { id: second } = await enrollTotp(service, user)
    expect((await service.get('/user', user.auth)).body.factors).toMatchObject([{ id: second }])
    expect(second).not.toBe(id)
  })

  test('ten factors are the most, by default', async ({ service }) => {
    const user = await service.signedIn()
    for (let i = 0; i < 10; i++) await enrollTotp(service, user, `factor ${i}`)
    const answer = await service.post('/factors', { factor_type: 'totp', friendly_name: 'one more' }, user.auth)
    const text = 'Maximum number of verified factors reached, unenroll to continue'
    expect(answer).toMatchObject(refusal(422, 'too_many_enrolled_mfa_factors', text))
  })
})

describe('proving', () => {
  test('raises the same session to aal2 with new tokens, and notifies the user', async () => {
    const service = await startTestService({ AUTH_MAILER_NOTIFICATIONS_MFA_FACTOR_ENROLLED_ENABLED: 'true' })
    const before = await service.signedIn('raised@example.com')
    const totp = await enrollTotp(service, before)
    const { status, body } = await verifyTotp(service, before, totp)
    expect(status).toBe(200)
    expect(body).toMatchObject({ token_type: 'bearer', expires_in: 3600, user: { id: before.userId } })
    expect(body.user.factors).toMatchObject([{ id: totp.id, status: 'verified' }, { factor_type: 'recovery_code' }])
    const after = toSignedIn(body)
    expect(claimsOf(before)).toMatchObject({ aal: 'aal1' })
    expect(claimsOf(after)).toMatchObject({
      aal: 'aal2',
      session_id: claimsOf(before).session_id,
      amr: [{ method: 'totp' }, { method: 'password' }],
    })
    const mail = await service.mailbox.waitFor('raised@example.com', { subject: 'verification method was added' })
    expect(mail.text).toContain('an authenticator app')
    const { body: log } = await service.get('/admin/audit?query=type:factor', service.admin)
    const actions = log.map((entry: { payload: { action: string } }) => entry.payload.action)
    expect(actions.toSorted()).toEqual(['challenge_created', 'factor_in_progress', 'verification_attempted'])
    expect(log[0].ip_address).toBe('127.0.0.1')
    expect(JSON.stringify(log)).not.toContain(totp.secret)
    await service.close()
  })

  test('keeps aal and amr over a refresh', async ({ service }) => {
    const after = await withTotp(service)
    const refreshed = await refresh(service, after.refreshToken)
    expect(claimsOf(toSignedIn(refreshed.body))).toMatchObject({ aal: 'aal2', amr: claimsOf(after).amr })
  })

  test('invalidates the previous refresh token at once, like one that was used long ago', async ({ service }) => {
    const before = await service.signedIn()
    expect((await verifyTotp(service, before, await enrollTotp(service, before))).status).toBe(200)
    expect(await refresh(service, before.refreshToken)).toMatchObject(refusal(400, 'refresh_token_already_used'))
  })

  test('ends other sessions of the user that are aal1, not those that are aal2', async ({ service }) => {
    const first = await service.signedIn('others@example.com')
    const low = await signInAgain(service, 'others@example.com')
    const totp = await enrollTotp(service, first)
    const raised = toSignedIn((await verifyTotp(service, first, totp)).body)
    expect(await refresh(service, low.refreshToken)).toMatchObject(refusal(400, 'refresh_token_not_found'))
    const again = await signInAgain(service, 'others@example.com')
    expect((await verifyTotp(service, again, totp)).status).toBe(200)
    expect((await refresh(service, raised.refreshToken)).status).toBe(200)
  })

  test('drops other factors of its type that were begun', async ({ service }) => {
    const user = await service.signedIn()
    await enrollTotp(service, user, 'begun by somebody')
    const { body } = await verifyTotp(service, user, await enrollTotp(service, user, 'mine'))
    expect(body.user.factors).toMatchObject([{ friendly_name: 'mine' }, { friendly_name: 'Recovery codes' }])
  })

  test('a code of the step before or after is right, of two steps away it is not', async ({ service }) => {
    const { totp, email } = await withTotp(service)
    const login = await signInAgain(service, email)
    const answer = async (skew: number) => {
      const challenge_id = await challenge(service, login, totp.id)
      const code = totpCode(totp.secret, service.clock.now(), skew)
      return service.post(`/factors/${totp.id}/verify`, { challenge_id, code }, login.auth)
    }
    service.clock.advance({ seconds: 300 })
    for (const skew of [-2, 2]) {
      expect(await answer(skew)).toMatchObject(refusal(422, 'mfa_verification_failed', 'Invalid TOTP code entered'))
    }
    for (const skew of [-1, 0, 1]) expect((await answer(skew)).status).toBe(200)
  })

  test('a code is accepted once, in whichever session and by whichever challenge', async ({ service }) => {
    const user = await withTotp(service)
    const code = totpCode(user.totp.secret, service.clock.now())
    for (const login of [user, await signInAgain(service, user.email)]) {
      const challenge_id = await challenge(service, login, user.totp.id)
      const answer = await service.post(`/factors/${user.totp.id}/verify`, { challenge_id, code }, login.auth)
      expect(answer).toMatchObject(refusal(422, 'mfa_verification_failed'))
    }
  })

  test('of one code sent many times at once to many replicas exactly one is accepted, by one challenge or by many', async ({
    service: one,
  }) => {
    const two = await one.with({})
    const user = await withTotp(one)
    for (const challenges of [1, 4]) {
      one.clock.advance({ seconds: 60 })
      const ids = await Promise.all(Array.from({ length: challenges }, () => challenge(one, user, user.totp.id)))
      const code = totpCode(user.totp.secret, one.clock.now())
      const answers = await Promise.all(
        [one, two, one, two].map((on, index) => {
          const body = { challenge_id: ids[index % challenges], code }
          return on.post(`/factors/${user.totp.id}/verify`, body, user.auth)
        }),
      )
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
      expect(answers.filter(({ status }) => status === 422)).toHaveLength(3)
    }
    await two.close()
  })

  test.for([
    [{ code: '' }, 400, 'validation_failed', 'Code needs to be non-empty'],
    [{ code: '123456' }, 422, 'mfa_factor_not_found', 'MFA factor with the provided challenge ID not found'],
    [{ code: '123456', challenge_id: 'nonsense' }, 422, 'mfa_factor_not_found', undefined],
    [{ code: '123456', challenge_id: UNKNOWN }, 422, 'mfa_factor_not_found', undefined],
    [{ code: 123456 }, 400, 'bad_json', undefined],
  ] as const)('%j is refused', async ([body, status, code, msg], { service }) => {
    const user = await service.signedIn()
    const { id } = await enrollTotp(service, user)
    expect(await service.post(`/factors/${id}/verify`, body, user.auth)).toMatchObject(refusal(status, code, msg))
  })

  test("another factor's challenge is none", async ({ service }) => {
    const user = await service.signedIn()
    const [one, two] = [await enrollTotp(service, user, 'one'), await enrollTotp(service, user, 'two')]
    const challenge_id = await challenge(service, user, one.id)
    const code = totpCode(two.secret, service.clock.now())
    expect(await service.post(`/factors/${two.id}/verify`, { challenge_id, code }, user.auth)).toMatchObject(
      refusal(422, 'mfa_factor_not_found'),
    )
  })

  test('a challenge is answered once, in time and from the client address that requested it', async ({ service }) => {
    const user = await service.signedIn()
    const totp = await enrollTotp(service, user)
    const { body: opened } = await service.post(`/factors/${totp.id}/challenge`, {}, user.auth)
    expect(opened).toEqual({
      id: expect.any(String),
      type: 'totp',
      expires_at: Math.floor(service.clock.now().getTime() / 1000) + 300,
    })
    const verify = (headers: Record<string, string> = {}) => {
      const body = { challenge_id: opened.id, code: totpCode(totp.secret, service.clock.now()) }
      return service.post(`/factors/${totp.id}/verify`, body, { ...user.auth, ...headers })
    }
    const mismatch = refusal(422, 'mfa_ip_address_mismatch', 'Challenge and verify IP addresses mismatch.')
    expect(await verify({ 'x-forwarded-for': '198.51.100.1' })).toMatchObject(mismatch)
    service.clock.advance({ seconds: 299 })
    expect((await verify()).status).toBe(200)
    service.clock.advance({ seconds: 30 })
    expect(await verify()).toMatchObject(mismatch)
  })

  test('one address is one address, however it is written', async ({ service }) => {
    const user = await service.signedIn()
    const totp = await enrollTotp(service, user)
    const from = (ip: string) => ({ ...user.auth, 'x-forwarded-for': ip })
    const { body: opened } = await service.post(`/factors/${totp.id}/challenge`, {}, from('2001:DB8:0::1'))
    const body = { challenge_id: opened.id, code: totpCode(totp.secret, service.clock.now()) }
    const verify = (ip: string) => service.post(`/factors/${totp.id}/verify`, body, from(ip))
    expect(await verify('2001:db8::2')).toMatchObject(refusal(422, 'mfa_ip_address_mismatch'))
    expect((await verify('2001:DB8:0::1')).status).toBe(200)
  })

  test('an expired challenge is refused and forgotten', async ({ service }) => {
    const user = await service.signedIn()
    const totp = await enrollTotp(service, user)
    const challenge_id = await challenge(service, user, totp.id)
    service.clock.advance({ seconds: 300 })
    const verify = () => {
      const body = { challenge_id, code: totpCode(totp.secret, service.clock.now()) }
      return service.post(`/factors/${totp.id}/verify`, body, user.auth)
    }
    expect(await verify()).toMatchObject(
      refusal(
        422,
        'mfa_challenge_expired',
        `MFA challenge ${challenge_id} has expired, verify against another challenge or create a new challenge.`,
      ),
    )
    expect(await verify()).toMatchObject(refusal(422, 'mfa_factor_not_found'))
  })

  test('can be switched off', async ({ service: shared }) => {
    const service = await shared.with({
      AUTH_MFA_TOTP_VERIFY_ENABLED: 'false',
      AUTH_MFA_TOTP_ENROLL_ENABLED: 'true',
    })
    const user = await service.signedIn()
    const { id } = await enrollTotp(service, user)
    const text = 'MFA verification is disabled for TOTP'
    for (const step of ['challenge', 'verify']) {
      expect(await service.post(`/factors/${id}/${step}`, {}, user.auth)).toMatchObject(
        refusal(422, 'mfa_totp_verify_not_enabled', text),
      )
    }
    await service.close()
  })
})

test('no more factors are proven than AUTH_MFA_MAX_VERIFIED_FACTORS, in whatever order they were begun', async ({
  service: shared,
}) => {
  const service = await shared.with({
    ...{ AUTH_MFA_PHONE_ENROLL_ENABLED: 'true', AUTH_MFA_PHONE_VERIFY_ENABLED: 'true' },
    ...{ AUTH_MFA_MAX_VERIFIED_FACTORS: '1', AUTH_SMS_TEST_OTP: '4915112345678:424242' },
  })
  const user = await service.signedIn()
  const asked = { factor_type: 'phone', friendly_name: 'mobile', phone: '+4915112345678' }
  const { body: phone } = await service.post('/factors', asked, user.auth)
  const raised = toSignedIn((await verifyTotp(service, user, await enrollTotp(service, user))).body)
  const challenge_id = await challenge(service, raised, phone.id)
  const answer = await service.post(`/factors/${phone.id}/verify`, { challenge_id, code: '424242' }, raised.auth)
  expect(answer).toMatchObject(refusal(422, 'too_many_enrolled_mfa_factors'))
  const { factors } = (await service.get('/user', raised.auth)).body
  expect(factors).toContainEqual(expect.objectContaining({ factor_type: 'phone', status: 'unverified' }))
  await service.close()
})

test('a secret that was moved to another user, with or without its row, opens nothing', async ({ service }) => {
  const [victim, thief] = [await withTotp(service), await withTotp(service)]
  const { pool } = service.deps
  const { clock } = service
  const login = await signInAgain(service, victim.email)
  const verify = async (id: string) => {
    clock.advance({ seconds: 30 })
    const code = totpCode(thief.totp.secret, clock.now())
    return service.post(
      `/factors/${id}/verify`,
      { challenge_id: await challenge(service, login, id), code },
      login.auth,
    )
  }
  await pool.query(
    'update factors set sealed_secret = (select sealed_secret from factors where id = $1) where id = $2',
    [thief.totp.id, victim.totp.id],
  )
  expect(await verify(victim.totp.id)).toMatchObject(refusal(422, 'mfa_verification_failed'))
  await pool.query("update factors set user_id = $1, friendly_name = 'given' where id = $2", [
    victim.userId,
    thief.totp.id,
  ])
  expect(await verify(thief.totp.id)).toMatchObject(refusal(422, 'mfa_verification_failed'))
})

test('a secret that names no key opens nothing, whichever key sealed it and whatever it is bound to', async ({
  service,
}) => {
  const user = await withTotp(service)
  const keyed = await service.with({ AUTH_ENCRYPTION_KEYS: newKey('a') })
  for (const at of [service, keyed]) {
    for (const use of ['outbox', 'sealed second factor'] as const) {
      for (const context of ['', JSON.stringify(['factors', 'sealed_secret', user.totp.id, user.userId])]) {
        const sealed_secret = seal(deriveKey(SECRET, use), user.totp.secret, context)
        await service.deps.db.updateTable('factors').set({ sealed_secret }).where('id', '=', user.totp.id).execute()
        expect(await verifyTotp(at, user, user.totp)).toMatchObject(refusal(422, 'mfa_verification_failed'))
      }
    }
  }
  await keyed.close()
})

describe('with another AUTH_ENCRYPTION_KEY', () => {
  test('the code of an app is refused in words, uncounted and logged, and a recovery code replaces it', async ({
    service: one,
  }) => {
    const { email, totp, recoveryCodes } = await withTotp(one)
    const folder = await mkdtemp(join(tmpdir(), 'auth-log-'))
    const two = await one.with({
      AUTH_ENCRYPTION_KEY: 'another key of sixteen bytes or more',
      ...{ AUTH_LOG_LEVEL: 'error', AUTH_LOG_FILE: join(folder, 'log') },
    })
    const login = await signInAgain(two, email)
    const challenge_id = await challenge(two, login, totp.id)
    const body = { challenge_id, code: totpCode(totp.secret, two.clock.now()) }
    for (let i = 0; i < 6; i++) {
      expect(await two.post(`/factors/${totp.id}/verify`, body, login.auth)).toMatchObject(
        refusal(
          422,
          'mfa_verification_failed',
          'This factor can no longer be checked, use another one or a recovery code',
        ),
      )
    }
    const used = await two.post('/factors/recovery-codes/verify', { code: recoveryCodes[0] }, login.auth)
    expect(used.status).toBe(200)
    await two.close()
    // The file is written behind the service's back.
    const log = () => readFile(join(folder, 'log'), 'utf8')
    await expect.poll(log).toContain('AUTH_ENCRYPTION_KEY')
    await expect.poll(log).toContain(totp.id)
    await rm(folder, { recursive: true })
  })
})

describe('removing', () => {
  test('takes aal2 from the sessions that used the factor, and the factor from the user', async ({ service }) => {
    const user = await withTotp(service)
    expect(await service.delete(`/factors/${user.totp.id}`, user.auth)).toMatchObject({
      status: 200,
      body: { id: user.totp.id },
    })
    const { body } = await refresh(service, user.refreshToken)
    expect(body.user).not.toHaveProperty('factors')
    expect(claimsOf(toSignedIn(body))).toMatchObject({ aal: 'aal1', amr: [{ method: 'password' }] })
  })

  test('leaves sessions that used another factor as they are', async ({ service }) => {
    const user = await withTotp(service)
    const other = await enrollTotp(service, user, 'other')
    const raised = toSignedIn((await verifyTotp(service, user, other)).body)
    expect((await service.delete(`/factors/${user.totp.id}`, raised.auth)).status).toBe(200)
    const { body } = await refresh(service, raised.refreshToken)
    expect(claimsOf(toSignedIn(body))).toMatchObject({ aal: 'aal2' })
    expect(body.user.factors).toMatchObject([{ id: other.id }, { factor_type: 'recovery_code' }])
  })

  test('one that was never proven needs no aal2', async ({ service }) => {
    const user = await service.signedIn()
    const { id } = await enrollTotp(service, user)
    expect((await service.delete(`/factors/${id}`, user.auth)).status).toBe(200)
  })
})

test('a deleted account keeps no factors', async ({ service }) => {
  const user = await withTotp(service)
  await service.app.inject({
    method: 'DELETE',
    url: `/admin/users/${user.userId}`,
    headers: service.admin,
    payload: { should_soft_delete: true },
  })
  const { rows } = await service.deps.pool.query('select 1 from factors where user_id = $1', [user.userId])
  expect(rows).toEqual([])
  expect((await service.get(`/admin/users/${user.userId}`, service.admin)).body).not.toHaveProperty('factors')
})
