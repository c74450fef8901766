import { describe, expect, onTestFinished } from 'vitest'
import { expectKnownMembers } from '../../../test/audit-members.ts'
import { startLogFile } from '../../../test/log-file.ts'
import { startProviderSignIns } from '../../../test/provider-sign-in.ts'
import { signInAgain, totpCode, withTotp } from '../../../test/second-factors.ts'
import { codeIn, linkPath, queryOf, type TestService, test } from '../../../test/service.ts'
import { NIL_UUID } from '../../db/uuid.ts'

const FROM = { 'user-agent': 'Test/1.0', 'x-forwarded-for': '203.0.113.7' }
const password = 'correct horse'

/** Entries that contain the name, newest first. */
async function entriesOf({ deps: { pool } }: TestService, name: string) {
  const { rows } = await pool.query(
    `select payload, ip_address from audit_log_entries where payload::text like $1 order by created_at desc, ctid desc`,
    [`%${name}%`],
  )
  expectKnownMembers(rows.map(({ payload }) => payload))
  return rows.map(({ payload: { action, traits, user_agent, actor_id }, ip_address }) => ({
    ...{ action, traits, user_agent, actor_id, ip_address },
  }))
}

/** Settings of a log file, and the actions of its audit lines. */
async function logFile() {
  const { settings, lines } = await startLogFile()
  return { settings, audited: async (): Promise<string[]> => (await lines()).flatMap(({ audit }) => audit ?? []) }
}

const signIn = (service: TestService, email: string, typed = password) =>
  service.post('/token?grant_type=password', { email, password: typed }, FROM)

describe('the audit log', () => {
  const from = { ip_address: '203.0.113.7', user_agent: 'Test/1.0' }

  test('records the client address and user agent of a sign-in and a sign-out', async ({ service }) => {
    const { userId } = await service.signedIn('audited@example.com')
    const { body } = await signIn(service, 'audited@example.com')
    await service.post('/logout', {}, { ...FROM, authorization: `Bearer ${body.access_token}` })
    const [out, signedIn] = await entriesOf(service, userId)
    expect(out).toMatchObject({ action: 'logout', actor_id: userId, ...from })
    expect(signedIn).toMatchObject({ action: 'login', actor_id: userId, ...from })
  })

  test('records the client address of a refresh', async ({ service }) => {
    const { userId, refreshToken } = await service.signedIn('audited-refresh@example.com')
    await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken }, FROM)
    const [refreshed] = await entriesOf(service, userId)
    expect(refreshed).toMatchObject({ action: 'token_refreshed', ip_address: from.ip_address })
  })

  test('records the client of a request whose work a worker does', async ({ service }) => {
    const { userId } = await service.signedIn('audited-worker@example.com')
    service.clock.advance({ seconds: 61 })
    await service.post('/recover', { email: 'audited-worker@example.com' }, FROM)
    await service.settled()
    expect((await entriesOf(service, userId))[0]).toMatchObject({ action: 'user_recovery_requested', ...from })
    await service.post('/otp', { email: 'audited-by-code@example.com' }, FROM)
    await service.settled()
    await service.post('/signup', { email: 'audited-again@example.com', password })
    await service.settled()
    service.clock.advance({ seconds: 901 })
    const again = { type: 'signup', email: 'audited-again@example.com' }
    expect((await service.post('/resend', again, FROM)).status).toBe(200)
    await service.settled()
    for (const email of ['audited-by-code@example.com', 'audited-again@example.com']) {
      expect((await entriesOf(service, email))[0]).toMatchObject({ action: 'user_confirmation_requested', ...from })
    }
  })

  test('records a refused sign-in under the typed address, known or not', async ({ service }) => {
    await service.signedIn('refused-known@example.com')
    for (const email of ['refused-known@example.com', 'refused-unknown@example.com']) {
      expect((await signIn(service, email, 'wrong horse')).status).toBe(400)
      const [failed] = await entriesOf(service, email)
      expect(failed).toEqual({
        action: 'login_failed',
        actor_id: '00000000-0000-0000-0000-000000000000',
        traits: { provider: 'password', error_code: 'invalid_credentials' },
        ...from,
      })
    }
  })

  test('records a wrong code, but no unknown link token', async ({ service }) => {
    const email = 'refused-code@example.com'
    await service.signedIn(email)
    await service.post('/otp', { email })
    const token = codeIn((await service.mailbox.waitFor(email)).text) === '000000' ? '111111' : '000000'
    await service.post('/verify', { type: 'email', email, token }, FROM)
    const [failed] = await entriesOf(service, email)
    expect(failed).toMatchObject({ action: 'login_failed', traits: { provider: 'otp', error_code: 'otp_expired' } })
    const count = async () => (await service.deps.pool.query('select count(*) from audit_log_entries')).rows[0].count
    const before = await count()
    await service.get('/verify?type=signup&token=never-made')
    expect(await count()).toBe(before)
  })

  test('records no requests refused by limits, and no more of a typed address than an address may have', async ({
    service,
  }) => {
    const email = 'flooded@example.com'
    for (let i = 0; i < 5; i++) await signIn(service, email, 'wrong horse')
    expect((await signIn(service, email, 'wrong horse')).status).toBe(429)
    expect(await entriesOf(service, email)).toHaveLength(5)
    await signIn(service, `overlong-${'x'.repeat(100_000)}`, 'wrong horse')
    const { rows } = await service.deps.pool.query(
      `select length(payload ->> 'actor_username') as length from audit_log_entries where payload::text like '%overlong-%'`,
    )
    expect(rows).toEqual([{ length: 254 }])
  })

  test.for<[string, (service: TestService) => Promise<string>, string]>([
    ['a user who is no admin', async (service) => (await service.signedIn()).auth.authorization, 'not_admin'],
    ['an unsigned token', async () => 'Bearer not.a.token', 'bad_jwt'],
  ])(
    'records %s at an admin endpoint: ten times an hour in the table, always in the log',
    async (row, { service: plain }) => {
      const [, tokenFor, code] = row
      const { settings, audited } = await logFile()
      const service = await plain.with({ ...settings, AUTH_RATE_LIMIT_HEADER: 'X-Real-IP' })
      const ip = `2001:db8:${code.length}::1`
      const authorization = await tokenFor(service)
      const refused = () => service.get('/admin/users', { authorization, 'x-real-ip': ip })
      for (let i = 0; i < 12; i++) expect((await refused()).status).toBe(403)
      const { rows } = await service.deps.pool.query('select payload from audit_log_entries where ip_address = $1', [
        ip,
      ])
      expect(rows).toHaveLength(10)
      expect(rows[0].payload).toMatchObject({ action: 'login_failed', traits: { provider: 'admin', error_code: code } })
      const subject = JSON.parse(Buffer.from(authorization.split('.')[1] ?? '', 'base64url').toString() || '{}').sub
      expect(rows[0].payload.actor_id).toBe(code === 'not_admin' ? subject : NIL_UUID)
      const refusals = async () => (await audited()).filter((action) => action === 'login_failed')
      await expect.poll(refusals).toEqual(Array(12).fill('login_failed'))
      await service.close()
    },
  )

  test('records the forged tokens of one client beside a flood of another, even without a trusted address', async ({
    service,
  }) => {
    const forged = (client: string) =>
      service.get('/admin/users', { authorization: 'Bearer x.y.z', 'user-agent': client })
    for (let i = 0; i < 11; i++) await forged('Flood/1.0')
    await forged('Beside/1.0')
    expect(await entriesOf(service, 'Beside/1.0')).toHaveLength(1)
  })

  test('a flood of refusals by strangers uses up no entries of known users', async ({ service }) => {
    const user = await service.signedIn()
    onTestFinished(() => service.clock.advance({ seconds: 3_601 }))
    await signIn(service, 'flooding@example.com', 'wrong horse')
    const limit = () => service.deps.db.updateTable('rate_limits').where('key', '=', 'refused-sign-ins:all')
    await limit().set({ points: 2_000 }).execute()
    await signIn(service, 'past-the-cap@example.com', 'wrong horse')
    expect(await entriesOf(service, 'past-the-cap@example.com')).toEqual([])
    expect((await service.get('/admin/users', user.auth)).status).toBe(403)
    const failed = (await entriesOf(service, user.userId)).filter(({ action }) => action === 'login_failed')
    expect(failed).toMatchObject([{ traits: { provider: 'admin', error_code: 'not_admin' } }])
  })

  test('records no requests to an admin endpoint without a token', async ({ service }) => {
    const count = async () => (await service.deps.pool.query('select count(*) from audit_log_entries')).rows[0].count
    const before = await count()
    expect((await service.get('/admin/users')).status).toBe(401)
    expect(await count()).toBe(before)
  })

  test('records a wrong second factor and a wrong recovery code under the user', async ({ service }) => {
    const { email, totp, userId } = await withTotp(service)
    const user = await signInAgain(service, email)
    const headers = { ...FROM, ...user.auth }
    const { id: challenge_id } = (await service.post(`/factors/${totp.id}/challenge`, {}, headers)).body
    const code = totpCode(totp.secret, service.clock.now(), 100)
    expect((await service.post(`/factors/${totp.id}/verify`, { challenge_id, code }, headers)).status).toBe(422)
    expect((await service.post('/factors/recovery-codes/verify', { code: 'wrong' }, headers)).status).toBe(422)
    const failed = (await entriesOf(service, userId)).filter(({ action }) => action === 'login_failed')
    expect(failed).toEqual(
      ['recovery_code', 'totp'].map((provider) => ({
        action: 'login_failed',
        actor_id: userId,
        traits: { provider, error_code: 'mfa_verification_failed' },
        ...from,
      })),
    )
  })

  test('records a PKCE code with a wrong verifier, but no unknown code', async ({ service }) => {
    const email = 'refused-verifier@example.com'
    const code_challenge = 'c'.repeat(43)
    await service.post('/signup', { email, password, code_challenge, code_challenge_method: 'plain' })
    const { text } = await service.mailbox.waitFor(email)
    const { code: auth_code } = queryOf(await service.get(linkPath(text)))
    for (const code of [auth_code, 'never-made']) {
      const exchange = { auth_code: code, code_verifier: 'v'.repeat(43) }
      await service.post('/token?grant_type=pkce', exchange, { ...FROM, 'user-agent': 'Pkce/1.0' })
    }
    const failed = await entriesOf(service, 'Pkce/1.0')
    expect(failed.map(({ traits }) => traits)).toEqual([{ provider: 'pkce', error_code: 'bad_code_verifier' }])
  })

  test('names the signed-in admin who acted, and their address', async ({ service }) => {
    const { userId, auth } = await service.signedIn('audited-admin@example.com')
    await service.put(`/admin/users/${userId}`, { role: 'service_role' }, service.admin)
    const admin = await signIn(service, 'audited-admin@example.com')
    const authorization = `Bearer ${admin.body.access_token}`
    const made = await service.post('/admin/users', { email: 'made@example.com' }, { ...FROM, authorization })
    const [entry] = await entriesOf(service, made.body.id)
    expect(entry).toMatchObject({ action: 'user_signedup', actor_id: userId, ...from })
    expect((await service.get('/admin/users', auth)).status).toBe(403)
  })
})

test('a rolled back event leaves no log line and a committed one does; a refusal after a provider sign-in is an entry', async () => {
  const { settings, audited } = await logFile()
  const { service, signIn, newAccount, close } = await startProviderSignIns(settings)
  const [banned, other] = [newAccount('github'), newAccount('github')]
  const { userId } = await service.signedIn(banned.email)
  await service.put(`/admin/users/${userId}`, { ban_duration: '1h' }, service.admin)
  const { answer } = await signIn('github', banned)
  expect(String(answer.headers.location)).toContain('error_code=user_banned')
  const [failed] = await entriesOf(service, banned.email)
  expect(failed).toMatchObject({ action: 'login_failed', traits: { provider: 'github', error_code: 'user_banned' } })
  expect((await service.get(`/admin/users/${userId}`, service.admin)).body.identities).toHaveLength(1)
  await signIn('github', other)
  await expect.poll(audited).toContain('login')
  expect(await audited()).not.toContain('identity_linked')
  await close()
})
