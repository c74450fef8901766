import { SignJWT } from 'jose'
import { describe, expect } from 'vitest'
import { codeIn, SECRET, startTestService, type TestService, test, toSignedIn } from '../../../test/service.ts'

const password = 'correct horse'
const sign = (claims: object) =>
  new SignJWT({ ...claims }).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(SECRET))
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const UNKNOWN = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'

describe('access', () => {
  test('no token, a malformed header and a foreign scheme are 401', async ({ service }) => {
    for (const authorization of [undefined, 'Bearer', 'Bearer  two', 'Basic abc', 'token']) {
      const answer = await service.get('/user', authorization ? { authorization } : {})
      expect(answer).toMatchObject({ status: 401, body: { error_code: 'no_authorization' } })
    }
  })

  test.for<[string, () => Promise<string>, number, string]>([
    ['not a token', async () => 'abc', 403, 'bad_jwt'],
    [
      'another secret',
      () => new SignJWT({ sub: UNKNOWN }).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.alloc(32)),
      403,
      'bad_jwt',
    ],
    [
      'alg none',
      async () =>
        `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(`{"sub":"${UNKNOWN}"}`).toString('base64url')}.`,
      403,
      'bad_jwt',
    ],
    ['expired', () => sign({ sub: UNKNOWN, exp: 1 }), 403, 'bad_jwt'],
    ['not valid yet', () => sign({ sub: UNKNOWN, nbf: Date.UTC(2100) / 1000 }), 403, 'bad_jwt'],
    ['no subject', () => sign({}), 403, 'bad_jwt'],
    ['a subject that is no UUID', () => sign({ sub: 'me' }), 400, 'bad_jwt'],
    ['a session that is no UUID', () => sign({ sub: UNKNOWN, session_id: 'x' }), 403, 'bad_jwt'],
    ['an unknown user', () => sign({ sub: UNKNOWN }), 403, 'user_not_found'],
  ])('%s is refused', async ([, token, status, code], { service }) => {
    expect(await service.get('/user', bearer(await token()))).toMatchObject({ status, body: { error_code: code } })
  })

  test('a token remembered as valid is refused once it expires', async ({ service }) => {
    const { auth } = await service.signedIn()
    expect((await service.get('/user', auth)).status).toBe(200)
    service.clock.advance({ seconds: 3601 })
    expect(await service.get('/user', auth)).toMatchObject({ status: 403, body: { error_code: 'bad_jwt' } })
  })

  test('a banned user is refused', async ({ service }) => {
    const { auth, userId } = await service.signedIn()
    const bannedUntil = new Date(service.clock.now().getTime() + 60_000)
    await service.deps.db.updateTable('users').set({ banned_until: bannedUntil }).where('id', '=', userId).execute()
    expect(await service.get('/user', auth)).toMatchObject({ status: 403, body: { error_code: 'user_banned' } })
  })

  test('a request for another audience than the token has is refused', async ({ service }) => {
    const { auth } = await service.signedIn()
    expect((await service.get('/user', { ...auth, 'x-jwt-aud': 'other' })).status).toBe(400)
  })
})

describe('PUT /user', () => {
  test('merges data at the top level; null removes a key', async ({ service }) => {
    const { auth } = await service.signedIn()
    await service.put('/user', { data: { a: 1, b: { c: 2 }, d: 3 } }, auth)
    const { body } = await service.put('/user', { data: { a: null, b: { e: 4 } } }, auth)
    expect(body.user_metadata).toMatchObject({ b: { e: 4 }, d: 3 })
    expect(body.user_metadata).not.toHaveProperty('a')
  })

  test('a new password signs out every other session, keeps this one and kills the old password', async ({
    service,
  }) => {
    const here = await service.signedIn('changes@example.com')
    const signIn = (typed: string) =>
      service.post('/token?grant_type=password', { email: 'changes@example.com', password: typed })
    const elsewhere = toSignedIn((await signIn(password)).body)
    expect((await service.put('/user', { password: 'a new horse' }, here.auth)).status).toBe(200)
    const refresh = (token: string) => service.post('/token?grant_type=refresh_token', { refresh_token: token })
    expect((await refresh(elsewhere.refreshToken)).status).toBe(400)
    expect((await refresh(here.refreshToken)).status).toBe(200)
    expect((await signIn(password)).status).toBe(400)
    expect((await signIn('a new horse')).status).toBe(200)
  })

  test('of two password changes at once, from two sessions, one wins and ends the other', async ({ service }) => {
    const mine = await service.signedIn('thief@example.com')
    const theirs = toSignedIn(
      (await service.post('/token?grant_type=password', { email: 'thief@example.com', password })).body,
    )
    const answers = await Promise.all([
      service.put('/user', { password: 'my new horse' }, mine.auth),
      service.put('/user', { password: 'their new horse' }, theirs.auth),
    ])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 403])
  })

  test('data that would make the access token too large for a header is refused, and nothing is kept', async ({
    service,
  }) => {
    const { auth } = await service.signedIn()
    for (let i = 0; i < 3; i++) await service.put('/user', { data: { [`part-${i}`]: 'x'.repeat(5_000) } }, auth)
    const { status, body } = await service.put('/user', { data: { more: 'x'.repeat(5_000) } }, auth)
    expect([status, body.error_code]).toEqual([422, 'validation_failed'])
    expect((await service.get('/user', auth)).body.user_metadata).not.toHaveProperty('more')
  })

  test.for<[string, object, number, string]>([
    ['the same password', { password }, 422, 'same_password'],
    ['an empty password', { password: '' }, 422, 'weak_password'],
    ['a short password', { password: '123' }, 422, 'weak_password'],
    ['app_metadata', { app_metadata: { role: 'admin' } }, 403, 'not_admin'],
    ['a list as data', { data: [] }, 400, 'bad_json'],
    ['a malformed address', { email: 'elsewhere' }, 400, 'validation_failed'],
    ['a malformed number', { phone: '0049' }, 400, 'validation_failed'],
    ['an unknown channel', { channel: 'pigeon' }, 400, 'validation_failed'],
    ['half a code challenge', { email: 'e@example.com', code_challenge: 'x'.repeat(43) }, 400, 'validation_failed'],
  ])('%s is refused', async ([, body, status, code], { service }) => {
    const { auth } = await service.signedIn()
    expect(await service.put('/user', body, auth)).toMatchObject({ status, body: { error_code: code } })
  })

  // Section 18: a nonce burned before later checks.
  test('where reauthentication is required, a password needs the right nonce', async () => {
    const service = await startTestService({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' })
    const { auth } = await service.signedUp('nonce@example.com')
    const change = (body: object) => service.put('/user', { password: 'a new horse', ...body }, auth)
    expect(await change({})).toMatchObject({ status: 400, body: { error_code: 'reauthentication_needed' } })
    const refused = { status: 422, body: { error_code: 'reauthentication_not_valid' } }
    expect(await change({ nonce: '123456' })).toMatchObject(refused)

    const asked = await service.get('/reauthenticate', auth)
    expect(asked).toMatchObject({ status: 200, body: { message_id: expect.any(String) } })
    const mail = await service.mailbox.waitFor('nonce@example.com', { after: { id: 1 } })
    const nonce = codeIn(mail.text)
    expect(await change({ nonce: nonce === '000000' ? '111111' : '000000' })).toMatchObject(refused)
    // A change that fails for another reason does not cost the nonce.
    expect(await change({ nonce, password: 'correct horse' })).toMatchObject({
      status: 422,
      body: { error_code: 'same_password' },
    })
    expect((await change({ nonce })).status).toBe(200)
    expect(await change({ nonce, password: 'one more horse' })).toMatchObject(refused)
    await service.close()
  })
})

describe('POST /logout', () => {
  async function twoSessions(service: TestService) {
    const here = await service.signedIn()
    const { body } = await service.get('/user', here.auth)
    const signIn = async () =>
      toSignedIn((await service.post('/token?grant_type=password', { email: body.email, password })).body)
    const alive = async (token: string) =>
      (await service.post('/token?grant_type=refresh_token', { refresh_token: token })).status === 200
    return { here, there: await signIn(), alive }
  }

  test.for<[string, boolean, boolean]>([
    ['', false, false],
    ['?scope=global', false, false],
    ['?scope=local', false, true],
    ['?scope=others', true, false],
  ])('%s ends what its scope says', async ([query, hereLives, thereLives], { service }) => {
    const { here, there, alive } = await twoSessions(service)
    const answer = await service.post(`/logout${query}`, {}, here.auth)
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect([await alive(here.refreshToken), await alive(there.refreshToken)]).toEqual([hereLives, thereLives])
  })

  test('a token that never had a session ends all of them', async ({ service }) => {
    const { here, alive } = await twoSessions(service)
    const byHand = await sign({ sub: here.userId, aud: 'authenticated' })
    expect((await service.post('/logout', {}, bearer(byHand))).status).toBe(204)
    expect(await alive(here.refreshToken)).toBe(false)
  })

  test('an unknown scope is refused and ends nothing', async ({ service }) => {
    const { here, alive } = await twoSessions(service)
    expect((await service.post('/logout?scope=all', {}, here.auth)).status).toBe(400)
    expect(await alive(here.refreshToken)).toBe(true)
  })

  test('afterwards the token still reads the account until it expires, but changes nothing', async ({ service }) => {
    const { auth } = await service.signedIn()
    await service.post('/logout', {}, auth)
    expect((await service.get('/user', auth)).status).toBe(200)
    const put = await service.put('/user', { data: { a: 1 } }, auth)
    expect(put).toMatchObject({ status: 403, body: { error_code: 'session_not_found' } })
    expect((await service.post('/logout', {}, auth)).status).toBe(403)
  })
})
