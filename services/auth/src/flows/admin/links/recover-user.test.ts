import { describe, expect } from 'vitest'
import { asAdmin, freshEmail, freshPhone } from '../../../../test/admin.ts'
import { fragmentOf, linkPath, type TestService, test } from '../../../../test/service.ts'

/** A user whom an admin has made, and the request for a mail to them. */
async function confirmedUser(service: TestService, email = freshEmail()) {
  const admin = await asAdmin(service)
  const { id } = await admin.create({ email, email_confirm: true })
  const path = `/admin/users/${id}`
  return { admin, id, email, path, recover: (query = '') => admin.post(`${path}/recover${query}`) }
}
type Confirmed = Awaited<ReturnType<typeof confirmedUser>>

test('an admin sends a user the mail of a forgotten password', async ({ service }) => {
  const { email, recover } = await confirmedUser(service)
  expect((await recover('?redirect_to=https://site.example/new-password')).status).toBe(204)
  const link = linkPath((await service.mailbox.waitFor(email)).text)
  expect(new URLSearchParams(link).get('redirect_to')).toBe('https://site.example/new-password')
  expect(fragmentOf(await service.get(link))).toMatchObject({ type: 'recovery' })
})

test('a second mail is sent without a gap, and ends the link of the first', async ({ service }) => {
  const { email, recover } = await confirmedUser(service)
  expect((await recover()).status).toBe(204)
  const first = await service.mailbox.waitFor(email)
  expect((await recover()).status).toBe(204)
  const second = await service.mailbox.waitFor(email, { after: first })
  expect(fragmentOf(await service.get(linkPath(first.text)))).toMatchObject({ error_code: 'otp_expired' })
  expect(fragmentOf(await service.get(linkPath(second.text)))).toMatchObject({ type: 'recovery' })
})

describe('no mail is sent, and the admin learns why, where', () => {
  type Change = (user: Confirmed) => Promise<unknown>
  const softDeleted: Change = ({ admin, path }) => admin.delete(path, { should_soft_delete: true })
  const banned: Change = ({ admin, path }) => admin.put(path, { ban_duration: '24h' })

  test.for<[string, Change, string, string]>([
    ['the user is deleted', softDeleted, 'validation_failed', 'The user is deleted'],
    ['the user is banned', banned, 'user_banned', 'This user is banned'],
    [
      ...(['the address has a fixed code', async () => {}, 'email_address_not_authorized'] as const),
      'The address has a fixed code (AUTH_MAILER_TEST_OTP), so no mail is sent to it',
    ],
  ])('%s', async ([, change, code, msg], { service }) => {
    const email = freshEmail()
    const at = await service.with({ AUTH_MAILER_TEST_OTP: code.startsWith('email') ? `${email}:482913` : '' })
    const user = await confirmedUser(at, email)
    await change(user)
    expect(await user.recover()).toMatchObject({ status: 422, body: { error_code: code, msg } })
    const { rows } = await at.deps.pool.query(
      `select recovery_sent_at, (select count(*)::int from one_time_tokens where user_id = users.id) as tokens,
        (select count(*)::int from messages where user_id = users.id) as messages from users where id = $1`,
      [user.id],
    )
    expect(rows).toEqual([{ recovery_sent_at: null, tokens: 0, messages: 0 }])
    expect(await user.admin.audited('user_recovery_requested', user.id)).toEqual([])
    await at.close()
  })

  test('the user has no e-mail address', async ({ service }) => {
    const admin = await asAdmin(service)
    const { id } = await admin.create({ phone: freshPhone() })
    expect(await admin.post(`/admin/users/${id}/recover`)).toMatchObject({
      status: 422,
      body: { error_code: 'validation_failed', msg: 'The user has no e-mail address' },
    })
  })

  test('the mails of all users together are too many', async ({ service }) => {
    const at = await service.onAnotherDay({ AUTH_RATE_LIMIT_EMAIL_SENT: '1' })
    const { recover } = await confirmedUser(at)
    expect((await recover()).status).toBe(204)
    expect(await recover()).toMatchObject({ status: 429, body: { error_code: 'over_email_send_rate_limit' } })
    await at.close()
  })
})

test('the link to an unconfirmed account drops the data of its registration', async ({ service }) => {
  const email = 'registered@example.com'
  await service.post('/signup', { email, password: 'of a stranger', data: { full_name: 'Stranger' } })
  await service.settled()
  const { body } = await service.get(`/admin/users?filter=${email}`, service.admin)
  await service.post(`/admin/users/${body.users[0].id}/recover`, {}, service.admin)
  await service.settled()
  const mail = service.mailbox.messages({ to: email }).at(-1)
  await service.get(linkPath(mail?.text ?? ''))
  const { body: user } = await service.get(`/admin/users/${body.users[0].id}`, service.admin)
  expect([user.user_metadata.full_name, user.email_confirmed_at !== undefined]).toEqual([undefined, true])
})
