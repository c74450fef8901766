import { expect } from 'vitest'
import { enrollTotp, signInAgain, withTotp } from './second-factors.ts'
import { startTestService, test, toSignedIn } from './service.ts'
import { addPausedReceiver } from './upstreams/paused-receiver.ts'

test('DB_NAMESPACE prefixes every table, and everything works with it, housekeeping too', async () => {
  const service = await startTestService({
    AUTH_DB_NAMESPACE: 'acme',
    AUTH_MIGRATE_ON_START: 'true',
    AUTH_SESSIONS_TIMEBOX: '7d',
    AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
  })
  await addPausedReceiver(service)
  const { auth, refreshToken } = await service.signedIn('acme@example.com')
  expect((await service.put('/user', { data: { a: 1 }, password: 'a new horse' }, auth)).status).toBe(200)
  const refreshed = await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })
  expect(refreshed).toMatchObject({ status: 200, body: { user: { identities: [{ provider: 'email' }] } } })
  expect((await service.post('/logout', {}, toSignedIn(refreshed.body).auth)).status).toBe(204)
  const second = await withTotp(service)
  expect(second.recoveryCodes).toHaveLength(10)
  const lost = await signInAgain(service, second.email)
  const code = { code: second.recoveryCodes[0] }
  expect((await service.post('/factors/recovery-codes/verify', code, lost.auth)).status).toBe(200)
  await enrollTotp(service, second, 'never proven')
  service.clock.advance({ seconds: 86_401 })
  const { deleteExpired } = await import('../src/housekeeping.ts')
  await deleteExpired(service.deps, service.deps.log)
  const { body } = await service.get(`/admin/users/${second.userId}`, service.admin)
  expect(body.factors).toMatchObject([{ status: 'verified' }, { factor_type: 'recovery_code' }])
  const { rows } = await service.deps.pool.query(`
    select (select count(*) from acme_users) as ours, (select count(*) from users) as others,
           (select count(*) from acme_audit_log_entries) as audited,
           (select count(*) from acme_webhook_deliveries) as events`)
  expect(rows).toEqual([{ ours: 2, others: 0, audited: expect.any(Number), events: expect.any(Number) }])
  expect(rows[0].events).toBeGreaterThan(10)
  expect(rows[0].audited).toBeGreaterThan(5)
  await service.close()
})

test('housekeeping deletes what expired more than two days ago and nothing else', async () => {
  const service = await startTestService({ AUTH_SESSIONS_TIMEBOX: '1h' })
  await service.signedIn('keeper@example.com')
  await service.post('/signup', { email: 'pending@example.com', password: 'correct horse' })
  // A link lives from when its mail leaves.
  await service.settled()
  const { deleteExpired } = await import('../src/housekeeping.ts')
  const count = async () => {
    const { rows } = await service.deps.pool.query(`
      select (select count(*) from one_time_tokens) as tokens, (select count(*) from send_gaps) as gaps,
             (select count(*) from sessions) as sessions, (select count(*) from users) as users`)
    return rows[0]
  }
  const before = await count()
  await deleteExpired(service.deps, service.deps.log)
  expect(await count()).toEqual(before)
  service.clock.advance({ seconds: 2 * 86_400 + 3_601 })
  await deleteExpired(service.deps, service.deps.log)
  expect(await count()).toEqual({ tokens: 0, gaps: 0, sessions: 0, users: 2 })
  await service.close()
})
