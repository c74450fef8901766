import { expect } from 'vitest'
import { bearer, signed } from '../../../test/admin.ts'
import { type TestService, test } from '../../../test/service.ts'
import { NIL_UUID } from '../../db/uuid.ts'

const role = 'service_role'
const UNKNOWN = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const list = (service: TestService, token: string) => service.get('/admin/users', bearer(token))

/** A user with a session, and a token of it that has an admin's role. */
async function adminWithSession(service: TestService) {
  const { accessToken, auth, userId: sub } = await service.signedIn()
  const claims = JSON.parse(Buffer.from(accessToken.split('.')[1] as string, 'base64url').toString())
  await service.deps.db.updateTable('users').set({ role }).where('id', '=', sub).execute()
  return { auth, token: await signed({ sub, role, session_id: claims.session_id }) }
}

test('without a token the answer is 401', async ({ service }) => {
  expect(await service.get('/admin/users')).toMatchObject({ status: 401, body: { error_code: 'no_authorization' } })
})

test.for<[string, () => Promise<string>, number, string]>([
  ['no token at all', async () => 'abc', 403, 'bad_jwt'],
  ['an expired one', () => signed({ role, exp: 1 }), 403, 'bad_jwt'],
  ['a role that is not listed', () => signed({ role: 'authenticated' }), 403, 'not_admin'],
  ['no role', () => signed({}), 403, 'not_admin'],
  ['a role that is no text', () => signed({ role: [role] }), 403, 'not_admin'],
  ['a session that is no UUID', () => signed({ role, session_id: 'x' }), 403, 'bad_jwt'],
  ['a session without a user', () => signed({ role, session_id: UNKNOWN }), 403, 'bad_jwt'],
  ['a session nobody has', () => signed({ role, sub: UNKNOWN, session_id: UNKNOWN }), 403, 'session_not_found'],
])('%s is refused', async ([, token, status, code], { service }) => {
  expect(await list(service, await token())).toMatchObject({ status, body: { error_code: code } })
})

test('a user is no admin', async ({ service }) => {
  const { auth } = await service.signedIn()
  expect(await service.get('/admin/users', auth)).toMatchObject({ status: 403, body: { error_code: 'not_admin' } })
})

test.for<[string, object]>([
  ['without a session', { role }],
  ['with the second role of the default list', { role: 'supabase_admin' }],
  ['with the nil UUID as session', { role, session_id: NIL_UUID }],
  ['with an empty session', { role, session_id: '' }],
])('a token %s is accepted', async ([, claims], { service }) => {
  expect((await list(service, await signed(claims))).status).toBe(200)
})

test('an admin token of a session works while the session lives and not after it was revoked', async ({ service }) => {
  const { auth, token } = await adminWithSession(service)
  expect((await list(service, token)).status).toBe(200)
  await service.post('/logout', {}, auth)
  expect(await list(service, token)).toMatchObject({ status: 403, body: { error_code: 'session_not_found' } })
})

test("an admin token with another user's session is refused", async ({ service }) => {
  const { token } = await adminWithSession(service)
  const { session_id } = JSON.parse(Buffer.from(token.split('.')[1] as string, 'base64url').toString())
  const { userId: sub } = await service.signedIn()
  expect(await list(service, await signed({ sub, role, session_id }))).toMatchObject({
    status: 403,
    body: { error_code: 'session_not_found' },
  })
})

test('an admin token whose session is past its time box is refused, though the row is still there', async ({
  service: shared,
}) => {
  const service = await shared.with({ AUTH_SESSIONS_TIMEBOX: '10m' })
  const { token } = await adminWithSession(service)
  expect((await list(service, token)).status).toBe(200)
  service.clock.advance({ seconds: 601 })
  expect(await list(service, token)).toMatchObject({ status: 403, body: { error_code: 'session_expired' } })
  await service.close()
})

test('the roles that count are those of the setting', async ({ service: shared }) => {
  const service = await shared.with({ AUTH_JWT_ADMIN_ROLES: 'boss' })
  expect((await list(service, await signed({ role: 'boss' }))).status).toBe(200)
  expect(await list(service, await signed({ role }))).toMatchObject({ status: 403 })
  await service.close()
})

test('every admin path requires an admin before any other check', async ({ service }) => {
  const { auth } = await service.signedIn()
  const { body } = await service.get('/openapi.json')
  const paths = Object.entries<object>(body.paths).filter(([path]) => path.startsWith('/admin/'))
  expect(paths.length).toBeGreaterThan(4)
  for (const [path, methods] of paths) {
    for (const method of Object.keys(methods)) {
      const answer = await service.app.inject({ method: method as 'GET', url: path, payload: '{', headers: auth })
      expect([path, method, answer.statusCode]).toEqual([path, method, 403])
    }
  }
})
