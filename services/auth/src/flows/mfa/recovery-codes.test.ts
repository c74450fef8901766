import { describe, expect } from 'vitest'
import { claimsOf, enrollTotp, refresh, signInAgain, verifyTotp, withTotp } from '../../../test/second-factors.ts'
import { test, toSignedIn } from '../../../test/service.ts'

const URL = '/factors/recovery-codes'
const refusal = (status: number, code: string) => ({ status, body: { code: status, error_code: code } })

test('ten codes come with the first proven factor, and none with the second', async ({ service }) => {
  const user = await withTotp(service)
  expect(user.recoveryCodes).toHaveLength(10)
  expect(new Set(user.recoveryCodes).size).toBe(10)
  for (const code of user.recoveryCodes) expect(code).toMatch(/^[a-z2-7]{16}$/)
  const second = await verifyTotp(service, user, await enrollTotp(service, user, 'second'))
  expect(second).toMatchObject({ status: 200 })
  expect(second.body).not.toHaveProperty('recovery_codes')
})

test('codes are stored as hashes', async ({ service }) => {
  const user = await withTotp(service)
  const { rows } = await service.deps.pool.query(
    `select encode(code_hash, 'escape') as hash from recovery_codes where user_id = $1`,
    [user.userId],
  )
  expect(rows).toHaveLength(10)
  for (const code of user.recoveryCodes) expect(JSON.stringify(rows)).not.toContain(code)
})

describe('using one', () => {
  test('raises the session to aal2, ends lower ones, and notifies the user by mail', async ({ service }) => {
    const user = await withTotp(service)
    const [lost, other] = [await signInAgain(service, user.email), await signInAgain(service, user.email)]
    const typed = (user.recoveryCodes[3] as string).toUpperCase().replaceAll(/(.{4})/g, '$1- ')
    const { status, body } = await service.post(`${URL}/verify`, { code: typed }, lost.auth)
    expect(status).toBe(200)
    expect(claimsOf(toSignedIn(body))).toMatchObject({
      ...{ aal: 'aal2', session_id: claimsOf(lost).session_id },
      amr: [{ method: 'mfa/recovery_code' }, { method: 'password' }],
    })
    expect(await refresh(service, lost.refreshToken)).toMatchObject({ status: 400 })
    expect(await refresh(service, other.refreshToken)).toMatchObject(refusal(400, 'refresh_token_not_found'))
    const mail = await service.mailbox.waitFor(user.email, { subject: 'A recovery code of your account was used' })
    expect(mail.text).toContain('Codes left: 9')
  })

  test('lets a user who lost the factor remove it and enroll again', async ({ service }) => {
    const user = await withTotp(service)
    const lost = await signInAgain(service, user.email)
    const { body } = await service.post(`${URL}/verify`, { code: user.recoveryCodes[0] }, lost.auth)
    const raised = toSignedIn(body)
    expect((await service.delete(`/factors/${user.totp.id}`, raised.auth)).status).toBe(200)
    const anew = await verifyTotp(service, raised, await enrollTotp(service, raised))
    expect(anew.body.recovery_codes).toHaveLength(10)
    expect(anew.body.recovery_codes).not.toContain(user.recoveryCodes[1])
  })

  test('uses it up: of many at once one session is raised, and later none', async ({ service }) => {
    const user = await withTotp(service)
    const logins = await Promise.all([1, 2, 3, 4].map(() => signInAgain(service, user.email)))
    const body = { code: user.recoveryCodes[0] }
    const answers = await Promise.all(logins.map(({ auth }) => service.post(`${URL}/verify`, body, auth)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const { auth } = await signInAgain(service, user.email)
    expect(await service.post(`${URL}/verify`, body, auth)).toMatchObject(refusal(422, 'mfa_verification_failed'))
  })

  test.for([[{ code: '' }], [{}], [{ code: 'aaaaaaaaaaaaaaaa' }], [{ code: 'x'.repeat(10_000) }]] as const)(
    '%j is refused',
    async ([body], { service }) => {
      const { email } = await withTotp(service)
      const { auth } = await signInAgain(service, email)
      expect(await service.post(`${URL}/verify`, body, auth)).toMatchObject(refusal(422, 'mfa_verification_failed'))
    },
  )

  test("another user's code is none, nor has a user without factors any", async ({ service }) => {
    const [one, two] = [await withTotp(service), await withTotp(service)]
    const { auth } = await signInAgain(service, two.email)
    const body = { code: one.recoveryCodes[0] }
    const plain = await service.signedIn()
    for (const who of [auth, plain.auth]) {
      expect(await service.post(`${URL}/verify`, body, who)).toMatchObject(refusal(422, 'mfa_verification_failed'))
    }
  })

  test('wrong ones cost a wait that doubles; it does not stop the authenticator app', async ({ service }) => {
    const { email, totp, recoveryCodes } = await withTotp(service)
    const login = await signInAgain(service, email)
    for (let i = 0; i < 5; i++) await service.post(`${URL}/verify`, { code: 'wrong' }, login.auth)
    const refused = await service.post(`${URL}/verify`, { code: recoveryCodes[0] }, login.auth)
    expect(refused).toMatchObject(refusal(429, 'mfa_recovery_codes_locked'))
    expect(refused.headers['retry-after']).toBe('1')
    expect((await verifyTotp(service, login, totp)).status).toBe(200)
  })
})

describe('the set', () => {
  test('says how many are left', async ({ service }) => {
    const user = await withTotp(service)
    const login = await signInAgain(service, user.email)
    await service.post(`${URL}/verify`, { code: user.recoveryCodes[0] }, login.auth)
    expect(await service.get(URL, login.auth)).toMatchObject({
      status: 200,
      body: { id: expect.any(String), type: 'recovery_code', total: 10, remaining: 9 },
    })
  })

  test('is replaced by a session of aal2 alone; its id and name stay', async ({ service }) => {
    const user = await withTotp(service)
    const low = await signInAgain(service, user.email)
    expect(await service.post(`${URL}/regenerate`, {}, low.auth)).toMatchObject(refusal(403, 'insufficient_aal'))
    const before = (await service.get(URL, user.auth)).body
    const { status, body } = await service.post(`${URL}/regenerate`, {}, user.auth)
    expect([status, body.total, body.codes.length]).toEqual([200, 10, 10])
    expect(body).toMatchObject({ id: before.id, friendly_name: 'Recovery codes' })
    const use = (code: string | undefined) => service.post(`${URL}/verify`, { code }, low.auth)
    expect((await use(user.recoveryCodes[0])).status).toBe(422)
    expect((await use(body.codes[0])).status).toBe(200)
  })

  test('is made by name once: while there is one another is refused, and the codes of the first stay good', async ({
    service,
  }) => {
    const user = await withTotp(service)
    const exists = refusal(422, 'mfa_verified_factor_exists')
    expect(await service.post(URL, { friendly_name: 'paper' }, user.auth)).toMatchObject(exists)
    const login = await signInAgain(service, user.email)
    expect((await service.post(`${URL}/verify`, { code: user.recoveryCodes[0] }, login.auth)).status).toBe(200)

    await service.delete(URL, user.auth)
    const low = await signInAgain(service, user.email)
    expect(await service.post(URL, {}, low.auth)).toMatchObject(refusal(403, 'insufficient_aal'))
    const made = await service.post(URL, { friendly_name: 'paper' }, user.auth)
    expect(made).toMatchObject({ status: 200, body: { friendly_name: 'paper', total: 10 } })
    const { body } = await service.get('/user', user.auth)
    expect(body.factors).toMatchObject([
      { id: user.totp.id, factor_type: 'totp' },
      { id: made.body.id, factor_type: 'recovery_code', friendly_name: 'paper', status: 'verified' },
    ])
    const renewed = await service.post(`${URL}/regenerate`, {}, user.auth)
    expect(renewed.body).toMatchObject({ id: made.body.id, friendly_name: 'paper' })
  })

  test('has a name that no factor has, and no factor can take it', async ({ service }) => {
    const user = await service.signedIn()
    const { body } = await verifyTotp(service, user, await enrollTotp(service, user, 'Recovery codes'))
    const raised = toSignedIn(body)
    expect(body.user.factors).toMatchObject([{ factor_type: 'totp' }, { friendly_name: 'Recovery codes 2' }])
    const conflict = refusal(422, 'mfa_factor_name_conflict')
    const enroll = { factor_type: 'totp', friendly_name: 'Recovery codes 2' }
    expect(await service.post('/factors', enroll, raised.auth)).toMatchObject(conflict)
    await service.delete(URL, raised.auth)
    const taken = { friendly_name: 'Recovery codes' }
    expect(await service.post(URL, taken, raised.auth)).toMatchObject(conflict)
    expect(await service.post(URL, {}, raised.auth)).toMatchObject(conflict)
    expect((await service.post(URL, { friendly_name: 'paper' }, raised.auth)).status).toBe(200)
  })

  test('takes none of the places for factors', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_MFA_MAX_ENROLLED_FACTORS: '2', AUTH_MFA_MAX_VERIFIED_FACTORS: '2' })
    const user = await withTotp(service)
    expect((await verifyTotp(service, user, await enrollTotp(service, user, 'second'))).status).toBe(200)
    await service.close()
  })

  test('is new without the wait that wrong codes of the old set cost, even from the same address', async ({
    service: shared,
  }) => {
    const service = await shared.with({ AUTH_RATE_LIMIT_HEADER: 'x-real-ip' })
    const user = await withTotp(service)
    const from = { 'x-real-ip': '198.51.100.7' }
    const guess = (code: string | undefined) => service.post(`${URL}/verify`, { code }, { ...user.auth, ...from })
    for (let i = 0; i < 5; i++) await guess('wrong')
    expect(await guess(user.recoveryCodes[0])).toMatchObject(refusal(429, 'mfa_recovery_codes_locked'))
    const { body } = await service.post(`${URL}/regenerate`, {}, { ...user.auth, ...from })
    expect((await guess(body.codes[0])).status).toBe(200)
    await service.close()
  })

  test('is removed by a session of aal2 alone', async ({ service }) => {
    const user = await withTotp(service)
    const low = await signInAgain(service, user.email)
    expect(await service.delete(URL, low.auth)).toMatchObject(refusal(403, 'insufficient_aal'))
    expect(await service.delete(URL, user.auth)).toMatchObject({ status: 200, body: { id: expect.any(String) } })
    for (const answer of [
      await service.get(URL, user.auth),
      await service.delete(URL, user.auth),
      await service.post(`${URL}/regenerate`, {}, user.auth),
    ]) {
      expect(answer).toMatchObject(refusal(404, 'mfa_factor_not_found'))
    }
    expect((await service.post(URL, {}, user.auth)).status).toBe(200)
  })

  test('goes with the last proven factor, which ends aal2 everywhere', async ({ service }) => {
    const user = await withTotp(service)
    const login = await signInAgain(service, user.email)
    const byCode = await service.post(`${URL}/verify`, { code: user.recoveryCodes[0] }, login.auth)
    await service.delete(`/factors/${user.totp.id}`, user.auth)
    expect(await service.get(URL, user.auth)).toMatchObject(refusal(404, 'mfa_factor_not_found'))
    const { body } = await refresh(service, byCode.body.refresh_token)
    expect(claimsOf(toSignedIn(body))).toMatchObject({ aal: 'aal1', amr: [{ method: 'password' }] })
  })

  test('is nothing for users without a second factor', async ({ service }) => {
    const { auth } = await service.signedIn()
    expect(await service.post(URL, {}, auth)).toMatchObject(refusal(422, 'mfa_recovery_codes_sole_factor'))
    expect(await service.get(URL, auth)).toMatchObject(refusal(404, 'mfa_factor_not_found'))
    expect(await service.get(URL)).toMatchObject(refusal(401, 'no_authorization'))
  })

  test('can be switched off', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_MFA_RECOVERY_CODES_ENABLED: 'false' })
    const user = await withTotp(service)
    expect(user.recoveryCodes).toBeUndefined()
    expect(await service.post(URL, {}, user.auth)).toMatchObject(refusal(422, 'mfa_recovery_codes_enroll_not_enabled'))
    expect(await service.post(`${URL}/verify`, { code: 'x' }, user.auth)).toMatchObject(
      refusal(422, 'mfa_recovery_codes_verify_not_enabled'),
    )
    await service.close()
  })
})
