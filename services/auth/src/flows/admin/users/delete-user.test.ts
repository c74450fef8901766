import { describe, expect } from 'vitest'
import { asAdmin, freshEmail, freshPhone } from '../../../../test/admin.ts'
import { linkPath, startTestService, type TestService, test, toSignedIn } from '../../../../test/service.ts'

async function setUp(service: TestService, user: object = {}) {
  const admin = await asAdmin(service)
  const created = await admin.create({
    email: freshEmail(),
    phone: freshPhone(),
    password: 'correct horse',
    email_confirm: true,
    user_metadata: { full_name: 'Ada' },
    app_metadata: { plan: 'gold' },
    ...user,
  })
  const path = `/admin/users/${created.id}`
  const signIn = () => service.post('/token?grant_type=password', { email: created.email, password: 'correct horse' })
  return { admin, user: created, path, signIn, get: () => admin.get(path) }
}

const SOFT = { should_soft_delete: true }

describe('DELETE /admin/users/{user_id}', () => {
  test.for<[string, object | undefined]>([
    ['no body', undefined],
    ['an empty object', {}],
    ['should_soft_delete false', { should_soft_delete: false }],
  ])('with %s deletes everything but the audit log', async ([, body], { service }) => {
    const { admin, user, path, signIn, get } = await setUp(service)
    const { refreshToken, auth } = toSignedIn((await signIn()).body)
    expect(await admin.delete(path, body)).toMatchObject({ status: 200, body: {} })
    expect(await get()).toMatchObject({ status: 404, body: { error_code: 'user_not_found' } })
    expect((await signIn()).status).toBe(400)
    expect((await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })).status).toBe(400)
    expect(await service.get('/user', auth)).toMatchObject({ status: 403, body: { error_code: 'user_not_found' } })
    const { rows } = await service.deps.pool.query(
      `select (select count(*) from identities where user_id = $1) as identities,
              (select count(*) from sessions where user_id = $1) as sessions,
              (select count(*) from one_time_tokens where user_id = $1) as tokens`,
      [user.id],
    )
    expect(rows).toEqual([{ identities: 0, sessions: 0, tokens: 0 }])
    expect((await admin.audited('user_deleted', user.id))[0]).toMatchObject({
      actor_username: 'service_role',
      log_type: 'team',
      traits: { user_id: user.id, user_email: user.email, user_phone: user.phone },
    })
    expect((await admin.delete(path)).status).toBe(404)
  })

  test.for<[string, string, string]>([
    ['{', 'bad_json', 'broken'],
    ['[]', 'bad_json', 'a list'],
    ['{"should_soft_delete":"yes"}', 'bad_json', 'a text'],
  ])('the body %s is refused, and the user stays', async ([payload, code], { service }) => {
    const { admin, path, get } = await setUp(service)
    const response = await service.app.inject({ method: 'DELETE', url: path, headers: admin.auth, payload })
    expect([response.statusCode, response.json().error_code]).toEqual([400, code])
    expect((await get()).status).toBe(200)
  })
})

describe('soft deletion', () => {
  test('keeps the id and nothing that identifies the user', async ({ service }) => {
    const { admin, user, path, signIn, get } = await setUp(service)
    const { refreshToken } = toSignedIn((await signIn()).body)
    expect(await admin.delete(path, SOFT)).toMatchObject({ status: 200, body: {} })
    const { status, body, text } = await get()
    expect(status).toBe(200)
    expect(body).toMatchObject({ id: user.id, deleted_at: expect.any(String), app_metadata: {}, user_metadata: {} })
    expect(body.identities).toHaveLength(2)
    for (const identity of body.identities) {
      expect(identity).toMatchObject({ identity_data: {} })
      expect(identity).not.toHaveProperty('email')
      expect(identity.id).not.toBe(user.id)
    }
    for (const told of [user.email, user.phone, 'Ada', 'gold']) expect(text).not.toContain(told)
    expect(body.email).toMatch(/^[a-z0-9_-]{43}$/)
    expect(body.phone).toMatch(/^[\w-]{15}$/)
    expect((await signIn()).status).toBe(400)
    expect((await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })).status).toBe(400)
    expect((await admin.get(`/admin/users?filter=${user.email}`)).body.users).toEqual([])
  })

  test('leaves no password, session or one-time token behind', async ({ service }) => {
    const admin = await asAdmin(service)
    const email = freshEmail()
    await service.post('/signup', { email, password: 'correct horse' })
    const mail = await service.mailbox.waitFor(email)
    const [{ id }] = (await admin.get(`/admin/users?filter=${email}`)).body.users
    await admin.delete(`/admin/users/${id}`, SOFT)
    const { rows } = await service.deps.pool.query(
      `select password_hash, (select count(*) from one_time_tokens where user_id = $1) as tokens from users where id = $1`,
      [id],
    )
    expect(rows).toEqual([{ password_hash: null, tokens: 0 }])
    expect((await service.get(linkPath(mail.text))).headers.location).toContain('otp_expired')
  })

  test('frees both addresses', async ({ service }) => {
    const { admin, user, path } = await setUp(service)
    await admin.delete(path, SOFT)
    const { status, body } = await admin.post('/admin/users', { email: user.email, phone: user.phone })
    expect(status).toBe(200)
    expect(body.id).not.toBe(user.id)
  })

  test('works for users without an address, however many', async () => {
    const service = await startTestService({ AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' })
    const admin = await asAdmin(service)
    for (let i = 0; i < 3; i++) {
      const { id } = (await service.post('/signup', {})).body.user
      expect((await admin.delete(`/admin/users/${id}`, SOFT)).status).toBe(200)
    }
    await service.close()
  })

  test('a second time changes nothing, and is audited again; a hard one then removes the rest', async ({ service }) => {
    const { admin, user, path, get } = await setUp(service)
    await admin.delete(path, SOFT)
    const first = (await get()).body
    service.clock.advance({ seconds: 60 })
    expect((await admin.delete(path, SOFT)).status).toBe(200)
    expect((await get()).body).toEqual(first)
    expect(await admin.audited('user_deleted', user.id)).toHaveLength(2)
    expect((await admin.delete(path)).status).toBe(200)
    expect((await get()).status).toBe(404)
  })

  test('of deletions at once, each is answered and the user ends up deleted', async ({ service }) => {
    const { admin, path, get } = await setUp(service)
    const soft = await Promise.all(Array.from({ length: 4 }, () => admin.delete(path, SOFT)))
    expect(soft.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    const hard = await Promise.all(Array.from({ length: 4 }, () => admin.delete(path)))
    expect(hard.map(({ status }) => status).toSorted()).toEqual([200, 404, 404, 404])
    expect((await get()).status).toBe(404)
  })
})
