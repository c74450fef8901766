// Addresses whose domain is written in its own script: one account under both spellings
// (adapters/mail/email-address.ts).
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { cleanAccount } from '../src/adapters/oauth/clean-account.ts'
import { codeIn, linkPath, startTestService, type TestService, toSignedIn } from './service.ts'

const password = 'correct horse'
let service: TestService
beforeAll(async () => {
  service = await startTestService({ AUTH_RATE_LIMIT_EMAIL_SENT: '1000', AUTH_MAILER_AUTHORIZED_ADDRESSES: LISTED })
})
afterAll(() => service.close())

let number = 0
/** Each test's own address, in three spellings. The mailbox of the tests shows the domain in its own script. */
function spelled() {
  const local = `own-${number++}`
  return { own: `${local}@Müller.Example`, ascii: `${local}@xn--mller-kva.example`, shown: `${local}@müller.example` }
}
const LISTED = Array.from({ length: 40 }, (_, index) => `own-${index}@müller.example`).join()

test('a sign-up in one spelling is confirmed and signed in to in both, and the mail names the own one', async () => {
  const { own, ascii, shown } = spelled()
  const { body } = await service.post('/signup', { email: own, password })
  expect(body).toMatchObject({ email: ascii })
  const mail = await service.mailbox.waitFor(shown)
  expect(mail.text).toContain(shown)
  expect(mail.text).not.toContain('xn--')
  await service.get(linkPath(mail.text))
  for (const email of [own, ascii, shown]) {
    const { status, body } = await service.post('/token?grant_type=password', { email, password })
    expect([email, status, body.user?.email]).toEqual([email, 200, ascii])
  }
})

test('a sign-up in the other spelling is one for the same account', async () => {
  const { own, ascii, shown } = spelled()
  await service.signedIn(ascii, password)
  await service.post('/signup', { email: own, password })
  await service.mailbox.waitFor(shown, { subject: 'already have an account' })
  expect(await service.deps.db.selectFrom('users').select('id').where('email', '=', ascii).execute()).toHaveLength(1)
})

describe('a request in either spelling reaches the same account:', () => {
  test.for<[string, object]>([
    ['/otp', {}],
    ['/magiclink', {}],
    ['/recover', {}],
  ])('POST %s, and its code', async ([path, more]) => {
    const { own, ascii, shown } = spelled()
    const { userId } = await service.signedIn(ascii)
    await service.post(path, { email: own, ...more })
    const token = codeIn((await service.mailbox.waitFor(shown)).text)
    const type = path === '/recover' ? 'recovery' : 'magiclink'
    expect((await service.post('/verify', { type, email: shown, token })).body.user.id).toBe(userId)
  })

  test('POST /resend', async () => {
    const { own, ascii, shown } = spelled()
    await service.post('/signup', { email: ascii, password })
    const after = await service.mailbox.waitFor(shown)
    service.clock.advance({ seconds: 901 })
    expect((await service.post('/resend', { type: 'signup', email: own })).status).toBe(200)
    await service.mailbox.waitFor(shown, { after })
  })

  test('PUT /user, to an address that is taken in the other spelling', async () => {
    const taken = spelled()
    await service.signedIn(taken.ascii)
    const { auth } = await service.signedIn()
    expect(await service.put('/user', { email: taken.own }, auth)).toMatchObject({
      status: 422,
      body: { error_code: 'email_exists' },
    })
  })

  test('POST /admin/users, POST /admin/generate_link and both filters', async () => {
    const { own, ascii } = spelled()
    const { body } = await service.post('/admin/users', { email: own, email_confirm: true, password }, service.admin)
    expect(body.email).toBe(ascii)
    expect((await service.post('/admin/users', { email: ascii }, service.admin)).body.error_code).toBe('email_exists')
    const link = await service.post('/admin/generate_link', { type: 'magiclink', email: own }, service.admin)
    expect(link.body.id).toBe(body.id)
    toSignedIn((await service.post('/token?grant_type=password', { email: own, password })).body)
    for (const email of [own, ascii]) {
      const filter = encodeURIComponent(email)
      const users = await service.get(`/admin/users?filter=${filter}`, service.admin)
      expect(users.body.users.map(({ id }: { id: string }) => id)).toEqual([body.id])
      const audited = await service.get(`/admin/audit?query=author:${filter}`, service.admin)
      expect(audited.body.map(({ payload }: { payload: { action: string } }) => payload.action)).toContain('login')
    }
  })
})

test('an address that a provider gives in its own script is stored in ASCII, and a misleading one is left out', () => {
  const emails = ['Ada@Müller.example', 'ada@ｇmail.com'].map((email) => ({ email, verified: true, primary: false }))
  expect(cleanAccount({ sub: '1', emails, claims: {} }).emails).toEqual([
    { email: 'ada@xn--mller-kva.example', verified: true, primary: false },
  ])
})

test('one that maps to another domain than it shows is refused', async () => {
  expect(await service.post('/signup', { email: 'own@ｇmail.com', password })).toMatchObject({ status: 400 })
  expect(await service.post('/signup', { email: 'müller@example.com', password })).toMatchObject({ status: 400 })
})
