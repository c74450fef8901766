import { expect } from 'vitest'
import { codeIn, fragmentOf, linkPath, test } from '../../../test/service.ts'

test('a known address gets a link that signs in, so that a new password can be set', async ({ service }) => {
  const { userId } = await service.signedUp('forgot@example.com')
  service.mailbox.clear()
  expect(await service.post('/recover', { email: 'forgot@example.com' })).toMatchObject({ status: 200, body: {} })
  const mail = await service.mailbox.waitFor('forgot@example.com')
  const fragment = fragmentOf(await service.get(linkPath(mail.text)))
  expect(fragment).toMatchObject({ type: 'recovery' })
  const auth = { authorization: `Bearer ${fragment.access_token}` }
  expect(await service.put('/user', { password: 'remembered now' }, auth)).toMatchObject({
    status: 200,
    body: { id: userId },
  })
  const signIn = { email: 'forgot@example.com', password: 'remembered now' }
  expect((await service.post('/token?grant_type=password', signIn)).status).toBe(200)
})

test('an unknown address gets the same answer and no message', async ({ service }) => {
  const known = await service.signedIn('known@example.com')
  expect(known.userId).toBeTruthy()
  const answers = [
    await service.post('/recover', { email: 'known@example.com' }),
    await service.post('/recover', { email: 'stranger@example.com' }),
  ]
  expect(answers.map(({ status, text }) => [status, text])).toEqual([
    [200, '{}'],
    [200, '{}'],
  ])
  await expect.poll(() => service.deps.queue.depth('message-requests')).toBe(0)
  expect(service.mailbox.messages({ to: 'stranger@example.com' })).toEqual([])
})

test('at 59 seconds it is refused and nothing changes; at 20 minutes there is a new mail', async ({ service }) => {
  await service.signedIn('twice@example.com')
  service.mailbox.clear()
  await service.post('/recover', { email: 'twice@example.com' })
  const first = await service.mailbox.waitFor('twice@example.com')
  const sentAt = async () =>
    (
      await service.deps.db
        .selectFrom('users')
        .select('recovery_sent_at')
        .where('email', '=', 'twice@example.com')
        .executeTakeFirst()
    )?.recovery_sent_at
  const before = await sentAt()
  service.clock.advance({ seconds: 59 })
  expect((await service.post('/recover', { email: 'twice@example.com' })).status).toBe(429)
  expect(await sentAt()).toEqual(before)
  service.clock.advance({ seconds: 1200 })
  expect((await service.post('/recover', { email: 'twice@example.com' })).status).toBe(200)
  const second = await service.mailbox.waitFor('twice@example.com', { after: first })
  // The newer one replaces the older.
  expect(fragmentOf(await service.get(linkPath(first.text)))).toMatchObject({ error_code: 'otp_expired' })
  expect(fragmentOf(await service.get(linkPath(second.text)))).toMatchObject({ type: 'recovery' })
})

test('on an account never confirmed it confirms, and the earlier password is gone', async ({ service }) => {
  const email = 'unconfirmed@example.com'
  await service.post('/signup', { email, password: 'the stranger knows' })
  const first = await service.mailbox.waitFor(email)
  await service.post('/recover', { email })
  const mail = await service.mailbox.waitFor(email, { after: first })
  const { body } = await service.post('/verify', { type: 'recovery', email, token: codeIn(mail.text) })
  expect(body).toMatchObject({ type: 'recovery', user: { user_metadata: { email_verified: true } } })
  const stranger = await service.post('/token?grant_type=password', { email, password: 'the stranger knows' })
  expect(stranger.body.error_code).toBe('invalid_credentials')
})

test.for<[string, object, number, string]>([
  ['no address', {}, 400, 'validation_failed'],
  ['a malformed address', { email: 'nobody' }, 400, 'validation_failed'],
  ['half a code challenge', { email: 'a@example.com', code_challenge: 'x'.repeat(43) }, 400, 'validation_failed'],
])('%s is refused', async ([, body, status, code], { service }) => {
  expect(await service.post('/recover', body)).toMatchObject({ status, body: { error_code: code } })
})
