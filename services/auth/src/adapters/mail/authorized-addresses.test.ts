import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createDatabase, startTestService, type TestService } from '../../../test/service.ts'

const password = 'correct horse'
const list = { AUTH_EXTERNAL_EMAIL_AUTHORIZED_ADDRESSES: 'Listed@example.com, qa+only@example.com' }
const REFUSED = {
  status: 400,
  body: { code: 400, error_code: 'email_address_not_authorized', msg: 'This service sends no mail to this address' },
}

const createUser = async (service: TestService, email: string) => {
  const { status } = await service.post('/admin/users', { email, password, email_confirm: true }, service.admin)
  expect(status).toBe(200)
}
const signIn = async (service: TestService, email: string) => {
  const { body } = await service.post('/token?grant_type=password', { email, password })
  return { authorization: `Bearer ${body.access_token}` }
}
const messages = async (service: TestService) => (await service.deps.pool.query('select from messages')).rowCount

let service: TestService
beforeAll(async () => {
  service = await startTestService(list)
  return () => service.close()
})
beforeEach(async () => {
  await service.settled()
  await service.deps.pool.query('truncate users, messages cascade')
  service.mailbox.clear()
  // Past what spaces the messages to one address.
  service.clock.advance({ seconds: 3601 })
})

test.for<[string, object, boolean]>([
  ['/signup', { password }, false],
  ['/otp', {}, false],
  ['/otp', { create_user: false }, false],
  ['/magiclink', {}, false],
  ['/recover', {}, false],
  ['/resend', { type: 'signup' }, false],
  ['/resend', { type: 'email_change' }, false],
  ['/invite', {}, true],
])(
  'POST %s %o refuses an address that is not listed, known or not, and sends nothing',
  async ([url, body, byAdmin]) => {
    await createUser(service, 'known@example.com')
    for (const email of ['known@example.com', 'unknown@example.com', 'KNOWN+label@example.com']) {
      expect(await service.post(url, { ...body, email }, byAdmin ? service.admin : {})).toMatchObject(REFUSED)
    }
    expect(await messages(service)).toBe(0)
    expect(await service.deps.queue.depth('message-requests')).toBe(0)
    const email = 'listed@example.com'
    expect((await service.post(url, { ...body, email }, byAdmin ? service.admin : {})).status).toBe(200)
  },
)

test('case and label of an address do not matter, all else does', async () => {
  const answers: Record<string, number> = {
    'listed@example.com': 200,
    'LISTED@example.com': 200,
    'listed+label@example.com': 200,
    'listed+a+b@example.com': 200,
    'qa+only@example.com': 200,
    'qa+other@example.com': 400,
    'qa@example.com': 400,
    '+listed@example.com': 400,
    'listed@example.com.evil.example': 400,
    'listed@sub.example.com': 400,
    'notlisted@example.com': 400,
  }
  const answered: Record<string, number> = {}
  for (const email of Object.keys(answers)) {
    answered[email] = (await service.post('/otp', { email })).status
    service.clock.advance({ seconds: 61 })
  }
  expect(answered).toEqual(answers)
})

test('a listed address gets its mail', async () => {
  await service.post('/signup', { email: 'listed+new@example.com', password })
  expect((await service.mailbox.waitFor('listed+new@example.com')).text).toContain('/verify?')
})

describe('PUT /user', () => {
  test('refuses a new address that is not listed, taken or not, and keeps the old one', async () => {
    for (const name of ['listed', 'taken']) await createUser(service, `${name}@example.com`)
    const auth = await signIn(service, 'listed@example.com')
    for (const email of ['taken@example.com', 'free@example.com']) {
      expect(await service.put('/user', { email }, auth)).toMatchObject(REFUSED)
    }
    expect((await service.get('/user', auth)).body).not.toHaveProperty('new_email')
    expect(await messages(service)).toBe(0)
    expect((await service.put('/user', { email: 'listed+2@example.com' }, auth)).status).toBe(200)
  })

  test.for<[string, number]>([
    ['true', 400],
    ['false', 200],
  ])('where changes being secured is %s and only the new address is listed, answers %i', async ([secured, status]) => {
    const other = await service.with({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: secured })
    await createUser(service, 'unlisted@example.com')
    const auth = await signIn(service, 'unlisted@example.com')
    expect((await other.put('/user', { email: 'listed@example.com' }, auth)).status).toBe(status)
    await other.close()
  })
})

test('a nonce is not mailed to an address that is not listed', async () => {
  await createUser(service, 'unlisted@example.com')
  expect(await service.get('/reauthenticate', await signIn(service, 'unlisted@example.com'))).toMatchObject(REFUSED)
  expect(await messages(service)).toBe(0)
})

test('a change is made without its notification if the address is not listed', async () => {
  const other = await service.with({ AUTH_MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true' })
  for (const [email, sent] of [
    ['unlisted@example.com', 0],
    ['listed@example.com', 1],
  ] as const) {
    await createUser(service, email)
    const auth = await signIn(service, email)
    expect((await other.put('/user', { password: 'another horse' }, auth)).status).toBe(200)
    expect(await messages(service)).toBe(sent)
  }
  await other.close()
})

test('an admin makes links for any address, because none is sent', async () => {
  const order = { type: 'signup', email: 'unlisted@example.com', password }
  expect((await service.post('/admin/generate_link', order, service.admin)).status).toBe(200)
  expect(await messages(service)).toBe(0)
})

test('any address signs up where no mail is needed', async () => {
  const other = await service.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
  expect((await other.post('/signup', { email: 'unlisted@example.com', password })).status).toBe(200)
  await other.close()
})

test('a mail that was queued before there was a list does not leave', async () => {
  const database = await createDatabase()
  const shared = { AUTH_DATABASE_URL: database.url }
  const before = await startTestService({ ...shared, AUTH_WORKERS_ENABLED: 'false' })
  expect((await before.post('/signup', { email: 'queued@example.com', password })).status).toBe(200)
  const after = await startTestService({ ...shared, ...list })
  // Left to the worker of an instance that has the address on its list, should there be one.
  const queued = async () => (await after.get('/admin/messages?state=queued', after.admin)).body.messages
  await expect.poll(queued).toMatchObject([{ kind: 'confirmation', last_error: 'mail may not go to this address' }])
  expect(after.mailbox.messages()).toEqual([])
  await Promise.all([before.close(), after.close()])
  await database.drop()
})
