// Recipients of notifications, by change (contract/auth-platform.md 5.9).
import { perFile } from '@services/common/testing/per-file'
import { describe, expect } from 'vitest'
import { test as base, codeIn, startTestService, type TestService } from '../service.ts'

const ALL = ['PASSWORD_CHANGED', 'EMAIL_CHANGED', 'PHONE_CHANGED', 'IDENTITY_LINKED', 'IDENTITY_UNLINKED']
const PHONES = {
  AUTH_SMS_TEST_OTP: '4915100000001:111111,4915100000002:222222,4915100000003:333333',
  AUTH_RATE_LIMIT_EMAIL_SENT: '1000',
  AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false',
}

const test = base.extend<object & { telling: TestService; silent: TestService }>({
  telling: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures a fixture uses from it
    async ({}, use) => {
      const on = Object.fromEntries(ALL.map((kind) => [`AUTH_MAILER_NOTIFICATIONS_${kind}_ENABLED`, 'true']))
      const service = await startTestService({ ...PHONES, ...on })
      await use(service)
      await service.close()
    },
    { scope: 'file' },
  ],
  silent: perFile(() => startTestService(PHONES)),
})

/** The kinds of notifications a user got, oldest first; all are written with the change, sent or not. */
async function told(service: TestService, userId: string): Promise<string[]> {
  const { body } = await service.get(`/admin/messages?user_id=${userId}&per_page=1000`, service.admin)
  return body.messages
    .map(({ kind }: { kind: string }) => kind)
    .filter((kind: string) => kind.endsWith('_notification'))
    .toReversed()
}

async function changePhone(service: TestService, auth: Record<string, string>, phone: string, token: string) {
  service.clock.advance({ seconds: 61 })
  expect((await service.put('/user', { phone }, auth)).status).toBe(200)
  const proven = await service.post('/verify', { type: 'phone_change', phone, token })
  expect(proven).toMatchObject({ status: 200, body: { user: { phone } } })
}

async function changeEmail(service: TestService, auth: Record<string, string>, email: string) {
  expect((await service.put('/user', { email }, auth)).status).toBe(200)
  const { text } = await service.mailbox.waitFor(email)
  const proven = await service.post('/verify', { type: 'email_change', email, token: codeIn(text) })
  expect(proven).toMatchObject({ status: 200, body: { user: { email } } })
}

describe('a user is notified', () => {
  test('of a password they changed', async ({ telling }) => {
    const { auth, userId } = await telling.signedIn('tells-password@example.com')
    await telling.put('/user', { password: 'a new horse' }, auth)
    expect(await told(telling, userId)).toEqual(['password_changed_notification'])
    const [first] = telling.mailbox.messages({ to: 'tells-password@example.com' })
    const mail =
      first?.subject === 'Your password was changed'
        ? first
        : await telling.mailbox.waitFor('tells-password@example.com', first ? { after: first } : {})
    expect(mail.subject).toBe('Your password was changed')
    // Refused changes notify no user.
    await telling.put('/user', { password: 'a new horse' }, auth)
    expect(await told(telling, userId)).toHaveLength(1)
  })

  test('of a changed address, at the old one', async ({ telling }) => {
    const { auth, userId } = await telling.signedIn('tells-old@example.com')
    const [before] = telling.mailbox.messages({ to: 'tells-old@example.com' })
    await changeEmail(telling, auth, 'tells-new@example.com')
    expect(await told(telling, userId)).toEqual(['email_changed_notification'])
    const mail = await telling.mailbox.waitFor('tells-old@example.com', before ? { after: before } : {})
    expect(mail.subject).toBe('Your email address was changed')
    expect(mail.text).toContain('tells-new@example.com')
    expect(telling.mailbox.messages({ to: 'tells-new@example.com' })).toHaveLength(1)
  })

  test('of a first number as a new way to sign in, of another one as a changed number', async ({ telling }) => {
    const email = 'tells-number@example.com'
    const { auth, userId } = await telling.signedIn(email)
    await changePhone(telling, auth, '4915100000001', '111111')
    expect(await told(telling, userId)).toEqual(['identity_linked_notification'])
    const linked = await telling.mailbox.waitFor(email, { subject: 'A new sign-in method' })
    expect(linked.text).toContain('Signing in with a phone number has just been added to')
    await changePhone(telling, auth, '4915100000002', '222222')
    expect(await told(telling, userId)).toEqual(['identity_linked_notification', 'phone_changed_notification'])
    const changed = await telling.mailbox.waitFor(email, { subject: 'Your phone number' })
    expect(changed.text).toContain('from +4915100000001 to +4915100000002.')
  })

  test('in the language of the request, unless their own is known', async ({ telling }) => {
    const german = { 'accept-language': 'de-AT,en;q=0.5' }
    const email = 'tells-german@example.com'
    const { auth } = await telling.signedIn(email)
    expect((await telling.put('/user', { password: 'a new horse' }, { ...auth, ...german })).status).toBe(200)
    await telling.mailbox.waitFor(email, { subject: 'Dein Passwort wurde geändert' })
    expect((await telling.put('/user', { email: 'tells-deutsch@example.com' }, auth)).status).toBe(200)
    const { text } = await telling.mailbox.waitFor('tells-deutsch@example.com')
    const code = { type: 'email_change', email: 'tells-deutsch@example.com', token: codeIn(text) }
    expect((await telling.post('/verify', code, german)).status).toBe(200)
    await telling.mailbox.waitFor(email, { subject: 'Deine E-Mail-Adresse wurde geändert' })
  })
})

describe('no user is notified', () => {
  test('of changes by an admin', async ({ telling }) => {
    const { userId } = await telling.signedIn()
    const email = 'set-by-admin@example.com'
    const changes = {
      password: 'set by admin',
      email,
      email_confirm: true,
      phone: '4915100000003',
      phone_confirm: true,
    }
    expect((await telling.put(`/admin/users/${userId}`, changes, telling.admin)).status).toBe(200)
    expect(await told(telling, userId)).toEqual([])
  })

  test('of a change that was only asked for', async ({ telling }) => {
    const { auth, userId } = await telling.signedIn()
    await telling.put('/user', { email: 'only-asked@example.com' }, auth)
    await telling.put('/user', { data: { a: 1 } }, auth)
    expect(await told(telling, userId)).toEqual([])
  })

  test('without a mail address', async ({ telling }) => {
    const phone = '4915100000003'
    telling.clock.advance({ seconds: 61 })
    await telling.put(`/admin/users/${await holderOf(telling, phone)}`, { phone: '4915199999999' }, telling.admin)
    await telling.post('/signup', { phone, password: 'correct horse' })
    const { body } = await telling.post('/verify', { type: 'sms', phone, token: '333333' })
    const auth = { authorization: `Bearer ${body.access_token}` }
    expect((await telling.put('/user', { password: 'a new horse' }, auth)).status).toBe(200)
    expect(await told(telling, body.user.id)).toEqual([])
  })

  test('of all but a changed address while the settings are disabled, as they are by default', async ({ silent }) => {
    const { auth, userId } = await silent.signedIn()
    await silent.put('/user', { password: 'a new horse' }, auth)
    await changeEmail(silent, auth, 'silent-new@example.com')
    await changePhone(silent, auth, '4915100000001', '111111')
    await changePhone(silent, auth, '4915100000002', '222222')
    expect(await told(silent, userId)).toEqual(['email_changed_notification'])
  })
})

async function holderOf({ deps: { db } }: TestService, phone: string): Promise<string> {
  const { id } = await db.selectFrom('users').select('id').where('phone', '=', phone).executeTakeFirstOrThrow()
  return id
}
