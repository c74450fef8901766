import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argon2i, hash } from 'argon2'
import { describe, expect } from 'vitest'
import { type Admin, asAdmin, freshEmail, freshPhone } from '../../../../test/admin.ts'
import { startTestService, type TestService, test } from '../../../../test/service.ts'

const ID = '7d9b1a52-6b7c-4b6e-9d0e-0b1c2d3e4f50'
const signIn = (service: TestService, email: string, password: string) =>
  service.post('/token?grant_type=password', { email, password })

describe('POST /admin/users', () => {
  // Section 18: email_verified of the identity.
  test('makes a user with identity, providers, role, metadata and the confirmations asked for', async ({ service }) => {
    const admin = await asAdmin(service)
    const email = freshEmail()
    const { status, body } = await admin.post('/admin/users', {
      email: email.toUpperCase(),
      password: 'pw',
      email_confirm: true,
      role: 'editor',
      user_metadata: { full_name: 'Ada', nothing: null },
      app_metadata: { plan: 'gold' },
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      aud: 'authenticated',
      role: 'editor',
      email,
      phone: '',
      email_confirmed_at: expect.any(String),
      confirmed_at: expect.any(String),
      app_metadata: { provider: 'email', providers: ['email'], plan: 'gold' },
      user_metadata: { full_name: 'Ada', email_verified: true },
      identities: [{ provider: 'email', id: body.id, identity_data: { sub: body.id, email, email_verified: true } }],
      is_anonymous: false,
    })
    expect(body.user_metadata).not.toHaveProperty('nothing')
    expect(body).not.toHaveProperty('phone_confirmed_at')
    expect((await signIn(service, email, 'pw')).status).toBe(200)
  })

  test('without confirmations the address is unproven and no message is sent', async ({ service }) => {
    const admin = await asAdmin(service)
    const user = await admin.create({ email: freshEmail(), password: 'correct horse' })
    expect(user).not.toHaveProperty('email_confirmed_at')
    expect(user.identities[0].identity_data.email_verified).toBe(false)
    expect(await signIn(service, user.email, 'correct horse')).toMatchObject({
      status: 400,
      body: { error_code: 'email_not_confirmed' },
    })
    await service.settled()
    expect(service.mailbox.messages({ to: user.email })).toEqual([])
  })

  test('with a phone number alone, digits are stored and returned', async ({ service }) => {
    const admin = await asAdmin(service)
    const user = await admin.create({ phone: '+49 151 2345', phone_confirm: true })
    expect(user).toMatchObject({
      email: '',
      phone: '491512345',
      phone_confirmed_at: expect.any(String),
      app_metadata: { provider: 'phone', providers: ['phone'] },
      identities: [{ provider: 'phone', identity_data: { sub: user.id, phone: '491512345', phone_verified: true } }],
    })
  })

  test('with both addresses the e-mail provider comes first, now and after a recount', async ({ service }) => {
    const admin = await asAdmin(service)
    const user = await admin.create({ email: freshEmail(), phone: freshPhone() })
    const providers = { provider: 'email', providers: ['email', 'phone'] }
    expect(user.app_metadata).toEqual(providers)
    await admin.put(`/admin/users/${user.id}`, { app_metadata: { providers: ['made up'] } })
    const { body } = await admin.get(`/admin/users/${user.id}`)
    expect(body.app_metadata).toEqual(providers)
    expect(body.identities.map(({ provider }: { provider: string }) => provider)).toEqual(['email', 'phone'])
  })

  test.for([{}, { password: '' }])('with %j there is no password to sign in with', async (body, { service }) => {
    const admin = await asAdmin(service)
    const { email } = await admin.create({ email: freshEmail(), email_confirm: true, ...body })
    for (const typed of ['', ' ', 'correct horse']) {
      const { status, body } = await signIn(service, email, typed)
      expect([status, body.error_code]).toEqual([400, 'invalid_credentials'])
    }
  })

  test('with a ban the user cannot sign in until it ends', async ({ service }) => {
    const admin = await asAdmin(service)
    const { email } = await admin.create({
      email: freshEmail(),
      password: 'pw',
      email_confirm: true,
      ban_duration: '1h',
    })
    expect(await signIn(service, email, 'pw')).toMatchObject({ status: 400, body: { error_code: 'user_banned' } })
    service.clock.advance({ seconds: 3601 })
    expect((await signIn(service, email, 'pw')).status).toBe(200)
  })

  test.for(['$argon2id$', '$argon2i$'])(
    'with a hash made elsewhere (%s) its password signs in',
    async (kind, { service }) => {
      const admin = await asAdmin(service)
      const options = {
        memoryCost: 256,
        timeCost: 3,
        parallelism: 1,
        ...(kind === '$argon2i$' ? { type: argon2i } : {}),
      }
      const password_hash = await hash('imported', options as object)
      expect(password_hash.startsWith(kind)).toBe(true)
      const { email } = await admin.create({ email: freshEmail(), password_hash, email_confirm: true })
      expect((await signIn(service, email, 'imported')).status).toBe(200)
      expect((await signIn(service, email, 'imported!')).status).toBe(400)
    },
  )

  test('works while sign-ups and every provider are switched off, and whatever the password rules say', async ({
    service: shared,
  }) => {
    const service = await shared.with({
      AUTH_DISABLE_SIGNUP: 'true',
      AUTH_EXTERNAL_EMAIL_ENABLED: 'false',
      AUTH_EXTERNAL_PHONE_ENABLED: 'false',
      AUTH_PASSWORD_MIN_LENGTH: '20',
    })
    const admin = await asAdmin(service)
    expect((await admin.post('/admin/users', { email: freshEmail(), phone: freshPhone(), password: 'x' })).status).toBe(
      200,
    )
    await service.close()
  })

  test('belongs to the audience of the body, of the header, or of the setting', async ({ service }) => {
    const admin = await asAdmin(service)
    const post = (body: object) =>
      service.post('/admin/users', { email: 'same@example.com', ...body }, { ...admin.auth, 'x-jwt-aud': 'header' })
    expect((await post({ aud: 'body' })).body.aud).toBe('body')
    expect((await post({ aud: '' })).body.aud).toBe('header')
    expect((await admin.create({ email: 'same@example.com' })).aud).toBe('authenticated')
  })

  test('is audited as the admin who made whom', async ({ service }) => {
    const admin = await asAdmin(service)
    const user = await admin.create({ email: freshEmail(), phone: freshPhone() })
    expect((await admin.audited('user_signedup', user.id))[0]).toEqual({
      actor_id: '00000000-0000-0000-0000-000000000000',
      actor_via_sso: false,
      actor_username: 'service_role',
      action: 'user_signedup',
      log_type: 'team',
      user_agent: expect.any(String),
      traits: { user_id: user.id, user_email: user.email, user_phone: user.phone, provider: 'email' },
    })
  })
})

test('the log names users by id, never by address', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'auth-admin-'))
  const file = join(folder, 'log')
  const service = await startTestService({ AUTH_LOG_LEVEL: 'debug', AUTH_LOG_FILE: file })
  const admin = await asAdmin(service)
  const { id } = await admin.create({ email: 'secret.person@example.com', phone: '4915199999' })
  await admin.put(`/admin/users/${id}`, { email: 'secret.other@example.com' })
  await admin.get('/admin/users?filter=secret.other')
  await admin.post('/invite', { email: 'secret.guest@example.com' })
  await admin.delete(`/admin/users/${id}`)
  await service.close()
  // The logger writes in its own time.
  await expect.poll(() => readFile(file, 'utf8')).toContain('user_deleted')
  const log = await readFile(file, 'utf8')
  expect(log).toContain('user_invited')
  expect(log).toContain(id)
  expect(log).not.toMatch(/secret|4915199999/)
  await rm(folder, { recursive: true })
})

test('POST /admin/users/{user_id} creates the user of that id, once', async ({ service }) => {
  const admin = await asAdmin(service)
  const path = `/admin/users/${ID.toUpperCase()}`
  expect((await admin.post(path, { email: freshEmail() })).body.id).toBe(ID)
  const again = await admin.post(path, { email: freshEmail() })
  expect(again).toMatchObject({ status: 422, body: { error_code: 'user_already_exists' } })
  expect(await admin.post('/admin/users', { email: freshEmail(), id: ID })).toMatchObject({ status: 422 })
})

const hashes = [
  'plain',
  '',
  '$2b$',
  '$argon2id$v=19$m=64,t=2,p=1$c2FsdA',
  '$argon2d$v=19$m=64,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNo',
]
const tooMuchWork = '$argon2id$v=19$m=4194304,t=2,p=1$c2FsdHNhbHQ$aGFzaGhhc2hoYXNoaGFzaA'

// contract/auth-core.md 18, BUG12: the hashes.
test.for<[string, object, number, string]>([
  ['no address', { password: 'x' }, 400, 'validation_failed'],
  ['empty addresses', { email: '', phone: '' }, 400, 'validation_failed'],
  ['a malformed e-mail address', { email: 'nobody' }, 400, 'validation_failed'],
  ['a malformed phone number', { phone: '+0123' }, 400, 'validation_failed'],
  ['a phone number with letters', { phone: '49151x' }, 400, 'validation_failed'],
  ['a phone number of sixteen digits', { phone: '1234567890123456' }, 400, 'validation_failed'],
  ['password and hash', { email: 'a@example.com', password: '', password_hash: 'x' }, 400, 'validation_failed'],
  ...[...hashes, tooMuchWork].map((password_hash): [string, object, number, string] => [
    `the hash ${password_hash}`,
    { email: 'a@example.com', password_hash },
    400,
    'validation_failed',
  ]),
  ['a password past 1,024 bytes', { email: 'a@example.com', password: 'ü'.repeat(513) }, 400, 'validation_failed'],
  ['an id that is no UUID', { email: 'a@example.com', id: 'me' }, 400, 'validation_failed'],
  ['an empty id', { email: 'a@example.com', id: '' }, 400, 'validation_failed'],
  ['the nil id', { email: 'a@example.com', id: '00000000-0000-0000-0000-000000000000' }, 400, 'validation_failed'],
  ['a ban without a unit', { email: 'a@example.com', ban_duration: '24' }, 400, 'validation_failed'],
  ['a role without end', { email: 'a@example.com', role: 'r'.repeat(256) }, 400, 'validation_failed'],
  [
    'metadata without end',
    { email: 'a@example.com', app_metadata: { a: 'x'.repeat(17_000) } },
    422,
    'validation_failed',
  ],
  ['a list as metadata', { email: 'a@example.com', user_metadata: [] }, 400, 'bad_json'],
  ['a number as address', { email: 7 }, 400, 'bad_json'],
])('%s is refused, and nobody is created', async ([, body, status, code], { service }) => {
  const admin = await asAdmin(service)
  expect(await admin.post('/admin/users', body)).toMatchObject({ status, body: { error_code: code } })
  expect((await admin.get('/admin/users?filter=a@example.com')).body.users).toEqual([])
})

test('path ids: malformed, nil, and another one in the body are refused', async ({ service }) => {
  const admin = await asAdmin(service)
  for (const [id, body] of [
    ['me', {}],
    ['00000000-0000-0000-0000-000000000000', {}],
    [ID, { id: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' }],
  ] as const) {
    const answer = await admin.post(`/admin/users/${id}`, { email: freshEmail(), ...body })
    expect(answer).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
  }
})

describe('an address that is taken', () => {
  const attempts: Record<string, (admin: Admin) => Promise<[object, string]>> = {
    'e-mail': async (admin) => [{ email: (await admin.create({ email: freshEmail() })).email }, 'email_exists'],
    phone: async (admin) => [{ phone: (await admin.create({ phone: freshPhone() })).phone }, 'phone_exists'],
  }
  test.for(Object.entries(attempts))('%s is refused', async ([, attempt], { service }) => {
    const admin = await asAdmin(service)
    const [body, code] = await attempt(admin)
    expect(await admin.post('/admin/users', body)).toMatchObject({ status: 422, body: { error_code: code } })
  })

  test('is not one that another user only has by a linked identity', async ({ service }) => {
    const admin = await asAdmin(service)
    const { id } = await admin.create({ email: freshEmail() })
    const linked = freshEmail()
    await service.deps.db
      .insertInto('identities')
      .values({
        id: service.deps.newId(),
        user_id: id,
        provider: 'google',
        provider_id: '1',
        identity_data: JSON.stringify({ email: linked, email_verified: true }),
        created_at: service.clock.now(),
        updated_at: service.clock.now(),
      })
      .execute()
    expect(await admin.post('/admin/users', { email: linked })).toMatchObject({ status: 200, body: { email: linked } })
  })

  test('by an account that never proved it is given to a user whose address the admin confirms, and to no other', async ({
    service,
  }) => {
    const admin = await asAdmin(service)
    const email = freshEmail()
    const { body: registrant } = await service.post('/signup', { email, password: 'the stranger knows' })
    expect(await admin.post('/admin/users', { email })).toMatchObject({
      status: 422,
      body: { error_code: 'email_exists' },
    })
    const made = await admin.post('/admin/users', { email, password: 'only the owner knows', email_confirm: true })
    expect(made).toMatchObject({ status: 200, body: { email } })
    expect((await signIn(service, email, 'only the owner knows')).body.user.id).toBe(made.body.id)
    expect((await admin.get(`/admin/users/${registrant.id}`)).body.error_code).toBe('user_not_found')
    const { body: entries } = await admin.get('/admin/audit?query=action:user_deleted')
    expect(entries.map(({ payload }: { payload: { traits: object } }) => payload.traits)).toContainEqual(
      expect.objectContaining({ user_id: registrant.id, user_email: email }),
    )
    expect(await admin.post('/admin/users', { email, email_confirm: true })).toMatchObject({ status: 422 })
  })

  test.for<[string, () => object, string]>([
    ['e-mail address', () => ({ email: freshEmail() }), 'email_exists'],
    ['phone number', () => ({ phone: freshPhone() }), 'phone_exists'],
  ])('of creations of one %s at once, one wins and the others are told', async ([, make, code], { service }) => {
    const admin = await asAdmin(service)
    const body = make()
    const answers = await Promise.all(Array.from({ length: 8 }, () => admin.post('/admin/users', body)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const refused = answers.filter(({ status }) => status !== 200)
    expect(refused.map(({ status, body }) => [status, body.error_code])).toEqual(Array(7).fill([422, code]))
  })

  test('of parallel creations of one id, one succeeds and the others get user_already_exists', async ({ service }) => {
    const admin = await asAdmin(service)
    const id = service.deps.newId()
    const emails = Array.from({ length: 8 }, freshEmail)
    const answers = await Promise.all(emails.map((email) => admin.post('/admin/users', { id, email })))
    expect(answers.map(({ body }) => body.error_code ?? 'created').toSorted()).toEqual([
      'created',
      ...Array(7).fill('user_already_exists'),
    ])
  })
})
