import { expect } from 'vitest'
import { fragmentOf, linkPath, test } from '../../../../test/service.ts'

test('an admin sends a user the mail of a forgotten password, twice at once if need be', async ({ service }) => {
  const email = 'forgot@example.com'
  const { body: user } = await service.post('/admin/users', { email, email_confirm: true }, service.admin)
  const recover = () =>
    service.post(`/admin/users/${user.id}/recover?redirect_to=https://site.example/new-password`, {}, service.admin)
  expect((await recover()).status).toBe(204)
  const link = linkPath((await service.mailbox.waitFor(email)).text)
  expect(new URLSearchParams(link).get('redirect_to')).toBe('https://site.example/new-password')
  expect(fragmentOf(await service.get(link))).toMatchObject({ type: 'recovery' })
  expect((await recover()).status).toBe(204)
})

test('a user without an e-mail address gets none, and the admin learns why', async ({ service }) => {
  const { body: user } = await service.post('/admin/users', { phone: '491701234567' }, service.admin)
  expect(await service.post(`/admin/users/${user.id}/recover`, {}, service.admin)).toMatchObject({
    status: 422,
    body: { error_code: 'validation_failed', msg: 'The user has no e-mail address' },
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
