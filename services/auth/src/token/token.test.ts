import { createSecretKey } from 'node:crypto'
import { describe, expect } from 'vitest'
import { type SignedIn, startTestService, type TestService, test, toSignedIn } from '../../test/service.ts'
import { formatRefreshToken, parseRefreshToken, type RefreshToken } from '../sessions/refresh-token.ts'

const password = 'correct horse'
const WRONG = { status: 400, body: { code: 400, error_code: 'invalid_credentials', msg: 'Invalid login credentials' } }

describe('signing in with a password', () => {
  test('answers a session whose token applications can verify', async ({ service }) => {
    const { userId } = await service.signedIn('claims@example.com')
    const { body } = await service.post('/token?grant_type=password', { email: 'CLAIMS@example.com', password })
    expect(body).toMatchObject({ token_type: 'bearer', expires_in: 3600, user: { id: userId } })
    expect(body.expires_at).toBe(Math.floor(service.clock.now().getTime() / 1000) + 3600)
    const claims = await service.deps.keys.verify(body.access_token, service.clock.now())
    expect(claims).toMatchObject({
      iss: 'https://auth.example',
      sub: userId,
      aud: 'authenticated',
      role: 'authenticated',
      email: 'claims@example.com',
      phone: '',
      aal: 'aal1',
      amr: [{ method: 'password' }],
      is_anonymous: false,
      app_metadata: { provider: 'email' },
    })
    expect(claims?.jti).toMatch(/^[0-9a-f-]{36}$/)
    expect(body.user.last_sign_in_at).toBe(service.clock.now().toISOString())
  })

  test('unknown address, wrong password and no password get one answer', async ({ service }) => {
    const { userId } = await service.signedIn('known@example.com')
    const wrong = await service.post('/token?grant_type=password', { email: 'known@example.com', password: 'wrong' })
    const unknown = await service.post('/token?grant_type=password', { email: 'unknown@example.com', password })
    await service.deps.db.updateTable('users').set({ password_hash: null }).where('id', '=', userId).execute()
    const none = await service.post('/token?grant_type=password', { email: 'known@example.com', password })
    const empty = await service.post('/token?grant_type=password', { email: 'known@example.com', password: '' })
    for (const answer of [wrong, unknown, none, empty]) {
      expect(answer).toMatchObject(WRONG)
      expect(answer.text).toBe(wrong.text)
    }
  })

  test('only who knows the password learns that the account is banned or unconfirmed', async ({ service }) => {
    const { userId } = await service.signedIn('banned@example.com')
    const bannedUntil = new Date(service.clock.now().getTime() + 3600_000)
    await service.deps.db.updateTable('users').set({ banned_until: bannedUntil }).where('id', '=', userId).execute()
    await service.post('/signup', { email: 'unconfirmed@example.com', password })
    const signIn = (email: string, typed: string) =>
      service.post('/token?grant_type=password', { email, password: typed })
    expect(await signIn('banned@example.com', 'wrong')).toMatchObject(WRONG)
    expect(await signIn('unconfirmed@example.com', 'wrong')).toMatchObject(WRONG)
    expect(await signIn('banned@example.com', password)).toMatchObject({
      status: 400,
      body: { error_code: 'user_banned' },
    })
    const unconfirmed = await signIn('unconfirmed@example.com', password)
    expect(unconfirmed).toMatchObject({ status: 400, body: { error_code: 'email_not_confirmed' } })
  })

  test('a sign-in with the old password that is under way when it changes gets no session', async ({ service }) => {
    const { auth, userId } = await service.signedIn('overtaken@example.com')
    const signIns = Array.from({ length: 10 }, () =>
      service.post('/token?grant_type=password', { email: 'overtaken@example.com', password }),
    )
    const change = service.put('/user', { password: 'a new horse' }, auth)
    const opened = (await Promise.all(signIns)).filter(({ status }) => status === 200)
    expect((await change).status).toBe(200)
    for (const { body } of opened) {
      const { status } = await service.post('/token?grant_type=refresh_token', { refresh_token: body.refresh_token })
      expect(status).toBe(400)
    }
    const { rows } = await service.deps.pool.query('select count(*) from sessions where user_id = $1', [userId])
    expect(rows[0].count).toBe(1)
  })

  test('a password that breaks newer rules still signs in and is reported', async ({ service }) => {
    await service.signedIn('old@example.com', '123456')
    service.deps.config.passwords.minLength = 8
    const { status, body } = await service.post('/token?grant_type=password', {
      email: 'old@example.com',
      password: '123456',
    })
    service.deps.config.passwords.minLength = 6
    expect([status, body.weak_password.reasons]).toEqual([200, ['length']])
  })

  test('a hash made with weaker parameters is replaced', async ({ service }) => {
    const { userId } = await service.signedIn('rehash@example.com')
    const stronger = await startTestService({
      AUTH_DATABASE_URL: service.deps.config.database.url,
      AUTH_WORKERS_ENABLED: 'false',
      AUTH_PASSWORD_HASH_MEMORY_KIB: '128',
    })
    const read = () =>
      service.deps.db.selectFrom('users').select('password_hash').where('id', '=', userId).executeTakeFirstOrThrow()
    expect((await read()).password_hash).toContain('m=64')
    expect((await stronger.post('/token?grant_type=password', { email: 'rehash@example.com', password })).status).toBe(
      200,
    )
    expect((await read()).password_hash).toContain('m=128')
    expect((await service.post('/token?grant_type=password', { email: 'rehash@example.com', password })).status).toBe(
      200,
    )
    await stronger.close()
  })

  test.for<[string, string, object, number, string]>([
    ['no grant type', '/token', {}, 400, 'invalid_credentials'],
    ['an unknown grant type', '/token?grant_type=magic', {}, 400, 'invalid_credentials'],
    ['no address', '/token?grant_type=password', { password }, 400, 'validation_failed'],
    ['two addresses', '/token?grant_type=password', { email: 'a@b.c', phone: '1', password }, 400, 'validation_failed'],
    ['a phone number', '/token?grant_type=password', { phone: '123', password }, 422, 'phone_provider_disabled'],
    ['a number as password', '/token?grant_type=password', { email: 'a@b.c', password: 1 }, 400, 'bad_json'],
  ])('%s is refused', async ([, url, body, status, code], { service }) => {
    expect(await service.post(url, body)).toMatchObject({ status, body: { error_code: code } })
  })
})

describe('refreshing', () => {
  const refresh = (service: TestService, token: string) =>
    service.post('/token?grant_type=refresh_token', { refresh_token: token })

  test('a chain of refreshes works, and the session has one row all the while', async ({ service }) => {
    let { refreshToken, userId } = await service.signedIn()
    for (let i = 0; i < 5; i++) {
      const { status, body } = await refresh(service, refreshToken)
      expect(status).toBe(200)
      expect(body.refresh_token).not.toBe(refreshToken)
      refreshToken = body.refresh_token
      service.clock.advance({ seconds: 60 })
    }
    const sessions = await service.deps.db.selectFrom('sessions').selectAll().where('user_id', '=', userId).execute()
    // Beside it the session that following the link began.
    expect(sessions.map((session) => session.refresh_counter).toSorted()).toEqual([0, 5])
  })

  // contract/auth-core.md 18, BUG4.
  test('refreshes of one moment are each for their own session, the refused ones too', async ({ service }) => {
    const people = []
    for (let number = 0; number < 8; number++) people.push(await service.signedIn())
    const [leaving, reused] = people as [SignedIn, SignedIn]
    await service.post('/logout', {}, leaving.auth)
    await refresh(service, reused.refreshToken)
    await refresh(service, (await refresh(service, reused.refreshToken)).body.refresh_token)
    service.clock.advance({ seconds: 60 })
    const answers = await Promise.all(people.map(({ refreshToken }) => refresh(service, refreshToken)))
    expect(answers.map(({ body }) => body.user?.id ?? body.error_code)).toEqual([
      'refresh_token_not_found',
      'refresh_token_already_used',
      ...people.slice(2).map(({ userId }) => userId),
    ])
    const again = await Promise.all(answers.slice(2).map(({ body }) => refresh(service, body.refresh_token)))
    expect(again.map(({ body }) => body.user.id)).toEqual(people.slice(2).map(({ userId }) => userId))
  })

  test('a session that is held elsewhere keeps no other one waiting', async ({ service }) => {
    const [held, free] = [await service.signedIn(), await service.signedIn()]
    const holder = await service.deps.pool.connect()
    await holder.query('begin')
    await holder.query('select from sessions where user_id = $1 for update', [held.userId])
    let isHeld = true
    const waiting = refresh(service, held.refreshToken).then((answer) => ({ answer, wasHeld: isHeld }))
    expect((await refresh(service, free.refreshToken)).body.user.id).toBe(free.userId)
    isHeld = false
    await holder.query('commit')
    holder.release()
    expect(await waiting).toMatchObject({ wasHeld: false, answer: { status: 200 } })
  })

  test('twenty refreshes of one token at once get the same child', async ({ service }) => {
    const { refreshToken } = await service.signedIn()
    const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(service, refreshToken)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
  })

  test('the previous token gives the current one again within the interval, however often', async ({ service }) => {
    const { refreshToken } = await service.signedIn()
    const child = (await refresh(service, refreshToken)).body.refresh_token
    for (let i = 0; i < 3; i++) {
      service.clock.advance({ seconds: 3 })
      expect((await refresh(service, refreshToken)).body.refresh_token).toBe(child)
    }
    // Reuse does not prolong the interval.
    service.clock.advance({ seconds: 2 })
    expect((await refresh(service, refreshToken)).body.error_code).toBe('refresh_token_already_used')
  })

  test('a token used twice after the interval ends the whole session', async ({ service }) => {
    const { refreshToken } = await service.signedIn()
    const child = (await refresh(service, refreshToken)).body.refresh_token
    service.clock.advance({ seconds: 11 })
    expect(await refresh(service, refreshToken)).toMatchObject({
      status: 400,
      body: { error_code: 'refresh_token_already_used' },
    })
    expect(await refresh(service, child)).toMatchObject({
      status: 400,
      body: { error_code: 'refresh_token_not_found' },
    })
  })

  test('a token two behind ends the session even within the interval', async ({ service }) => {
    const { refreshToken: first } = await service.signedIn()
    const second = (await refresh(service, first)).body.refresh_token
    const third = (await refresh(service, second)).body.refresh_token
    expect((await refresh(service, first)).body.error_code).toBe('refresh_token_already_used')
    expect((await refresh(service, third)).status).toBe(400)
    const audited = await service.deps.db.selectFrom('audit_log_entries').select('payload').execute()
    expect(audited.map(({ payload }) => payload.action)).toContain('token_reuse_detected')
  })

  test('without rotation a reused token is refused and the session lives', async () => {
    const service = await startTestService({ AUTH_SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: 'false' })
    const { refreshToken: first } = await service.signedIn()
    const second = (await refresh(service, first)).body.refresh_token
    expect((await refresh(service, first)).body.refresh_token).toBe(second)
    service.clock.advance({ seconds: 11 })
    expect((await refresh(service, first)).body.error_code).toBe('refresh_token_already_used')
    const third = (await refresh(service, second)).body.refresh_token
    // Two behind, and within the interval.
    expect((await refresh(service, first)).body.error_code).toBe('refresh_token_already_used')
    expect((await refresh(service, second)).body.refresh_token).toBe(third)
    expect((await refresh(service, third)).status).toBe(200)
    await service.close()
  })

  test('sessions end with their time box and with inactivity', async () => {
    const service = await startTestService({ AUTH_SESSIONS_TIMEBOX: '1h', AUTH_SESSIONS_INACTIVITY_TIMEOUT: '20m' })
    const active = await service.signedIn()
    const idle = await service.signedIn()
    let token = active.refreshToken
    for (let i = 0; i < 3; i++) {
      service.clock.advance({ seconds: 19 * 60 })
      token = (await refresh(service, token)).body.refresh_token
    }
    expect(await refresh(service, idle.refreshToken)).toMatchObject({
      status: 400,
      body: { error_code: 'session_expired' },
    })
    service.clock.advance({ seconds: 5 * 60 })
    expect(await refresh(service, token)).toMatchObject({ status: 400, body: { error_code: 'session_expired' } })
    await service.close()
  })

  describe('with one session per user', () => {
    const single = { AUTH_SESSIONS_SINGLE_PER_USER: 'true' }
    const replaced = {
      status: 400,
      body: { error_code: 'session_expired', msg: 'The session has ended with a newer sign-in, sign in again' },
    }
    const again = async (service: TestService, email: string) =>
      toSignedIn((await service.post('/token?grant_type=password', { email, password })).body)
    const later = (service: TestService, email: string) => {
      service.clock.advance({ seconds: 1 })
      return again(service, email)
    }

    test('only the newest is refreshed, however fresh an older one is, and others keep theirs', async () => {
      const service = await startTestService(single)
      for (const email of ['single@example.com', 'other@example.com']) await service.signedIn(email, password)
      const other = await later(service, 'other@example.com')
      const first = await later(service, 'single@example.com')
      const { refresh_token: fresh } = (await refresh(service, first.refreshToken)).body
      const newest = await later(service, 'single@example.com')
      expect(await refresh(service, fresh)).toMatchObject(replaced)
      const next = await refresh(service, newest.refreshToken)
      expect(next.status).toBe(200)
      expect(await refresh(service, fresh)).toMatchObject(replaced)
      expect((await refresh(service, next.body.refresh_token)).status).toBe(200)
      expect((await refresh(service, other.refreshToken)).status).toBe(200)
      await service.close()
    })

    test('an older one reads the account while its token lives, changes nothing and is not listed', async () => {
      const service = await startTestService(single)
      const first = await service.signedIn('single@example.com', password)
      const newest = await later(service, 'single@example.com')
      expect((await service.get('/user', first.auth)).status).toBe(200)
      expect(await service.put('/user', { data: { late: true } }, first.auth)).toMatchObject({
        status: 403,
        body: { error_code: 'session_not_found' },
      })
      expect((await service.get('/user/sessions', newest.auth)).body).toMatchObject([{ current: true }])
      expect((await service.put('/user', { data: { late: false } }, newest.auth)).status).toBe(200)
      await service.close()
    })

    test('the token of an admin, which has no session, is never replaced', async () => {
      const service = await startTestService(single)
      const { userId } = await service.signedIn('single@example.com', password)
      await later(service, 'single@example.com')
      const listed = await service.get(`/admin/users/${userId}/sessions`, service.admin)
      expect(listed).toMatchObject({ status: 200, body: [{}] })
      await service.close()
    })

    test('of sign-ins in the same moment exactly one is left', async () => {
      const service = await startTestService(single)
      await service.signedIn('single@example.com')
      service.clock.advance({ seconds: 1 })
      const all = await Promise.all(Array.from({ length: 8 }, () => again(service, 'single@example.com')))
      const statuses = await Promise.all(all.map(async (one) => (await refresh(service, one.refreshToken)).status))
      expect(statuses.toSorted()).toEqual([200, ...Array(7).fill(400)])
      await service.close()
    })
  })

  test('a banned user cannot refresh until the ban is over', async ({ service }) => {
    const { refreshToken, userId } = await service.signedIn()
    const bannedUntil = new Date(service.clock.now().getTime() + 60_000)
    await service.deps.db.updateTable('users').set({ banned_until: bannedUntil }).where('id', '=', userId).execute()
    expect(await refresh(service, refreshToken)).toMatchObject({ status: 400, body: { error_code: 'user_banned' } })
    service.clock.advance({ seconds: 61 })
    expect((await refresh(service, refreshToken)).status).toBe(200)
  })

  test('tokens that this service did not make are refused and end nothing', async ({ service }) => {
    const { refreshToken } = await service.signedIn()
    const parsed = parseRefreshToken(service.deps.refreshTokenKey, refreshToken) as RefreshToken
    const otherKey = createSecretKey(Buffer.alloc(32, 7))
    const future = formatRefreshToken(service.deps.refreshTokenKey, { ...parsed, counter: 9 })
    const cases: [string, string][] = [
      ['', 'validation_failed'],
      ['abcdefghijkl', 'validation_failed'],
      [`${refreshToken}x`, 'validation_failed'],
      [`B${refreshToken.slice(1)}`, 'validation_failed'],
      [refreshToken.slice(0, -3) + (refreshToken.endsWith('AAA') ? 'BBB' : 'AAA'), 'refresh_token_not_found'],
      [formatRefreshToken(otherKey, parsed), 'refresh_token_not_found'],
      [future, 'validation_failed'],
    ]
    for (const [token, code] of cases) {
      expect(await refresh(service, token)).toMatchObject({ status: 400, body: { error_code: code } })
    }
    expect((await refresh(service, refreshToken)).status).toBe(200)
  })
})

test('tokens are signed with the configured key, published, and tokens of the secret still verify', async () => {
  const { exportJWK, generateKeyPair, jwtVerify, createLocalJWKSet, SignJWT } = await import('jose')
  const { SECRET } = await import('../../test/service.ts')
  for (const alg of ['RS256', 'ES256', 'EdDSA']) {
    const { privateKey } = await generateKeyPair(alg, { extractable: true })
    const key = { ...(await exportJWK(privateKey)), kid: 'current', alg, key_ops: ['sign', 'verify'] }
    const service = await startTestService({ AUTH_JWT_KEYS: JSON.stringify({ keys: [key] }) })
    const { accessToken, userId, auth } = await service.signedIn()
    const { body, headers } = await service.get('/.well-known/jwks.json')
    expect(body.keys).toHaveLength(1)
    expect(Object.keys(body.keys[0])).not.toEqual(expect.arrayContaining(['d']))
    for (const secret of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']) expect(body.keys[0]).not.toHaveProperty(secret)
    expect(headers['cache-control']).toBe('public, max-age=600')
    const { payload } = await jwtVerify(accessToken, createLocalJWKSet(body), { currentDate: service.clock.now() })
    expect(payload.sub).toBe(userId)
    expect((await service.get('/user', auth)).status).toBe(200)
    const bySecret = await new SignJWT({ sub: userId, aud: 'authenticated' })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(new TextEncoder().encode(SECRET))
    expect((await service.get('/user', { authorization: `Bearer ${bySecret}` })).status).toBe(200)
    await service.close()
  }
})

test('a refreshed session speaks for the same user', async ({ service }) => {
  const { refreshToken, userId } = await service.signedIn()
  const { body } = await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })
  const { auth } = toSignedIn(body)
  expect((await service.get('/user', auth)).body.id).toBe(userId)
  expect(body.user.identities).toHaveLength(1)
})
