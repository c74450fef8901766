import { expect, test } from 'vitest'
import { startTestService } from '../../test/service.ts'

test('a right password of a request that took too long is no miss', async () => {
  const service = await startTestService({
    AUTH_API_MAX_REQUEST_DURATION: '1',
    AUTH_RATE_LIMIT_FAILED_SIGN_INS: '1',
    AUTH_WORKERS_ENABLED: 'false',
  })
  const email = 'slow@example.com'
  // An imported bcrypt hash of the password, at a cost that takes seconds to compare.
  const slow = '$2b$15$WUA1Gg9RpOIRnrgtU3DbVei7GhOE6z2OUrLPkn0PbDtQOWucLnGha'
  const made = await service.post('/admin/users', { email, email_confirm: true, password_hash: slow }, service.admin)
  expect(made.status).toBe(200)
  const signIn = () => service.post('/token?grant_type=password', { email, password: 'correct horse' })
  expect((await signIn()).status).toBe(504)
  const misses = async () =>
    (await service.deps.pool.query(`select from rate_limits where key like 'password-%'`)).rowCount
  await expect.poll(misses, { timeout: 60_000 }).toBe(0)
  expect((await signIn()).status).toBe(504)
  await service.close()
}, 90_000)
