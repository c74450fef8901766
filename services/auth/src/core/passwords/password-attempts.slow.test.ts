import { expect, test } from 'vitest'
import { startImpatient, startTestService } from '../../../test/service.ts'

test('a right password of a request that took too long is not a failed attempt', async () => {
  const patient = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  const service = await startImpatient(patient, { AUTH_RATE_LIMIT_FAILED_SIGN_INS: '1' })
  const email = 'slow@example.com'
  // An imported bcrypt hash of the password, at a cost that takes seconds to compare.
  const slow = '$2b$15$WUA1Gg9RpOIRnrgtU3DbVei7GhOE6z2OUrLPkn0PbDtQOWucLnGha'
  const made = await patient.post('/admin/users', { email, email_confirm: true, password_hash: slow }, patient.admin)
  expect(made.status).toBe(200)
  const signIn = () => service.post('/token?grant_type=password', { email, password: 'correct horse' })
  expect((await signIn()).status).toBe(504)
  const failed = async () =>
    (await patient.deps.pool.query(`select from rate_limits where key like 'password-%'`)).rowCount
  await expect.poll(failed).toBe(0)
  expect((await signIn()).status).toBe(504)
  await service.close()
  await patient.close()
})
