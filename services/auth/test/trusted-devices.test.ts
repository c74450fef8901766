// A trusted device replaces the second factor at sign-ins of its user, and nothing else. Acts that it is not enough
// for: ../src/core/freshness/ways-in.test.ts. Calls of the public library: auth-js/trusted-devices.ts.
import { createLogger } from '@services/common/telemetry/logger'
import { statementsOf } from '@services/common/testing/database/statements'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deleteExpired } from '../src/housekeeping.ts'
import { expectKnownMembers } from './audit-members.ts'
import { type OpenIdProvider, startOpenIdProvider } from './openid-provider.ts'
import {
  claimsOf,
  enrollTotp,
  type SecondUser,
  signInAgain,
  type Totp,
  verifyTotp,
  withTotp,
} from './second-factors.ts'
import {
  type Answer,
  codeIn,
  fragmentOf,
  linkPath,
  queryOf,
  startTestService,
  type TestService,
  tokenIn,
  toSignedIn,
} from './service.ts'
import { ask, assertion, PASSKEYS, prove, register } from './webauthn/passkeys.ts'
import { createSecurityKey } from './webauthn/security-key.ts'

const password = 'correct horse'
const url = '/factors/trusted-devices'
const DAY = 86_400
const TTL = { AUTH_MFA_TRUSTED_DEVICE_TTL: '30d' }

let google: OpenIdProvider
let service: TestService
/** Another process of the service, on the same database. */
let replica: TestService
beforeAll(async () => {
  google = await startOpenIdProvider()
  service = await startTestService({
    ...TTL,
    ...PASSKEYS,
    ...google.settings('GOOGLE'),
    AUTH_MFA_MAX_TRUSTED_DEVICES: '3',
    AUTH_RATE_LIMIT_HEADER: 'x-client',
    AUTH_MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY: '10',
    AUTH_MAILER_NOTIFICATIONS_MFA_TRUSTED_DEVICE_ADDED_ENABLED: 'true',
  })
  replica = await service.with({})
})
afterAll(async () => {
  await replica.close()
  await service.close()
  await google.close()
})

interface Trusted extends SecondUser {
  device: { id: string; token: string; expires_at: string }
}

/** A user whose device is trusted, in the session that proved the factor. */
async function trusted(at = service, body: object = {}): Promise<Trusted> {
  const user = await withTotp(at)
  const { status, body: device } = await at.post(url, body, user.auth)
  expect(status).toBe(200)
  return { ...user, device }
}

const withToken = (token: string | undefined) => ({ 'x-device-token': token ?? '' })
const signIn = (at: TestService, { email }: { email: string }, token?: string, headers = {}): Promise<Answer> =>
  at.post('/token?grant_type=password', { email, password }, { ...withToken(token), ...headers })
const nextOf = ({ headers }: Answer) => headers['x-device-token'] as string | undefined
const methodsOf = ({ body }: Answer) => claimsOf(toSignedIn(body)).amr.map(({ method }: { method: string }) => method)
const levelOf = ({ body }: Answer) => claimsOf(toSignedIn(body)).aal
const devicesOf = async ({ userId }: { userId: string }, at = service) =>
  (await at.get(`/admin/users/${userId}/trusted-devices`, at.admin)).body
/** Levels of the user's sessions, as they are stored. */
const storedLevels = async ({ userId }: { userId: string }) =>
  await service.deps.db
    .selectFrom('sessions')
    .select(['aal', 'trusted_device_id'])
    .where('user_id', '=', userId)
    .execute()

async function auditedOf({ userId }: { userId: string }) {
  const { rows } = await service.deps.pool.query(
    "select payload from audit_log_entries where payload->>'actor_id' = $1 and payload->>'action' like 'trusted_device%'",
    [userId],
  )
  const payloads = rows.map(({ payload }) => payload)
  expectKnownMembers(payloads)
  return payloads.map(({ action }) => action).toSorted()
}

/** Way to sign in; answers what the application gets. */
type Way = (user: Trusted, headers: Record<string, string>) => Promise<Answer>
const mailOf = async ({ email }: Trusted) => {
  service.clock.advance({ seconds: 61 })
  await service.post('/otp', { email })
  return (await service.mailbox.waitFor(email, { subject: 'sign-in link' })).text
}
const WAYS: Record<string, [method: string, way: Way]> = {
  'a password': ['password', (user, headers) => signIn(service, user, headers['x-device-token'])],
  'a code': [
    'otp',
    async (user, headers) => {
      const token = codeIn(await mailOf(user))
      return service.post('/verify', { type: 'email', email: user.email, token }, headers)
    },
  ],
  'the token of a link': [
    'otp',
    async (user, headers) =>
      service.post('/verify', { type: 'email', token_hash: tokenIn(await mailOf(user)) }, headers),
  ],
  'a link of the PKCE flow': [
    'magiclink',
    async ({ email }, headers) => {
      service.clock.advance({ seconds: 61 })
      const code_verifier = 'v'.repeat(43)
      await service.post('/otp', { email, code_challenge: code_verifier, code_challenge_method: 'plain' })
      const { text } = await service.mailbox.waitFor(email, { subject: 'sign-in link' })
      const { code: auth_code } = queryOf(await service.get(linkPath(text), headers))
      return service.post('/token?grant_type=pkce', { auth_code, code_verifier }, headers)
    },
  ],
  'an id_token': [
    'oauth',
    async ({ email }, headers) => {
      const iat = Math.floor(service.clock.now().getTime() / 1000)
      const id_token = await google.idToken({ sub: email, email, email_verified: true, iat, exp: iat + 300 })
      return service.post('/token?grant_type=id_token', { provider: 'google', id_token }, headers)
    },
  ],
  'a passkey': [
    'passkey',
    async (user, headers) => {
      const key = createSecurityKey()
      await register(service, user, key)
      const asked = await ask(service)
      return prove(service, asked.body.challenge_id, assertion(asked, { ...user, key }), headers)
    },
  ],
}

test.for(Object.entries(WAYS))('a sign-in by %s with its token begins at aal2', async ([, [method, way]]) => {
  const user = await trusted()
  const answer = await way(user, withToken(user.device.token))
  expect(answer).toMatchObject({ status: 200, headers: { 'x-device-token-expires-at': user.device.expires_at } })
  expect([levelOf(answer), methodsOf(answer)]).toEqual(['aal2', [method, 'trusted_device']])
  const next = nextOf(answer)
  expect(next).toMatch(/^[\w-]{64}$/)
  expect(next).not.toBe(user.device.token)
  const refreshed = await service.post('/token?grant_type=refresh_token', { refresh_token: answer.body.refresh_token })
  expect([levelOf(refreshed), nextOf(refreshed)]).toEqual(['aal2', undefined])
  expect(levelOf(await signIn(replica, user, next))).toBe('aal2')
  expect(levelOf(await signIn(service, user))).toBe('aal1')
  expect(await auditedOf(user)).toEqual(['trusted_device_added', 'trusted_device_used', 'trusted_device_used'])
})

test('a redirect carries no header: its session begins at aal1, and the token stays good', async () => {
  const user = await trusted()
  const followed = await service.get(linkPath(await mailOf(user)), withToken(user.device.token))
  expect(claimsOf({ accessToken: fragmentOf(followed).access_token as string }).aal).toBe('aal1')
  expect(nextOf(followed)).toBeUndefined()
  expect(levelOf(await signIn(service, user, user.device.token))).toBe('aal2')
})

test('pages of any origin may send the token and read the next one', async () => {
  const user = await trusted()
  const origin = { origin: 'https://app.example' }
  const { headers } = await service.app.inject({
    method: 'OPTIONS',
    url: '/token',
    headers: { ...origin, 'access-control-request-method': 'POST' },
  })
  expect(String(headers['access-control-allow-headers'])).toContain('x-device-token')
  const exposed = (await signIn(service, user, user.device.token, origin)).headers['access-control-expose-headers']
  expect(String(exposed).split(', ')).toEqual(expect.arrayContaining(['x-device-token', 'x-device-token-expires-at']))
})

test('its owner and admins see it, without a secret, and nothing stores the token', async () => {
  const user = await trusted(service, { name: 'My laptop' })
  await signIn(service, user, user.device.token, { 'user-agent': 'Laptop/1.0' })
  const shown = {
    ...{ id: user.device.id, name: 'My laptop', user_agent: 'Laptop/1.0', expires_at: user.device.expires_at },
    ...{ created_at: expect.any(String), last_used_at: service.clock.now().toISOString() },
  }
  const { body } = await service.get(url, user.auth)
  expect(body).toEqual([{ ...shown, ip: expect.toBeOneOf([null, expect.any(String)]) }])
  expect(await devicesOf(user)).toEqual(body)
  const rows = JSON.stringify(await service.deps.db.selectFrom('trusted_devices').selectAll().execute())
  const secret = Buffer.from(user.device.token, 'base64url').subarray(16)
  for (const form of ['hex', 'base64', 'base64url'] as const) expect(rows).not.toContain(secret.toString(form))
})

test('a user is notified where the setting asks for it', async () => {
  const { email } = await trusted(service, { name: 'Tom & Jerry' })
  const { text } = await service.mailbox.waitFor(email, { subject: 'A device was trusted' })
  expect(text).toContain('A device called Tom & Jerry has just been trusted')
})

describe('a device is trusted only by a factor that was just proven', () => {
  const REFUSED = { status: 403, body: { error_code: 'insufficient_aal' } }
  test.for<[string, (user: Trusted) => Promise<{ authorization: string }>]>([
    ['a session at aal1', async ({ email }) => (await signInAgain(service, email)).auth],
    [
      'a session whose proof is 16 minutes old',
      async ({ auth }) => {
        service.clock.advance({ seconds: 16 * 60 })
        return auth
      },
    ],
    [
      'a recovery code',
      async ({ email, recoveryCodes: [code] }) => {
        const { auth } = await signInAgain(service, email)
        return toSignedIn((await service.post('/factors/recovery-codes/verify', { code }, auth)).body).auth
      },
    ],
    [
      'a recovery code after a factor',
      async ({ auth, recoveryCodes: [code] }) =>
        toSignedIn((await service.post('/factors/recovery-codes/verify', { code }, auth)).body).auth,
    ],
    ['a trusted device', async (user) => toSignedIn((await signIn(service, user, user.device.token)).body).auth],
  ])('and not by %s', async ([, signedIn]) => {
    const user = await trusted()
    const auth = await signedIn(user)
    expect(await service.post(url, {}, auth)).toMatchObject(REFUSED)
  })

  test('nor by a user without a factor, or an unknown caller', async () => {
    const { auth } = await service.signedIn()
    expect(await service.post(url, {}, auth)).toMatchObject(REFUSED)
    expect((await service.post(url)).status).toBe(401)
  })

  test('its name has at most 255 characters', async () => {
    const { auth } = await withTotp(service)
    expect(await service.post(url, { name: 'x'.repeat(256) }, auth)).toMatchObject({
      status: 400,
      body: { error_code: 'validation_failed' },
    })
  })

  test('three times: a further one ends the least recently used, and ten an hour', async () => {
    const user = await trusted()
    const more = []
    for (let count = 0; count < 3; count++) {
      service.clock.advance({ seconds: 1 })
      if (count === 2) user.device.token = nextOf(await signIn(service, user, user.device.token)) as string
      more.push((await service.post(url, {}, user.auth)).body)
    }
    expect((await devicesOf(user)).map(({ id }: { id: string }) => id)).toEqual([
      more[2].id,
      more[1].id,
      user.device.id,
    ])
    expect(levelOf(await signIn(service, user, more[0].token))).toBe('aal1')
    expect(levelOf(await signIn(service, user, user.device.token))).toBe('aal2')
    for (let count = 0; count < 6; count++) expect((await service.post(url, {}, user.auth)).status).toBe(200)
    expect((await replica.post(url, {}, user.auth)).status).toBe(429)
  })
})

/** Ends of a device. Each is an act of its user or an admin, in the session that trusted it. */
const asAdmin = ({ userId }: Trusted, change: object) => service.put(`/admin/users/${userId}`, change, service.admin)
const sessionOf = ({ authorization }: { authorization: string }) =>
  claimsOf({ accessToken: authorization.slice(7) }).session_id
const reuse = async (refresh_token: string) => {
  const from = (agent: string) =>
    service.post('/token?grant_type=refresh_token', { refresh_token }, { 'user-agent': agent })
  await from('Owner/1.0')
  service.clock.advance({ seconds: 11 })
  expect((await from('Thief/1.0')).body.error_code).toBe('refresh_token_already_used')
}
const raised = async (session: Pick<SecondUser, 'auth'>, totp: Totp) =>
  toSignedIn((await verifyTotp(service, session, totp)).body)
const begunAndProven = async (user: Trusted) =>
  raised(toSignedIn((await signIn(service, user, user.device.token)).body), user.totp)
const removeFactor = async ({ auth, totp }: Trusted) => service.delete(`/factors/${totp.id}`, auth)
const ENDS: Record<string, (user: Trusted) => Promise<unknown>> = {
  'a new password': ({ auth }) => service.put('/user', { password: 'another horse' }, auth),
  'a password set by an admin': (user) => asAdmin(user, { password: 'another horse' }),
  'a further factor': async (user) => verifyTotp(service, user, await enrollTotp(service, user, 'second')),
  'the removal of a factor': removeFactor,
  'the removal of a factor by an admin': ({ userId, totp }) =>
    service.delete(`/admin/users/${userId}/factors/${totp.id}`, service.admin),
  'a recovery code': async ({ email, recoveryCodes: [code] }) =>
    service.post('/factors/recovery-codes/verify', { code }, (await signInAgain(service, email)).auth),
  'signing out everywhere': ({ auth }) => service.post('/logout', {}, auth),
  'signing out elsewhere': async ({ email, totp }) =>
    service.post('/logout?scope=others', {}, (await raised(await signInAgain(service, email), totp)).auth),
  'an admin who ends all sessions': ({ userId }) => service.delete(`/admin/users/${userId}/sessions`, service.admin),
  'the end of the session that trusted it': ({ userId, auth }) =>
    service.delete(`/admin/users/${userId}/sessions/${sessionOf(auth)}`, service.admin),
  'the end of a session that it began': async (user) => {
    const { auth } = toSignedIn((await signIn(service, user, user.device.token)).body)
    return service.delete(`/user/sessions/${sessionOf(auth)}`, user.auth)
  },
  'the end of a session that it began and that proved a factor since': async (user) => {
    const { auth } = await begunAndProven(user)
    return service.delete(`/user/sessions/${sessionOf(auth)}`, user.auth)
  },
  'the reuse of a refresh token': ({ refreshToken }) => reuse(refreshToken),
  'the reuse of a refresh token of a session that it began and that proved a factor since': async (user) =>
    reuse((await begunAndProven(user)).refreshToken),
  'a new password in such a session': async (user) =>
    service.put('/user', { password: 'another horse' }, (await begunAndProven(user)).auth),
  'a ban that is lifted': async (user) => {
    await asAdmin(user, { ban_duration: '1h' })
    return asAdmin(user, { ban_duration: 'none' })
  },
  'its removal': ({ auth, device }) => service.delete(`${url}/${device.id}`, auth),
  'the removal of all': ({ auth }) => service.delete(url, auth),
  'its removal by an admin': ({ userId, device }) =>
    service.delete(`/admin/users/${userId}/trusted-devices/${device.id.toUpperCase()}`, service.admin),
  'the removal of all by an admin': ({ userId }) =>
    service.delete(`/admin/users/${userId}/trusted-devices`, service.admin),
  'other factors than those it was trusted with': ({ userId }) =>
    service.deps.db
      .updateTable('trusted_devices')
      .set({ factor_ids: [crypto.randomUUID()] })
      .where('user_id', '=', userId)
      .execute(),
  'its time': async () => service.clock.advance({ seconds: 30 * DAY }),
}

test.for(Object.entries(ENDS))('a device ends with %s', async ([name, end]) => {
  const user = await trusted()
  await end(user)
  const given = /password/.test(name) ? 'another horse' : password
  const answer = await service.post(
    '/token?grant_type=password',
    { email: user.email, password: given },
    withToken(user.device.token),
  )
  expect([answer.status, nextOf(answer), levelOf(answer)]).toEqual([200, undefined, 'aal1'])
  expect(await devicesOf(user)).toEqual([])
})

test.for(['its removal', 'the end of the session that trusted it'])(
  'with %s its sessions fall to aal1, unless they have proven a factor since',
  async (name) => {
    const user = await trusted()
    const first = await signIn(service, user, user.device.token)
    const proven = toSignedIn((await signIn(service, user, nextOf(first))).body)
    // A proof ends sessions at aal1 alone.
    const { refreshToken } = await raised(proven, user.totp)
    await ENDS[name]?.(user)
    const refreshed = await service.post('/token?grant_type=refresh_token', { refresh_token: first.body.refresh_token })
    expect([levelOf(refreshed), methodsOf(refreshed)]).toEqual(['aal1', ['password']])
    expect((await service.put('/user', { password: 'x horse x' }, toSignedIn(refreshed.body).auth)).status).toBe(401)
    const kept = await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })
    expect(levelOf(kept)).toBe('aal2')
  },
)

test.for<[string, (user: Trusted) => Promise<Pick<SecondUser, 'auth'>>]>([
  ['trusted it', async (user) => user],
  ['began with it', async (user) => toSignedIn((await signIn(service, user, user.device.token)).body)],
  ['began with it and proved a factor since', begunAndProven],
])('signing out elsewhere spares the device of the session that %s, and no other', async ([, session]) => {
  const user = await trusted()
  const elsewhere = await raised(await signInAgain(service, user.email), user.totp)
  const { token } = (await service.post(url, {}, elsewhere.auth)).body
  expect((await service.post('/logout?scope=others', {}, (await session(user)).auth)).status).toBe(204)
  expect(levelOf(await signIn(service, user, user.device.token))).toBe('aal2')
  expect(levelOf(await signIn(service, user, token))).toBe('aal1')
})

test('the removal of its factor lowers its sessions', async () => {
  const user = await trusted()
  const second = await signIn(service, user, user.device.token)
  await service.delete(`/admin/users/${user.userId}/factors/${user.totp.id}`, service.admin)
  const refreshed = await service.post('/token?grant_type=refresh_token', { refresh_token: second.body.refresh_token })
  expect([levelOf(refreshed), methodsOf(refreshed)]).toEqual(['aal1', ['password']])
})

test('a deleted user leaves no device', async () => {
  const [soft, hard] = [await trusted(), await trusted()]
  const remove = (user: Trusted, should_soft_delete: boolean) =>
    service.app.inject({
      method: 'DELETE',
      url: `/admin/users/${user.userId}`,
      headers: service.admin,
      payload: { should_soft_delete },
    })
  expect([(await remove(soft, true)).statusCode, (await remove(hard, false)).statusCode]).toEqual([200, 200])
  const left = service.deps.db.selectFrom('trusted_devices').select('id')
  expect(await left.where('user_id', 'in', [soft.userId, hard.userId]).execute()).toEqual([])
})

test('an unknown device, or a malformed id, is not found', async () => {
  const [{ auth }, stranger] = [await trusted(), await trusted()]
  for (const id of ['x', crypto.randomUUID(), stranger.device.id]) {
    expect(await service.delete(`${url}/${id}`, auth)).toMatchObject({
      status: 404,
      body: { error_code: 'trusted_device_not_found' },
    })
  }
  expect(await devicesOf(stranger)).toHaveLength(1)
})

describe('a token that was replaced', () => {
  const MINUTE = { seconds: 60 }

  test('gets the same successor within a minute, at any replica, for a tab or a lost answer', async () => {
    const user = await trusted()
    const answers = await Promise.all(
      [service, replica, service, replica].map((at) => signIn(at, user, user.device.token)),
    )
    service.clock.advance({ seconds: 59 })
    answers.push(await signIn(replica, user, user.device.token))
    expect(answers.map(levelOf)).toEqual(answers.map(() => 'aal2'))
    const next = new Set(answers.map(nextOf))
    expect(next.size).toBe(1)
    expect(levelOf(await signIn(service, user, [...next][0]))).toBe('aal2')
  })

  test.for([1, 2, 5])('%i uses ago ends the device, and the second factor of its sessions', async (uses) => {
    const user = await trusted()
    let token: string | undefined = user.device.token
    for (let use = 0; use < uses; use++) token = nextOf(await signIn(service, user, token))
    service.clock.advance(MINUTE)
    const thief = await signIn(replica, user, user.device.token)
    expect([thief.status, levelOf(thief), nextOf(thief)]).toEqual([200, 'aal1', undefined])
    expect(levelOf(await signIn(service, user, token))).toBe('aal1')
    expect(await devicesOf(user)).toEqual([])
    expect((await auditedOf(user)).filter((action) => action === 'trusted_device_reused')).toHaveLength(1)
    const levels = (await storedLevels(user)).map(({ aal }) => aal)
    expect(levels.filter((aal) => aal === 'aal2')).toHaveLength(1)
  })

  test('two uses ago ends it within that minute, too', async () => {
    const user = await trusted()
    const next = nextOf(await signIn(service, user, user.device.token))
    await signIn(service, user, next)
    expect(levelOf(await signIn(service, user, user.device.token))).toBe('aal1')
    expect(await devicesOf(user)).toEqual([])
  })

  test('at once with the current one at another replica: the device ends, and no session keeps its factor', async () => {
    const user = await trusted()
    const next = nextOf(await signIn(service, user, user.device.token))
    service.clock.advance(MINUTE)
    await Promise.all([signIn(service, user, next), signIn(replica, user, user.device.token)])
    expect(await devicesOf(user)).toEqual([])
    expect((await storedLevels(user)).map(({ aal }) => aal).filter((aal) => aal === 'aal2')).toHaveLength(1)
  })
})

/** Level of the session of a sign-in before this end of its device; undefined where that ends it. */
const LEVELS_AFTER = {
  'its removal': 'aal1',
  'a new password': undefined,
  'signing out everywhere': undefined,
  'a ban that is lifted': 'aal2',
} as const

describe.for(Object.entries(LEVELS_AFTER))('a sign-in with a device and %s', ([name, left]) => {
  const end = (user: Trusted) => ENDS[name]?.(user)
  const enter = ({ email, device }: Trusted, given = password) =>
    replica.post('/token?grant_type=password', { email, password: given }, withToken(device.token))
  const enterAfter = (user: Trusted) => enter(user, name === 'a new password' ? 'another horse' : password)
  const levelsAfter = async (user: Trusted, { body }: Answer) => {
    expect(await devicesOf(user)).toEqual([])
    const id = claimsOf(toSignedIn(body)).session_id
    const stored = service.deps.db.selectFrom('sessions').select(['aal', 'amr']).where('id', '=', id)
    const session = await stored.executeTakeFirst()
    return [session?.aal, session?.amr.some(({ method }) => method === 'trusted_device')]
  }
  const before = [left, left && left === 'aal2']
  const after = ['aal1', false]

  test('in this order: the session is as the end leaves it', async () => {
    const user = await trusted()
    const answer = await enter(user)
    expect(levelOf(answer)).toBe('aal2')
    await end(user)
    expect(await levelsAfter(user, answer)).toEqual(before)
  })

  test('in the other order: the sign-in is one without a device', async () => {
    const user = await trusted()
    await end(user)
    expect(await levelsAfter(user, await enterAfter(user))).toEqual(after)
  })

  test('at once: one of both, and no device is left', async () => {
    const user = await trusted()
    const [answer] = await Promise.all([enter(user), end(user)])
    // The end may refuse it: the password is an old one, or the user is banned.
    const entered = answer.status === 200 ? answer : await enterAfter(user)
    expect([before, after]).toContainEqual(await levelsAfter(user, entered))
  })
})

describe('a token reveals nothing', () => {
  test('of an account to a caller without the first factor, and is not used up', async () => {
    const user = await trusted()
    const refused = async (email: string, headers: Record<string, string>) => {
      const {
        status,
        body,
        headers: answered,
      } = await service.post('/token?grant_type=password', { email, password: 'a guess' }, headers)
      const { date: _, 'x-request-id': __, ...rest } = answered
      return { status, body, headers: rest }
    }
    const known = await refused(user.email, withToken(user.device.token))
    expect(known).toMatchObject({ status: 400, body: { error_code: 'invalid_credentials' } })
    expect(await refused('unknown@example.com', withToken(user.device.token))).toEqual(known)
    expect(await refused(user.email, {})).toEqual(known)
    expect(levelOf(await signIn(service, user, user.device.token))).toBe('aal2')
  })

  test.for<[string, (user: Trusted) => Promise<string>]>([
    ['of another user', async () => (await trusted()).device.token],
    ['of no device', async () => Buffer.alloc(48, 7).toString('base64url')],
    [
      'with the id of the device alone',
      async ({ device }) =>
        Buffer.concat([Buffer.from(device.token, 'base64url').subarray(0, 16), Buffer.alloc(32)]).toString('base64url'),
    ],
    ['that is none', async () => 'x'.repeat(5000)],
  ])('%s: the sign-in is one without a device', async ([, tokenFor]) => {
    const user = await trusted()
    const answer = await signIn(service, user, await tokenFor(user))
    expect([answer.status, levelOf(answer), methodsOf(answer), nextOf(answer)]).toEqual([
      ...[200, 'aal1', ['password'], undefined],
    ])
    expect(levelOf(await signIn(service, user, user.device.token))).toBe('aal2')
  })
})

test('twenty wrong tokens a minute from one address, at all replicas: then no token from there counts', async () => {
  const user = await trusted()
  const from = { 'x-client': '192.0.2.77' }
  const wrong = Buffer.alloc(48, 1).toString('base64url')
  for (let count = 0; count < 20; count++) {
    const unknown = { email: `unknown-${count}@example.com` }
    expect((await signIn(count % 2 ? service : replica, unknown, wrong, from)).status).toBe(400)
    service.clock.advance({ seconds: 1 })
  }
  expect(levelOf(await signIn(replica, user, user.device.token, from))).toBe('aal1')
  expect(levelOf(await signIn(replica, user, user.device.token, { 'x-client': '192.0.2.78' }))).toBe('aal2')
})

test('a shorter time applies to devices that exist, and housekeeping deletes expired ones', async () => {
  const user = await trusted()
  const shorter = await service.with({ AUTH_MFA_TRUSTED_DEVICE_TTL: '1h' })
  const [{ expires_at: end, created_at: begin }] = await devicesOf(user, shorter)
  expect(Date.parse(end) - Date.parse(begin)).toBe(3_600_000)
  service.clock.advance({ seconds: 3601 })
  expect(await devicesOf(user, shorter)).toEqual([])
  expect(levelOf(await signIn(shorter, user, user.device.token))).toBe('aal1')
  await shorter.close()
  const other = await trusted()
  service.clock.advance({ seconds: 30 * DAY + 1 })
  await deleteExpired(service.deps, createLogger({ name: 'test', level: 'fatal' }))
  const left = service.deps.db.selectFrom('trusted_devices').select('id').where('user_id', '=', other.userId)
  expect(await left.execute()).toEqual([])
})

test('is not enough for admin endpoints where admins must prove a second factor', async () => {
  const strict = await service.with({ AUTH_MFA_REQUIRED_FOR: 'admins' })
  const user = await trusted()
  await asAdmin(user, { role: 'service_role' })
  const { auth } = toSignedIn((await signIn(strict, user, user.device.token)).body)
  const refusal = { status: 403, body: { error_code: 'insufficient_aal' } }
  expect(await strict.get('/admin/users?per_page=1', auth)).toMatchObject(refusal)
  const proven = toSignedIn((await verifyTotp(strict, { auth }, user.totp)).body)
  expect((await strict.get('/admin/users?per_page=1', proven.auth)).status).toBe(200)
  await strict.close()
})

describe('disabled', () => {
  let off: TestService
  beforeAll(async () => {
    off = await service.with({ AUTH_MFA_TRUSTED_DEVICE_TTL: '0' })
    return () => off.close()
  })

  test('each endpoint answers so, after the token', async () => {
    const { auth, userId } = await off.signedIn()
    const own = ['GET', 'POST', 'DELETE'].map((method) => [method, url, auth] as const)
    const admins = ['GET', 'DELETE'].map(
      (method) => [method, `/admin/users/${userId}/trusted-devices`, off.admin] as const,
    )
    const one = [url, `/admin/users/${userId}/trusted-devices`].map(
      (path, index) => ['DELETE', `${path}/${userId}`, index ? off.admin : auth] as const,
    )
    for (const [method, path, headers] of [...own, ...admins, ...one]) {
      const ask = (given: Record<string, string>) => off.app.inject({ method, url: path, headers: given })
      const answer = await ask(headers)
      expect([answer.statusCode, answer.json()]).toMatchObject([
        ...[404, { error_code: 'feature_disabled', msg: 'Trusted devices are disabled' }],
      ])
      expect((await ask({})).statusCode).toBe(401)
    }
  })

  test('a token changes nothing, and costs nothing; nor does one where the user has no factor', async () => {
    const user = await trusted()
    const { userId } = await service.signedIn('plain@example.com')
    expect(userId).toBeTruthy()
    const cost = async (at: TestService, email: string, token?: string) => {
      let answer: Answer | undefined
      const statements = await statementsOf(async () => {
        answer = await signIn(at, { email }, token)
      })
      return [statements.length, levelOf(answer as Answer), nextOf(answer as Answer)]
    }
    await signIn(off, user)
    const without = await cost(off, user.email)
    expect(without[0]).toBeGreaterThan(0)
    expect(await cost(off, user.email, user.device.token)).toEqual(without)
    expect(await cost(service, user.email)).toEqual(without)
    expect(await cost(service, 'plain@example.com', user.device.token)).toEqual(without)
  })
})
