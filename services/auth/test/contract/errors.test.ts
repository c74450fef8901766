// Every endpoint refuses in both forms of an error body, with the code as a header (contract/auth-core.md 2.1).
import { expect } from 'vitest'
import { startImpatient, startTestService, test } from '../service.ts'

const USER = 'user'
const ADMIN = 'admin'
type Who = 'nobody' | typeof USER | typeof ADMIN
const NOBODY = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'

test.for<[string, string, Who, object | undefined, number, string]>([
  ['POST', '/signup', 'nobody', { email: 'a@b.c' }, 400, 'validation_failed'],
  ['POST', '/signup', 'nobody', { email: 'a@b.c', password: 'x' }, 422, 'weak_password'],
  ['POST', '/signup', 'nobody', {}, 422, 'anonymous_provider_disabled'],
  ['POST', '/signup', 'nobody', { email: 1 }, 400, 'bad_json'],
  ['POST', '/token?grant_type=password', 'nobody', { email: 'a@b.c' }, 400, 'invalid_credentials'],
  ['POST', '/token?grant_type=refresh_token', 'nobody', {}, 400, 'validation_failed'],
  ['POST', '/token?grant_type=refresh_token', 'nobody', { refresh_token: 'x' }, 400, 'refresh_token_not_found'],
  ['POST', '/token?grant_type=web3', 'nobody', { chain: 'solana' }, 422, 'web3_provider_disabled'],
  ['POST', '/sso', 'nobody', { domain: 1 }, 404, 'saml_provider_disabled'],
  ['GET', '/sso/saml/metadata', 'nobody', undefined, 404, 'saml_provider_disabled'],
  ['POST', '/sso/saml/acs', 'nobody', undefined, 404, 'saml_provider_disabled'],
  ['GET', '/sso/saml/slo', 'nobody', undefined, 404, 'saml_provider_disabled'],
  ['DELETE', '/sso', 'nobody', undefined, 404, 'saml_provider_disabled'],
  ['GET', '/admin/sso/providers', ADMIN, undefined, 404, 'saml_provider_disabled'],
  ['POST', '/passkeys/authentication/options', 'nobody', { x: 1 }, 404, 'passkey_disabled'],
  ['GET', '/passkeys', 'nobody', undefined, 404, 'passkey_disabled'],
  ['GET', `/admin/users/${NOBODY}/passkeys`, 'nobody', undefined, 401, 'no_authorization'],
  ['GET', `/admin/users/${NOBODY}/passkeys`, ADMIN, undefined, 404, 'user_not_found'],
  ['GET', '/oauth/authorize?client_id=x', 'nobody', undefined, 404, 'feature_disabled'],
  ['POST', '/oauth/token', 'nobody', { x: 1 }, 404, 'feature_disabled'],
  ['GET', '/.well-known/oauth-authorization-server', 'nobody', undefined, 404, 'feature_disabled'],
  ['GET', '/user/oauth/grants', 'nobody', undefined, 401, 'no_authorization'],
  ['GET', '/user/oauth/grants', USER, undefined, 404, 'feature_disabled'],
  ['GET', '/admin/oauth/clients', 'nobody', undefined, 401, 'no_authorization'],
  ['GET', '/admin/oauth/clients', USER, undefined, 403, 'not_admin'],
  ['PUT', `/admin/oauth/clients/${NOBODY}`, ADMIN, { x: 1 }, 404, 'feature_disabled'],
  ['GET', '/admin/custom-providers', 'nobody', undefined, 401, 'no_authorization'],
  ['GET', '/admin/custom-providers/custom:x', USER, undefined, 403, 'not_admin'],
  ['GET', '/admin/custom-providers/custom:x', ADMIN, undefined, 404, 'custom_provider_not_found'],
  ['GET', '/scim/v2/Users', 'nobody', undefined, 404, 'feature_disabled'],
  ['POST', '/token?grant_type=pkce', 'nobody', { auth_code: 'x', code_verifier: 'x' }, 404, 'flow_state_not_found'],
  ['POST', '/otp', 'nobody', {}, 400, 'validation_failed'],
  ['POST', '/magiclink', 'nobody', {}, 422, 'validation_failed'],
  ['POST', '/recover', 'nobody', {}, 400, 'validation_failed'],
  ['POST', '/resend', 'nobody', {}, 400, 'validation_failed'],
  ['POST', '/verify', 'nobody', { type: 'signup', token_hash: 'x' }, 403, 'otp_expired'],
  ['GET', '/verify', 'nobody', undefined, 400, 'validation_failed'],
  ['GET', '/user', 'nobody', undefined, 401, 'no_authorization'],
  ['PUT', '/user', USER, { password: 'x' }, 422, 'weak_password'],
  ['PUT', '/user', USER, { app_metadata: {} }, 403, 'not_admin'],
  ['GET', '/reauthenticate', 'nobody', undefined, 401, 'no_authorization'],
  ['POST', '/logout?scope=x', USER, {}, 400, 'validation_failed'],
  ['POST', '/invite', USER, { email: 'a@b.c' }, 403, 'not_admin'],
  ['POST', '/invite', ADMIN, {}, 400, 'validation_failed'],
  ['GET', '/admin/users?page=x', ADMIN, undefined, 400, 'validation_failed'],
  ['POST', '/admin/users', ADMIN, {}, 400, 'validation_failed'],
  ['GET', '/admin/users/x', ADMIN, undefined, 404, 'validation_failed'],
  ['GET', `/admin/users/${NOBODY}`, ADMIN, undefined, 404, 'user_not_found'],
  ['PUT', `/admin/users/${NOBODY}`, ADMIN, {}, 404, 'user_not_found'],
  ['DELETE', `/admin/users/${NOBODY}`, ADMIN, undefined, 404, 'user_not_found'],
  ['POST', '/admin/generate_link', ADMIN, { email: 'a@b.c' }, 400, 'validation_failed'],
  ['GET', '/admin/audit?query=x', ADMIN, undefined, 400, 'validation_failed'],
  ['GET', '/nothing', 'nobody', undefined, 404, 'not_found'],
  ['PATCH', '/user', 'nobody', {}, 405, 'method_not_allowed'],
])('%s %s by %s with %j', async ([method, url, who, payload, status, code], { service }) => {
  const auth = { nobody: {}, user: who === USER ? (await service.signedIn()).auth : {}, admin: service.admin }[who]
  const send = (headers: Record<string, string>) =>
    service.app.inject({
      method: method as 'GET',
      url,
      headers: { ...auth, ...headers },
      ...(payload ? { payload } : {}),
    })
  const older = await send({})
  const newer = await send({ 'x-supabase-api-version': '2024-01-01' })
  for (const answer of [older, newer]) {
    expect([answer.statusCode, answer.headers['x-sb-error-code']]).toEqual([status, code])
    expect(answer.headers['content-type']).toMatch('application/json')
  }
  const details = code === 'weak_password' ? ['weak_password'] : []
  expect(Object.keys(older.json())).toEqual(['code', 'error_code', 'msg', ...details])
  expect(older.json()).toMatchObject({ code: status, error_code: code })
  expect(older.headers).not.toHaveProperty('x-supabase-api-version')
  expect(Object.keys(newer.json())).toEqual(['code', 'message', ...details])
  expect(newer.json().code).toBe(code)
  expect(newer.headers['x-supabase-api-version']).toBe('2024-01-01')
})

// contract/auth-external.md 7.7; libraries of other languages show these texts, and applications match them.
test('texts that clients compare are the ones they know', async ({ service }) => {
  const user = await service.signedIn()
  const of = async (answer: Promise<{ body: { msg: string } }>) => (await answer).body.msg
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const byCode = { type: 'sms', phone: '+4915112345678', token: '123456' }
  expect(await of(service.post('/verify', byCode))).toBe('Token has expired or is invalid')
  const byLink = { type: 'signup', token_hash: 'x' }
  expect(await of(service.post('/verify', byLink))).toBe('Email link is invalid or has expired')
  const refresh = service.post('/token?grant_type=refresh_token', { refresh_token: 'x' })
  expect(await of(refresh)).toBe('Invalid Refresh Token: Refresh Token Not Found')
  expect(await of(service.get('/user', bearer('x')))).toMatch(/^invalid JWT: unable to parse or verify signature, /)
  expect(await of(service.get('/user', service.admin))).toMatch(/^invalid claim: /)
  expect(await of(service.get('/user'))).toBe('This endpoint requires a valid Bearer token')
  expect(await of(service.get('/admin/users', user.auth))).toBe('User not allowed')
  await service.post('/logout', {}, user.auth)
  const change = service.put('/user', { data: {} }, user.auth)
  expect(await of(change)).toBe('Session from session_id claim in JWT does not exist')
  expect(await of(service.post('/sso', {}))).toBe('SAML 2.0 is disabled')
  expect(await of(service.post('/token?grant_type=web3', {}))).toBe('Web3 provider is disabled')
})

test('an answer that is no error says nothing of versions', async ({ service }) => {
  const { status, headers } = await service.get('/settings', { 'x-supabase-api-version': '2024-01-01' })
  expect(status).toBe(200)
  expect(headers).not.toHaveProperty('x-supabase-api-version')
})

test('a limit is a refusal in both forms too, with the time to wait', async ({ service: shared }) => {
  const service = await shared.with({ AUTH_RATE_LIMIT_HEADER: 'x-real-address', AUTH_RATE_LIMIT_OTP: '1' })
  const address = { 'x-real-address': '192.0.2.1' }
  const ask = (headers = {}) => service.post('/recover', { email: 'nobody@example.com' }, { ...address, ...headers })
  await ask()
  const older = await ask()
  const newer = await ask({ 'x-supabase-api-version': '2025-06-01' })
  expect([older.body.code, newer.body.code]).toEqual([429, 'over_request_rate_limit'])
  for (const { status, headers } of [older, newer]) {
    expect([status, Number(headers['retry-after']) > 0]).toEqual([429, true])
  }
  await service.close()
})

test('a request that takes too long is answered as such, in both forms', async () => {
  const service = await startTestService()
  const impatient = await startImpatient(service)
  const { auth, userId } = await service.signedIn()
  const holder = await service.deps.pool.connect()
  await holder.query('begin')
  await holder.query('select 1 from users where id = $1 for update', [userId])
  const [older, newer] = await Promise.all([
    impatient.put('/user', { data: {} }, auth),
    impatient.put('/user', { data: {} }, { ...auth, 'x-supabase-api-version': '2024-01-01' }),
  ])
  await holder.query('rollback')
  holder.release()
  expect([older.status, older.body.error_code]).toEqual([504, 'request_timeout'])
  expect([newer.status, newer.body.code]).toEqual([504, 'request_timeout'])
  await impatient.close()
  await service.close()
})
