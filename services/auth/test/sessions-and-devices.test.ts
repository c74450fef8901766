// Sessions at aal2 by a device, a passkey or a factor: the cost and the count of their ends. Rules of devices:
// trusted-devices.test.ts.
import { type Counter, metrics } from '@opentelemetry/api'
import { statementsOf } from '@services/common/testing/database/statements'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { claimsOf, enrollTotp, type SecondUser, signInAgain, verifyTotp, withTotp } from './second-factors.ts'
import { type Answer, startTestService, type TestService, toSignedIn } from './service.ts'
import { startUpstream, type Upstream } from './upstream.ts'
import { PASSKEYS, register, signIn as signInByPasskey } from './webauthn/passkeys.ts'
import { createSecurityKey, VERIFIED } from './webauthn/security-key.ts'

const PRESENT = 0x01
const WITH_KEY = 0x40
const DEVICES = '/factors/trusted-devices'

let service: TestService
let hook: Upstream
beforeAll(async () => {
  service = await startTestService({ ...PASSKEYS, AUTH_PASSKEY_VERIFIED_IS_AAL2: 'true' })
  hook = await startUpstream((response, body) => {
    const { claims } = JSON.parse(body)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ claims }))
  })
})
afterAll(async () => {
  await service.close()
  await hook.close()
})

const refresh = ({ refreshToken: refresh_token }: Pick<SecondUser, 'refreshToken'>, headers = {}): Promise<Answer> =>
  service.post('/token?grant_type=refresh_token', { refresh_token }, headers)
const shown = ({ body }: Answer) => {
  const { aal, amr } = claimsOf(toSignedIn(body))
  return [aal, amr.map(({ method }: { method: string }) => method)]
}
const sessionOf = ({ accessToken }: Pick<SecondUser, 'accessToken'>) => claimsOf({ accessToken }).session_id

test('the removal of a factor leaves sessions at aal2 that began there by a passkey', async () => {
  const user = await withTotp(service)
  const key = createSecurityKey()
  await register(service, user, key, { flags: PRESENT | WITH_KEY | VERIFIED })
  const byPasskey = async () =>
    toSignedIn((await signInByPasskey(service, { ...user, key }, { flags: PRESENT | VERIFIED })).body)
  const alone = await byPasskey()
  const proven = toSignedIn((await verifyTotp(service, await byPasskey(), user.totp)).body)
  expect((await service.delete(`/factors/${user.totp.id}`, user.auth)).status).toBe(200)
  expect(shown(await refresh(alone))).toEqual(['aal2', ['passkey']])
  expect(shown(await refresh(proven))).toEqual(['aal2', ['passkey']])
  expect(shown(await refresh(user))).toEqual(['aal1', ['password']])
})

test('a token that a sign-in uses is counted once, although a hook is asked in between', async () => {
  const hooked = await service.with({
    AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
    AUTH_HOOK_CUSTOM_ACCESS_TOKEN_ENABLED: 'true',
    AUTH_HOOK_CUSTOM_ACCESS_TOKEN_URI: hook.url,
    AUTH_HOOK_CUSTOM_ACCESS_TOKEN_UNSIGNED: 'true',
  })
  const { email, auth } = await withTotp(hooked)
  const { token } = (await hooked.post(DEVICES, {}, auth)).body
  // Without an SDK all counters are of one class.
  const anyCounter: Counter = Object.getPrototypeOf(metrics.getMeter('auth').createCounter('any'))
  const add = vi.spyOn(anyCounter, 'add')
  const headers = { 'x-device-token': token }
  const answer = await hooked.post('/token?grant_type=password', { email, password: 'correct horse' }, headers)
  expect(shown(answer)[0]).toBe('aal2')
  expect(add.mock.calls.filter(([, attributes]) => attributes?.result === 'current')).toHaveLength(1)
  add.mockRestore()
  await hooked.close()
})

/** Acts that end trusted devices along with sessions, or with a proof. */
const ACTS: Record<string, (user: SecondUser) => Promise<Answer>> = {
  'signing out everywhere': ({ auth }) => service.post('/logout', {}, auth),
  'signing out elsewhere': ({ auth }) => service.post('/logout?scope=others', {}, auth),
  'signing out here': ({ auth }) => service.post('/logout?scope=local', {}, auth),
  'a new password': ({ auth }) => service.put('/user', { password: 'another horse' }, auth),
  'the end of a session': (user) => service.delete(`/user/sessions/${sessionOf(user)}`, user.auth),
  'the end of all sessions by an admin': ({ userId }) =>
    service.delete(`/admin/users/${userId}/sessions`, service.admin),
  'the reuse of a refresh token': async (user) => {
    await refresh(user, { 'user-agent': 'Owner/1.0' })
    service.clock.advance({ seconds: 11 })
    return refresh(user, { 'user-agent': 'Thief/1.0' })
  },
  'a further factor': async (user) => verifyTotp(service, user, await enrollTotp(service, user, 'second')),
  'a recovery code': async ({ email, recoveryCodes: [code] }) =>
    service.post('/factors/recovery-codes/verify', { code }, (await signInAgain(service, email)).auth),
  'the removal of a factor': ({ auth, totp }) => service.delete(`/factors/${totp.id}`, auth),
}

test.for(Object.entries(ACTS))('%s ends devices by no statement of its own', async ([name, act]) => {
  const user = await withTotp(service)
  const texts = await statementsOf(async () => {
    const { status } = await act(user)
    expect([200, 204]).toContain(name === 'the reuse of a refresh token' && status === 400 ? 200 : status)
  })
  expect(texts.some((text) => /sessions/.test(text))).toBe(true)
  expect(texts.filter((text) => /^\s*delete from "\w*trusted_devices"/.test(text))).toEqual([])
})
