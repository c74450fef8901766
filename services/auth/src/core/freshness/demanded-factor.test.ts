import { describe, expect } from 'vitest'
import { enrollTotp, signInAgain, verifyTotp } from '../../../test/second-factors.ts'
import { type TestService, test, toSignedIn } from '../../../test/service.ts'

const INSUFFICIENT = { body: { error_code: 'insufficient_aal' } }
let count = 0

/** Signs in a user of the role by password alone. */
async function signedInAs(service: TestService, role: string, app_metadata = {}) {
  const email = `demanded-${role}-${++count}@example.com`
  const { userId } = await service.signedIn(email)
  await service.put(`/admin/users/${userId}`, { role, app_metadata }, service.admin)
  return signInAgain(service, email)
}

const raised = async (service: TestService, user: Awaited<ReturnType<typeof signedInAs>>) =>
  toSignedIn((await verifyTotp(service, user, await enrollTotp(service, user))).body)

describe.for(['admins', 'everybody'])('with AUTH_MFA_REQUIRED_FOR=%s', (demanded) => {
  test('an admin without a second factor is refused at admin endpoints, and served after adding one', async ({
    service: shared,
  }) => {
    const service = await shared.with({ AUTH_MFA_REQUIRED_FOR: demanded })
    const admin = await signedInAs(service, 'service_role')
    expect(await service.get('/admin/users', admin.auth)).toMatchObject({ status: 403, ...INSUFFICIENT })
    expect((await service.put('/user', { password: 'another horse' }, admin.auth)).body.error_code).toBe(
      'insufficient_aal',
    )
    const { auth } = await raised(service, admin)
    expect((await service.get('/admin/users', auth)).status).toBe(200)
    await service.close()
  })

  test('an administrator by app_metadata alone needs a factor to change a sign-in method, and has no admin API', async ({
    service: shared,
  }) => {
    const service = await shared.with({ AUTH_MFA_REQUIRED_FOR: demanded })
    const user = await signedInAs(service, 'authenticated', { role: 'service_role' })
    const change = (auth: { authorization: string }) => service.put('/user', { password: 'another horse' }, auth)
    expect(await change(user.auth)).toMatchObject(INSUFFICIENT)
    const { auth } = await raised(service, user)
    expect((await change(auth)).status).toBe(200)
    expect(await service.get('/admin/users', auth)).toMatchObject({ status: 403, body: { error_code: 'not_admin' } })
    await service.close()
  })

  test('a token made from the secret, without a session, remains an admin token', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_MFA_REQUIRED_FOR: demanded })
    expect((await service.get('/admin/users', service.admin)).status).toBe(200)
    await service.close()
  })

  test('other users change how they sign in without a factor unless it is demanded of every user', async ({
    service: shared,
  }) => {
    const service = await shared.with({ AUTH_MFA_REQUIRED_FOR: demanded })
    const user = await signedInAs(service, 'authenticated')
    const change = (auth: { authorization: string }) => service.put('/user', { password: 'another horse' }, auth)
    expect((await service.put('/user', { data: { theme: 'dark' } }, user.auth)).status).toBe(200)
    expect((await change(user.auth)).status).toBe(demanded === 'everybody' ? 401 : 200)
    expect((await change((await raised(service, user)).auth)).status).not.toBe(401)
    await service.close()
  })
})

test('by default an admin needs no second factor', async ({ service }) => {
  const { auth } = await signedInAs(service, 'service_role')
  expect((await service.get('/admin/users', auth)).status).toBe(200)
})

test('an admin who has a second factor writes no app_metadata before it is proven', async ({ service }) => {
  const user = await signedInAs(service, 'admin')
  const { auth } = await raised(service, user)
  const { body } = await service.get('/user', auth)
  const low = await signInAgain(service, body.email)
  const change = { app_metadata: { tenant: 'mine' } }
  expect(await service.put('/user', change, low.auth)).toMatchObject({ status: 401, ...INSUFFICIENT })
  expect((await service.put('/user', change, auth)).status).toBe(200)
})
