import { describe, expect } from 'vitest'
import { asAdmin, freshEmail, freshPhone } from '../../../../test/admin.ts'
import { enrollTotp } from '../../../../test/second-factors.ts'
import { codeIn, linkPath, type TestService, test, toSignedIn } from '../../../../test/service.ts'

const UNKNOWN = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const signIn = (service: TestService, email: string, password: string) =>
  service.post('/token?grant_type=password', { email, password })
const refresh = (service: TestService, token: string) =>
  service.post('/token?grant_type=refresh_token', { refresh_token: token })

async function setUp(service: TestService, user: object = {}) {
  const admin = await asAdmin(service)
  const created = await admin.create({ email: freshEmail(), password: 'correct horse', email_confirm: true, ...user })
  const path = `/admin/users/${created.id}`
  return { admin, user: created, path, put: (body: object) => admin.put(path, body), get: () => admin.get(path) }
}

describe('GET, PUT and DELETE /admin/users/{user_id}', () => {
  test.for<[string, string, string]>([
    ['me', 'validation_failed', 'a malformed id'],
    [UNKNOWN, 'user_not_found', 'an unknown one'],
  ])('%s is 404 %s, even with a broken body', async ([id, code], { service }) => {
    const { auth } = await asAdmin(service)
    for (const method of ['GET', 'PUT', 'DELETE'] as const) {
      const payload = method === 'GET' ? {} : { payload: '{' }
      const response = await service.app.inject({ method, url: `/admin/users/${id}`, headers: auth, ...payload })
      expect([method, response.statusCode, response.json().error_code]).toEqual([method, 404, code])
    }
  })

  test('GET answers the user as the list does', async ({ service }) => {
    const { admin, user, get } = await setUp(service)
    const listed = (await admin.get(`/admin/users?filter=${user.email}`)).body.users[0]
    expect((await get()).body).toEqual(listed)
  })
})

describe('PUT /admin/users/{user_id}', () => {
  test('changes the role, and merges metadata at the top level; null removes a key', async ({ service }) => {
    const { put, get } = await setUp(service, { app_metadata: { a: 1, b: { c: 2 } }, user_metadata: { d: 3, e: 4 } })
    const { status, body } = await put({
      role: 'editor',
      app_metadata: { a: null, b: { f: 5 } },
      user_metadata: { d: null, g: 6 },
    })
    expect(status).toBe(200)
    expect(body.role).toBe('editor')
    expect(body.app_metadata).toEqual({ provider: 'email', providers: ['email'], b: { f: 5 } })
    expect(body.user_metadata).toEqual({ e: 4, g: 6, email_verified: true })
    expect((await get()).body).toEqual(body)
  })

  test('an empty body, and empty fields, change nothing', async ({ service }) => {
    const { put, user } = await setUp(service)
    for (const body of [{}, { email: null, phone: null, role: '', ban_duration: '' }]) {
      expect((await put(body)).body).toEqual({ ...user, updated_at: expect.any(String) })
    }
  })

  test('a new e-mail address counts at once, with its identity; unproven unless the admin says so', async ({
    service,
  }) => {
    const { put, user } = await setUp(service)
    const email = freshEmail()
    const { body } = await put({ email: email.toUpperCase() })
    expect(body).toMatchObject({ email, identities: [{ email, identity_data: { email, email_verified: false } }] })
    expect(body).not.toHaveProperty('new_email')
    expect((await signIn(service, email, 'correct horse')).status).toBe(200)
    expect((await signIn(service, user.email, 'correct horse')).status).toBe(400)
    const proven = await put({ email_confirm: true })
    expect(proven.body.identities[0].identity_data.email_verified).toBe(true)
    await service.settled()
    for (const to of [user.email, email]) expect(service.mailbox.messages({ to })).toEqual([])
  })

  // Section 18: providers left stale.
  test('a phone number for a user who had none makes an identity and a provider', async ({ service }) => {
    const { put, user } = await setUp(service)
    const phone = freshPhone()
    const { body } = await put({ phone: `+${phone}`, phone_confirm: true })
    expect(body).toMatchObject({
      phone,
      phone_confirmed_at: expect.any(String),
      app_metadata: { provider: 'email', providers: ['email', 'phone'] },
      identities: [
        { provider: 'email' },
        { provider: 'phone', identity_data: { sub: user.id, phone, phone_verified: true } },
      ],
    })
    const other = freshPhone()
    const moved = await put({ phone: other })
    expect(moved.body.identities[1].identity_data).toMatchObject({ phone: other, phone_verified: false })
    const proven = await put({ phone_confirm: true })
    expect(proven.body.identities[1].identity_data).toMatchObject({ phone: other, phone_verified: true })
  })

  test('the current address of the user keeps its verification', async ({ service }) => {
    const { put, user } = await setUp(service)
    expect((await put({ email: user.email })).body).toEqual({ ...user, updated_at: expect.any(String) })
  })

  test('email_confirm proves the address and ends the link that was waiting', async ({ service }) => {
    const { admin } = await setUp(service)
    const email = freshEmail()
    await service.post('/signup', { email, password: 'correct horse' })
    const mail = await service.mailbox.waitFor(email)
    const [{ id }] = (await admin.get(`/admin/users?filter=${email}`)).body.users
    const { body } = await admin.put(`/admin/users/${id}`, { email_confirm: true })
    expect(body).toMatchObject({ email_confirmed_at: expect.any(String), user_metadata: { email_verified: true } })
    expect((await signIn(service, email, 'correct horse')).status).toBe(200)
    expect((await service.get(linkPath(mail.text))).headers.location).toContain('otp_expired')
  })

  test.for(['email', 'phone'] as const)(
    '%s_confirm: false takes a confirmation back, and a proof gives it again',
    async (channel, { service: shared }) => {
      const service = await shared.with({ AUTH_SMS_TEST_OTP: '4915100000077:123456' })
      const admin = await asAdmin(service)
      const value = channel === 'email' ? freshEmail() : '4915100000077'
      const verified = `${channel}_verified`
      const made = await admin.create({ [channel]: value, [`${channel}_confirm`]: true, password: 'correct horse' })
      const signInBy = () => service.post('/token?grant_type=password', { [channel]: value, password: 'correct horse' })
      expect((await signInBy()).status).toBe(200)
      const { body } = await admin.put(`/admin/users/${made.id}`, { [`${channel}_confirm`]: false })
      expect(body).not.toHaveProperty(`${channel}_confirmed_at`)
      expect([body[channel], body.identities[0].identity_data[verified]]).toEqual([value, false])
      expect((await signInBy()).body.error_code).toBe(`${channel}_not_confirmed`)
      // No other user's account takes the address.
      expect((await service.post('/admin/users', { [channel]: value }, service.admin)).status).toBe(422)
      await service.post('/otp', { [channel]: value })
      const token = channel === 'email' ? codeIn((await service.mailbox.waitFor(value)).text) : '123456'
      const type = channel === 'email' ? 'email' : 'sms'
      expect((await service.post('/verify', { type, [channel]: value, token })).body.user.id).toBe(made.id)
      expect((await signInBy()).status).toBe(200)
      await service.close()
    },
  )

  test('a new address of a confirmed user is confirmed unless the admin says that it is not', async ({ service }) => {
    const { put } = await setUp(service)
    const [first, second] = [freshEmail(), freshEmail()]
    expect((await put({ email: first })).body).toMatchObject({ email: first, email_confirmed_at: expect.any(String) })
    const { body } = await put({ email: second, email_confirm: false })
    expect(body.email).toBe(second)
    expect(body).not.toHaveProperty('email_confirmed_at')
    expect(body.identities[0].identity_data).toMatchObject({ email: second, email_verified: false })
  })

  test('a new address ends the links sent to the old one', async ({ service }) => {
    const { admin } = await setUp(service)
    const email = freshEmail()
    await service.post('/signup', { email, password: 'correct horse' })
    const mail = await service.mailbox.waitFor(email)
    const [{ id }] = (await admin.get(`/admin/users?filter=${email}`)).body.users
    await admin.put(`/admin/users/${id}`, { email: freshEmail() })
    expect((await service.get(linkPath(mail.text))).headers.location).toContain('otp_expired')
  })

  test('an anonymous user becomes permanent only by an address that counts as proven', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' })
    const admin = await asAdmin(service)
    const signUp = async () => `/admin/users/${(await service.post('/signup', {})).body.user.id}`
    const unproven = await admin.put(await signUp(), { email: freshEmail() })
    expect(unproven.body).toMatchObject({ is_anonymous: true, app_metadata: { providers: ['email'] } })
    const proven = await admin.put(await signUp(), { email: freshEmail(), email_confirm: true })
    expect(proven.body).toMatchObject({ is_anonymous: false, app_metadata: { provider: 'email' } })
    const later = await signUp()
    await admin.put(later, { email: freshEmail() })
    expect((await admin.put(later, { email_confirm: true })).body).toMatchObject({ is_anonymous: false })
    const byPhone = await admin.put(await signUp(), { phone: freshPhone(), phone_confirm: true })
    expect(byPhone.body).toMatchObject({ is_anonymous: false, app_metadata: { provider: 'phone' } })
    const nothing = await admin.put(await signUp(), { email_confirm: true })
    expect(nothing.body).toMatchObject({ is_anonymous: true, user_metadata: {} })
    expect(nothing.body).not.toHaveProperty('email_confirmed_at')
    await service.close()
  })

  test('a new password ends every session and the old password, and needs no nonce', async ({ service }) => {
    const { put, user } = await setUp(service)
    const signedIn = toSignedIn((await signIn(service, user.email, 'correct horse')).body)
    expect((await put({ password: 'a new horse' })).status).toBe(200)
    expect((await refresh(service, signedIn.refreshToken)).status).toBe(400)
    expect((await signIn(service, user.email, 'correct horse')).status).toBe(400)
    expect((await signIn(service, user.email, 'a new horse')).status).toBe(200)
    expect((await put({ password: 'a new horse' })).status).toBe(200)
  })

  test('anything else leaves sessions alone', async ({ service }) => {
    const { put, user } = await setUp(service)
    const signedIn = toSignedIn((await signIn(service, user.email, 'correct horse')).body)
    await put({ email: freshEmail(), phone: freshPhone(), role: 'editor', user_metadata: { a: 1 } })
    expect((await refresh(service, signedIn.refreshToken)).status).toBe(200)
  })

  test('other fields can be changed even if the metadata exceeds its limit', async ({ service }) => {
    const admin = await asAdmin(service)
    const email = freshEmail()
    // A sign-up adds the service's own keys about the address to the largest permitted data.
    const generous = await service.with({ AUTH_SIGNUP_DATA_MAX_BYTES: String(16 * 1024) })
    await generous.post('/signup', { email, password: 'correct horse', data: { text: 'x'.repeat(16 * 1024 - 11) } })
    await generous.close()
    await service.get(linkPath((await service.mailbox.waitFor(email)).text))
    const { userId, auth } = toSignedIn((await signIn(service, email, 'correct horse')).body)
    const put = (body: object) => admin.put(`/admin/users/${userId}`, body)
    expect((await put({ user_metadata: { more: 1 } })).status).toBe(422)
    expect((await service.put('/user', { data: { more: 1 } }, auth)).status).toBe(422)
    expect((await service.put('/user', { password: 'another horse' }, auth)).status).toBe(200)
    expect((await admin.post('/admin/generate_link', { type: 'recovery', email })).status).toBe(200)
    expect((await put({ ban_duration: '24h' })).body).toHaveProperty('banned_until')
  })

  test('a ban stops sign-in, refresh and the account; none lifts it, and the session is still there', async ({
    service,
  }) => {
    const { put, user } = await setUp(service)
    const { auth, refreshToken } = toSignedIn((await signIn(service, user.email, 'correct horse')).body)
    const { body } = await put({ ban_duration: '1.5h' })
    expect(Date.parse(body.banned_until) - service.clock.now().getTime()).toBe(5_400_000)
    expect(await signIn(service, user.email, 'correct horse')).toMatchObject({ body: { error_code: 'user_banned' } })
    expect(await refresh(service, refreshToken)).toMatchObject({ status: 400, body: { error_code: 'user_banned' } })
    expect(await service.get('/user', auth)).toMatchObject({ status: 403, body: { error_code: 'user_banned' } })
    const lifted = await put({ ban_duration: 'none' })
    expect(lifted.body).not.toHaveProperty('banned_until')
    expect((await refresh(service, refreshToken)).status).toBe(200)
  })

  test('is audited with the admin as actor and the user as its object', async ({ service }) => {
    const { admin, put, user } = await setUp(service)
    const email = freshEmail()
    await put({ email })
    expect((await admin.audited('user_modified', user.id))[0]).toMatchObject({
      actor_username: 'service_role',
      log_type: 'user',
      traits: { user_id: user.id, user_email: email, user_phone: '' },
    })
  })

  test.for<[string, object, number, string]>([
    ['a malformed e-mail address', { email: 'nobody' }, 400, 'validation_failed'],
    ['a malformed phone number', { phone: '0151' }, 400, 'validation_failed'],
    ['a ban without a unit', { ban_duration: '24' }, 400, 'validation_failed'],
    ['an empty password', { password: '' }, 422, 'weak_password'],
    ['a weak password', { password: '123' }, 422, 'weak_password'],
    ['a password past 1,024 bytes', { password: 'x'.repeat(1025) }, 400, 'validation_failed'],
    ['a role without end', { role: 'r'.repeat(256) }, 400, 'validation_failed'],
    ['metadata without end', { user_metadata: { a: 'x'.repeat(17_000) } }, 422, 'validation_failed'],
    ['a text as a confirmation', { email_confirm: 'yes' }, 400, 'bad_json'],
  ])('%s is refused, and nothing else of the request happens', async ([, body, status, code], { service }) => {
    const { put, get, user } = await setUp(service)
    expect(await put({ app_metadata: { mark: 1 }, ...body })).toMatchObject({ status, body: { error_code: code } })
    expect((await get()).body).toEqual(user)
  })

  test('id, aud and password_hash are ignored', async ({ service }) => {
    const { put, user } = await setUp(service)
    const { body } = await put({ id: UNKNOWN, aud: 'other', password_hash: 'x' })
    expect([body.id, body.aud]).toEqual([user.id, user.aud])
    expect((await signIn(service, user.email, 'correct horse')).status).toBe(200)
  })

  // contract/auth-core.md 18, BUG13.
  test('an address of another user is refused by code, not with 500', async ({ service }) => {
    const { admin, put, get, user } = await setUp(service)
    const other = await admin.create({ email: freshEmail(), phone: freshPhone() })
    expect(await put({ email: other.email })).toMatchObject({ status: 422, body: { error_code: 'email_exists' } })
    expect(await put({ phone: other.phone })).toMatchObject({ status: 422, body: { error_code: 'phone_exists' } })
    expect((await get()).body).toEqual(user)
  })

  test('an address of an account that never proved it is given to one for which the admin confirms it', async ({
    service,
  }) => {
    const { put } = await setUp(service)
    const email = freshEmail()
    await service.post('/signup', { email, password: 'the stranger knows' })
    expect(await put({ email })).toMatchObject({ status: 422, body: { error_code: 'email_exists' } })
    expect(await put({ email, email_confirm: true })).toMatchObject({ status: 200, body: { email } })
  })

  test.for<[string, () => object, string]>([
    ['e-mail address', () => ({ email: freshEmail() }), 'email_exists'],
    ['phone number', () => ({ phone: freshPhone() }), 'phone_exists'],
  ])('of users given one %s at once, one gets it and the others are told', async ([, make, code], { service }) => {
    const admin = await asAdmin(service)
    const users = await Promise.all(Array.from({ length: 6 }, () => admin.create({ email: freshEmail() })))
    const body = make()
    const answers = await Promise.all(users.map(({ id }) => admin.put(`/admin/users/${id}`, body)))
    const codes = answers.map((answer) => answer.body.error_code ?? 'changed').toSorted()
    expect(codes).toEqual(['changed', ...Array(5).fill(code)].toSorted())
  })

  test('merges of many admins at once lose no key', async ({ service }) => {
    const { put, get } = await setUp(service)
    await Promise.all(Array.from({ length: 8 }, (_, i) => put({ app_metadata: { [`key-${i}`]: i } })))
    expect(Object.keys((await get()).body.app_metadata)).toHaveLength(2 + 8)
  })

  test('of two admins who read one version, the second changes nothing and learns why', async ({ service }) => {
    const { admin, path, get } = await setUp(service)
    const version = String((await get()).headers.etag)
    expect(version).toBe(`"${(await get()).body.updated_at}"`)
    const change = (body: object, ifMatch: string) => service.put(path, body, { ...admin.auth, 'if-match': ifMatch })
    service.clock.advance({ seconds: 1 })
    const first = await change({ user_metadata: { note: 'first' } }, version)
    expect([first.status, first.headers.etag]).toEqual([200, `"${first.body.updated_at}"`])
    expect(await change({ user_metadata: { note: 'second' } }, version)).toMatchObject({
      status: 412,
      body: { error_code: 'precondition_failed' },
    })
    expect((await get()).body.user_metadata.note).toBe('first')
    for (const current of [`"other", ${first.headers.etag}`, '*']) {
      expect((await change({ user_metadata: { note: current } }, current)).status).toBe(200)
    }
    // A proxy that compresses an answer makes its tag a weak one (nginx: `gzip`).
    const { headers } = await get()
    expect((await change({ user_metadata: { note: 'weak' } }, `W/${headers.etag}`)).status).toBe(200)
  })

  test('of two admins who change one version at once, at two replicas, one changes it', async ({ service }) => {
    const { admin, path, get } = await setUp(service)
    const replica = await service.with({})
    const headers = { ...admin.auth, 'if-match': String((await get()).headers.etag) }
    service.clock.advance({ seconds: 1 })
    const changes = [service, replica].map((at, i) => at.put(path, { user_metadata: { note: i } }, headers))
    const answers = await Promise.all(changes)
    await replica.close()
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 412])
    expect((await get()).body.user_metadata.note).toBe(answers.findIndex(({ status }) => status === 200))
  })

  test('the version is that of the own fields: a factor has no part in it', async ({ service }) => {
    const { get, user } = await setUp(service)
    const signedIn = toSignedIn((await signIn(service, user.email, 'correct horse')).body)
    const { headers } = await get()
    service.clock.advance({ seconds: 1 })
    await enrollTotp(service, signedIn)
    const { body, headers: later } = await get()
    expect([body.factors.length, later.etag]).toEqual([1, headers.etag])
  })

  test('during a deletion either succeeds before it or answers 404, and the user is gone', async ({ service }) => {
    for (let round = 0; round < 5; round++) {
      const { admin, put, get, path } = await setUp(service)
      const [deleted, ...updates] = await Promise.all([
        admin.delete(path),
        ...Array.from({ length: 4 }, (_, i) => put({ user_metadata: { i }, email: freshEmail() })),
      ])
      expect(deleted.status).toBe(200)
      for (const { status, body } of updates) expect([200, 404]).toContain(body.error_code ? status : 200)
      expect((await get()).status).toBe(404)
    }
  })
})
