import { expect } from 'vitest'
import { asAdmin } from './admin.ts'
import { startTestService, test } from './service.ts'

test('everything admins do works with a DB_NAMESPACE, on its tables', async () => {
  const service = await startTestService({ AUTH_DB_NAMESPACE: 'acme', AUTH_MIGRATE_ON_START: 'true' })
  const admin = await asAdmin(service)
  const { id } = await admin.create({ email: 'a@example.com', password: 'pw', email_confirm: true })
  const path = `/admin/users/${id}`
  await service.post('/token?grant_type=password', { email: 'a@example.com', password: 'pw' })
  for (const answer of [
    await admin.put(path, { email: 'b@example.com', phone: '49151', app_metadata: { a: 1 } }),
    await admin.put(path, { email_confirm: true, phone_confirm: true }),
    await admin.get('/admin/users?filter=b@'),
    await admin.get(
      `/admin/users?cursor=${Buffer.from(JSON.stringify({ created_at: '2020-01-01T00:00:00Z', id })).toString('base64url')}`,
    ),
    await admin.get(`${path}/sessions`),
  ]) {
    expect(answer.status).toBe(200)
  }
  expect(await admin.audited('user_modified', id)).toHaveLength(2)
  expect((await admin.delete(`${path}/sessions`)).status).toBe(204)
  expect((await admin.delete(path, { should_soft_delete: true })).status).toBe(200)
  expect((await admin.delete(path)).status).toBe(200)
  const { rows } = await service.deps.pool.query('select count(*) as entries from audit_log_entries')
  expect(rows).toEqual([{ entries: 0 }])
  await service.close()
})
