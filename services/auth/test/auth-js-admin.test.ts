import { GoTrueAdminApi } from '@supabase/auth-js'
import { expect } from 'vitest'
import { bearer, signed } from './admin.ts'
import { test } from './service.ts'

test('the admin part of @supabase/auth-js creates, lists, reads, changes, bans and deletes users', async ({
  service,
}) => {
  const url = await service.app.listen({ port: 0, host: '127.0.0.1' })
  const admin = new GoTrueAdminApi({ url, headers: bearer(await signed({ role: 'service_role' })) })
  const email = 'client@example.com'

  const created = await admin.createUser({ email, password: 'correct horse', email_confirm: true })
  expect(created).toMatchObject({ error: null, data: { user: { email } } })
  const id = created.data.user?.id as string
  const twice = await admin.createUser({ email })
  expect(twice.error).toMatchObject({ status: 422, code: 'email_exists' })
  await admin.createUser({ email: 'second@example.com' })

  expect(await admin.listUsers()).toMatchObject({ error: null, data: { total: 2, nextPage: null, lastPage: 1 } })
  const page = await admin.listUsers({ page: 1, perPage: 1 })
  expect(page).toMatchObject({ error: null, data: { users: [{}], total: 2, nextPage: 2, lastPage: 2 } })

  expect(await admin.getUserById(id)).toMatchObject({ error: null, data: { user: { id } } })
  const changed = await admin.updateUserById(id, { app_metadata: { plan: 'gold' }, ban_duration: '24h' })
  expect(changed).toMatchObject({
    error: null,
    data: { user: { app_metadata: { plan: 'gold' }, banned_until: expect.any(String) } },
  })

  expect((await admin.deleteUser(id, true)).error).toBeNull()
  expect((await admin.getUserById(id)).data.user).toMatchObject({ id, deleted_at: expect.any(String) })
  expect((await admin.deleteUser(id)).error).toBeNull()
  expect((await admin.getUserById(id)).error).toMatchObject({ status: 404, code: 'user_not_found' })
})
