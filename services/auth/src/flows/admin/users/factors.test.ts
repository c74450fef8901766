import { describe, expect } from 'vitest'
import { asAdmin } from '../../../../test/admin.ts'
import { challenge, claimsOf, enrollTotp, refresh, withTotp } from '../../../../test/second-factors.ts'
import { test, toSignedIn } from '../../../../test/service.ts'

const UNKNOWN = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const refusal = (status: number, code: string) => ({ status, body: { code: status, error_code: code } })

test('an admin sees the factors of a user, proven or not, and none of their secrets', async ({ service }) => {
  const admin = await asAdmin(service)
  const user = await withTotp(service)
  const begun = await enrollTotp(service, user, 'begun')
  const { status, body, text } = await admin.get(`/admin/users/${user.userId}/factors`)
  expect(status).toBe(200)
  expect(body).toEqual([
    {
      ...{ id: user.totp.id, factor_type: 'totp', status: 'verified', last_challenged_at: expect.any(String) },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    },
    {
      ...{ id: begun.id, factor_type: 'totp', status: 'unverified', friendly_name: 'begun' },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    },
    {
      ...{ id: expect.any(String), factor_type: 'recovery_code', status: 'verified', friendly_name: 'Recovery codes' },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    },
  ])
  expect(text).not.toContain(user.totp.secret)
  const plain = await service.signedIn()
  expect((await admin.get(`/admin/users/${plain.userId}/factors`)).body).toEqual([])
  expect((await admin.get(`/admin/users/${user.userId}`)).body.factors).toHaveLength(3)
})

test('an admin removes a factor: sessions are aal1 again, recovery codes are deleted, the user gets a mail', async ({
  service: shared,
}) => {
  const service = await shared.with({ AUTH_MAILER_NOTIFICATIONS_MFA_FACTOR_UNENROLLED_ENABLED: 'true' })
  const admin = await asAdmin(service)
  const user = await withTotp(service)
  const answer = await admin.delete(`/admin/users/${user.userId}/factors/${user.totp.id}`)
  expect(answer).toMatchObject({ status: 200, body: { id: user.totp.id, status: 'verified' } })
  const { body } = await refresh(service, user.refreshToken)
  expect(body.user).not.toHaveProperty('factors')
  expect(claimsOf(toSignedIn(body))).toMatchObject({ aal: 'aal1', amr: [{ method: 'password' }] })
  expect((await service.get('/factors/recovery-codes', user.auth)).status).toBe(404)
  expect(await admin.audited('factor_deleted', user.userId)).toMatchObject([
    { actor_username: 'service_role', log_type: 'factor', traits: { factor_id: user.totp.id } },
  ])
  await service.mailbox.waitFor(user.email, { subject: 'A verification method was removed' })
  await service.close()
})

test('an admin removes the recovery codes by their id, and nothing else of them is changed', async ({ service }) => {
  const admin = await asAdmin(service)
  const user = await withTotp(service)
  const { body: codes } = await service.get('/factors/recovery-codes', user.auth)
  const url = `/admin/users/${user.userId}/factors/${codes.id}`
  expect(await admin.put(url, { friendly_name: 'renamed' })).toMatchObject(refusal(404, 'mfa_factor_not_found'))
  expect(await admin.delete(url)).toMatchObject({ status: 200, body: { id: codes.id, factor_type: 'recovery_code' } })
  expect(await admin.delete(url)).toMatchObject(refusal(404, 'mfa_factor_not_found'))
  expect((await service.get('/user', user.auth)).body.factors).toMatchObject([{ id: user.totp.id }])
  expect(await admin.audited('factor_deleted', user.userId)).toHaveLength(1)
})

test('an admin renames a factor, and changes the number of a phone alone', async ({ service: shared }) => {
  const service = await shared.with({ AUTH_MFA_PHONE_ENROLL_ENABLED: 'true' })
  const admin = await asAdmin(service)
  const user = await withTotp(service)
  const url = `/admin/users/${user.userId}/factors`
  const phone = await service.post(
    '/factors',
    { factor_type: 'phone', friendly_name: 'mobile', phone: '+4915112345670' },
    user.auth,
  )
  const asked = { friendly_name: 'renamed', phone: '+49 151 12345671' }
  const renamed = await admin.put(`${url}/${user.totp.id}`, asked)
  expect(renamed).toMatchObject({ status: 200, body: { friendly_name: 'renamed' } })
  expect(renamed.body).not.toHaveProperty('phone')
  expect(await admin.put(`${url}/${phone.body.id}`, { phone: asked.phone })).toMatchObject({
    status: 200,
    body: { friendly_name: 'mobile', phone: '+4915112345671' },
  })
  expect(await admin.put(`${url}/${phone.body.id}`, { friendly_name: 'renamed' })).toMatchObject(
    refusal(422, 'mfa_factor_name_conflict'),
  )
  for (const body of [{ phone: '0' }, { friendly_name: 'x'.repeat(256) }]) {
    expect(await admin.put(`${url}/${phone.body.id}`, body)).toMatchObject(refusal(400, 'validation_failed'))
  }
  expect((await service.get('/user', user.auth)).body.factors).toMatchObject([
    { friendly_name: 'renamed' },
    { phone: '+4915112345671' },
    { factor_type: 'recovery_code' },
  ])
  expect(await admin.audited('factor_updated', user.userId)).toHaveLength(2)
  await service.close()
})

test('a code that was sent to the previous number proves nothing once an admin has changed it', async ({
  service: shared,
}) => {
  const service = await shared.with({
    ...{ AUTH_MFA_PHONE_ENROLL_ENABLED: 'true', AUTH_MFA_PHONE_VERIFY_ENABLED: 'true' },
    AUTH_SMS_TEST_OTP: '4915112345670:424242',
  })
  const admin = await asAdmin(service)
  const user = await service.signedIn()
  const asked = { factor_type: 'phone', phone: '+4915112345670' }
  const { body: factor } = await service.post('/factors', asked, user.auth)
  const challenge_id = await challenge(service, user, factor.id)
  await admin.put(`/admin/users/${user.userId}/factors/${factor.id}`, { phone: '+4915112345671' })
  const answer = await service.post(`/factors/${factor.id}/verify`, { challenge_id, code: '424242' }, user.auth)
  expect(answer).toMatchObject(refusal(422, 'mfa_factor_not_found'))
  await service.close()
})

describe('is refused', () => {
  test('a factor id that is none, unknown, or of another user', async ({ service }) => {
    const admin = await asAdmin(service)
    const [user, other] = [await service.signedIn(), await withTotp(service)]
    const answers = (id: string) => {
      const url = `/admin/users/${user.userId}/factors/${id}`
      return Promise.all([admin.delete(url), admin.put(url, { friendly_name: 'x' })])
    }
    for (const answer of await answers('nonsense')) expect(answer).toMatchObject(refusal(404, 'validation_failed'))
    for (const id of [UNKNOWN, other.totp.id]) {
      for (const answer of await answers(id)) expect(answer).toMatchObject(refusal(404, 'mfa_factor_not_found'))
    }
  })

  test('a caller who is no admin', async ({ service }) => {
    const user = await withTotp(service)
    const url = `/admin/users/${user.userId}/factors`
    expect(await service.get(url, user.auth)).toMatchObject(refusal(403, 'not_admin'))
    expect(await service.delete(`${url}/${user.totp.id}`, user.auth)).toMatchObject(refusal(403, 'not_admin'))
    expect(await service.put(`${url}/${user.totp.id}`, {})).toMatchObject(refusal(401, 'no_authorization'))
  })
})
