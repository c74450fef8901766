import { describe, expect } from 'vitest'
import { linkPath, test } from '../../../test/service.ts'

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

  test('only the right password reveals that the account is banned or unconfirmed', async ({ service }) => {
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

  test('failed attempts at an account that waits for its proof are forgotten with the proof', async ({ service }) => {
    const email = 'impatient@example.com'
    await service.post('/signup', { email, password })
    const signIn = async () => (await service.post('/token?grant_type=password', { email, password })).status
    const statuses = []
    for (let i = 0; i < 6; i++) statuses.push(await signIn())
    expect(statuses).toEqual([400, 400, 400, 400, 400, 429])
    await service.get(linkPath((await service.mailbox.waitFor(email)).text))
    expect(await signIn()).toBe(200)
    // A later link proves nothing new: guesses at the password stay counted.
    for (let i = 0; i < 6; i++) await service.post('/token?grant_type=password', { email, password: 'wrong' })
    await service.post('/otp', { email })
    await service.settled()
    await service.get(linkPath(service.mailbox.messages({ to: email })[0]?.text ?? ''))
    expect(await signIn()).toBe(429)
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
    expect([status, body.weak_password.reasons]).toEqual([200, ['length', 'pwned']])
  })

  test('a hash made with weaker parameters is replaced', async ({ service }) => {
    const { userId } = await service.signedIn('rehash@example.com')
    const stronger = await service.with({ AUTH_PASSWORD_HASH_MEMORY_KIB: '128' })
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

test('tokens are signed with the configured key, published, and tokens of the secret still verify', async ({
  service: shared,
}) => {
  const { exportJWK, generateKeyPair, jwtVerify, createLocalJWKSet, SignJWT } = await import('jose')
  const { SECRET } = await import('../../../test/service.ts')
  for (const alg of ['RS256', 'ES256', 'EdDSA']) {
    const { privateKey } = await generateKeyPair(alg, { extractable: true })
    const key = { ...(await exportJWK(privateKey)), kid: 'current', alg, key_ops: ['sign', 'verify'] }
    const service = await shared.with({ AUTH_JWT_KEYS: JSON.stringify({ keys: [key] }) })
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
