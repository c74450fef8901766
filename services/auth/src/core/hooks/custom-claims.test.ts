import { statementsOf } from '@services/common/testing/database/statements'
import { perFile } from '@services/common/testing/per-file'
import { expect, onTestFinished, test } from 'vitest'
import { type OpenIdProvider, signInAt, startOpenIdProvider } from '../../../test/openid-provider.ts'
import { challenge, totpCode, withTotp } from '../../../test/second-factors.ts'
import {
  type Answer,
  test as base,
  codeIn,
  fragmentOf,
  linkPath,
  queryOf,
  startTestService,
  type TestService,
} from '../../../test/service.ts'
import type { Upstream } from '../../../test/upstream.ts'
import { type Decider, startDecider, unsignedHooks } from '../../../test/upstreams/hook-receiver.ts'
import { ethereumWallet } from '../../../test/wallets.ts'
import { PASSKEYS, signIn as signInByPasskey, withPasskey } from '../../../test/webauthn/passkeys.ts'

const POINT = 'AUTH_HOOK_CUSTOM_ACCESS_TOKEN'
const password = 'correct horse'
const AT_GOOGLE = '/authorize?provider=google&redirect_to=https://site.example/app'

interface Question {
  user_id: string
  authentication_method: string
  claims: Record<string, unknown> & { sub: string; session_id: string; exp: number; iat: number }
}

const answer = (claims: object) => ({ claims })
const refuse = () => ({ error: { http_code: 403, message: 'no token today' } })

const startReceiver = () => startDecider<Question>(({ claims }) => answer(claims))

const settingsOf = (receiver: Upstream) => unsignedHooks(receiver, 'CUSTOM_ACCESS_TOKEN')

const hooked = base.extend<object & { receiver: Decider<Question>; google: OpenIdProvider; on: TestService }>({
  receiver: perFile(() => startReceiver()),
  google: perFile(() => startOpenIdProvider()),
  on: [
    async ({ service, receiver, google }, use) => {
      const settings = {
        ...settingsOf(receiver),
        ...google.settings('GOOGLE'),
        ...PASSKEYS,
        AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
        AUTH_EXTERNAL_WEB3_ETHEREUM_ENABLED: 'true',
        AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false',
        AUTH_RATE_LIMIT_EMAIL_SENT: '1000',
      }
      const on = await service.with(settings)
      await use({ ...on, with: (more) => service.with({ ...settings, ...more }) })
      await on.close()
    },
    { scope: 'file' },
  ],
})

interface Given {
  on: TestService
  google: OpenIdProvider
  email: string
}

/** Ways to a token: each prepares a request that can be made again as long as nothing was used up. */
const WAYS: Record<string, [string, (given: Given) => Promise<() => Promise<Answer>>]> = {
  'a password': [
    'password',
    async ({ on, email }) => {
      await on.signedIn(email)
      return () => on.post('/token?grant_type=password', { email, password })
    },
  ],
  'a refresh token': [
    'token_refresh',
    async ({ on, email }) => {
      const { refreshToken: refresh_token } = await on.signedIn(email)
      return () => on.post('/token?grant_type=refresh_token', { refresh_token })
    },
  ],
  'a sign-up': [
    'password',
    async ({ on, email }) => {
      const open = await on.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
      onTestFinished(() => open.close())
      return () => open.post('/signup', { email, password })
    },
  ],
  'no address': [
    'anonymous',
    async ({ on }) =>
      () =>
        on.post('/signup', {}),
  ],
  'a code': [
    'otp',
    async ({ on, email }) => {
      await on.post('/otp', { email })
      const token = codeIn((await on.mailbox.waitFor(email)).text)
      return () => on.post('/verify', { type: 'email', email, token })
    },
  ],
  'a link': [
    'otp',
    async ({ on, email }) => {
      await on.post('/signup', { email, password })
      const path = linkPath((await on.mailbox.waitFor(email)).text)
      return () => on.get(path)
    },
  ],
  'an auth code': [
    'email/signup',
    async ({ on, email }) => {
      const verifier = 'v'.repeat(43)
      await on.post('/signup', { email, password, code_challenge: verifier, code_challenge_method: 'plain' })
      const { code: auth_code } = queryOf(await on.get(linkPath((await on.mailbox.waitFor(email)).text)))
      return () => on.post('/token?grant_type=pkce', { auth_code, code_verifier: verifier })
    },
  ],
  'a change of address': [
    'email_change',
    async ({ on, email }) => {
      const { auth } = await on.signedIn(email)
      await on.put('/user', { email: `new-${email}` }, auth)
      const path = linkPath((await on.mailbox.waitFor(`new-${email}`)).text)
      return () => on.get(path)
    },
  ],
  'an id_token': [
    'oauth',
    async ({ on, google, email }) => {
      const iat = Math.floor(on.clock.now().getTime() / 1000)
      const id_token = await google.idToken({ sub: email, email, email_verified: true, iat, exp: iat + 300 })
      return () => on.post('/token?grant_type=id_token', { provider: 'google', id_token })
    },
  ],
  'a wallet': [
    'web3',
    async ({ on }) => {
      const body = ethereumWallet().body(on.clock.now())
      return () => on.post('/token?grant_type=web3', body)
    },
  ],
  // Its challenge is spent before: each request begins anew.
  'a passkey': [
    'passkey',
    async ({ on, email }) => {
      const user = await withPasskey(on, {}, email)
      return () => signInByPasskey(on, user)
    },
  ],
  'an authenticator app': [
    'totp',
    async ({ on }) => {
      const user = await withTotp(on)
      on.clock.advance({ seconds: 30 })
      const challenge_id = await challenge(on, user, user.totp.id)
      const code = totpCode(user.totp.secret, on.clock.now())
      return () => on.post(`/factors/${user.totp.id}/verify`, { challenge_id, code }, user.auth)
    },
  ],
  'a recovery code': [
    'mfa/recovery_code',
    async ({ on }) => {
      const user = await withTotp(on)
      const [code] = user.recoveryCodes
      return () => on.post('/factors/recovery-codes/verify', { code }, user.auth)
    },
  ],
}

const claimsIn = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] as string, 'base64url').toString())

const sessionIn = (given: Answer) => (given.body?.access_token ? given.body : fragmentOf(given))

async function rowsOf({ deps: { pool } }: TestService) {
  const { rows } = await pool.query(`select
    (select count(*) from users) as users, (select count(*) from sessions) as sessions,
    (select count(*) from identities) as identities, (select count(*) from audit_log_entries where payload ->> 'action' <> 'login_failed') as audited`)
  return rows[0]
}

hooked.for(Object.entries(WAYS))(
  'a token by %s has the claims of the hook, whose refusal uses nothing up',
  async ([name, [method, prepare]], { on, receiver, google }) => {
    receiver.decide(({ claims }) => answer(claims))
    const email = `${name.replaceAll(' ', '-')}@example.com`
    const signIn = await prepare({ on, google, email })
    await on.settled()
    const before = await rowsOf(on)

    receiver.decide(refuse)
    const refused = await signIn()
    const refusal = refused.body ?? fragmentOf(refused)
    expect(refusal).toMatchObject({ error_code: 'hook_rejected' })
    expect(refusal.msg ?? refusal.error_description).toBe('no token today')
    expect(refused.status).toBe(refused.body ? 403 : 303)
    expect(await rowsOf(on)).toEqual(before)

    receiver.requests.length = 0
    receiver.decide(({ claims }) => answer({ ...claims, department: 'sales', role: 'clerk' }))
    const given = sessionIn(await signIn())
    const claims = claimsIn(given.access_token)
    expect(claims).toMatchObject({ department: 'sales', role: 'clerk' })
    const [asked] = receiver.asked()
    expect(receiver.requests).toHaveLength(1)
    const { department: _d, role: _r, ...rest } = claims
    expect(asked).toMatchObject({ user_id: claims.sub, authentication_method: method, claims: rest })
    expect(asked?.claims.role).toBe('authenticated')
    const auth = { authorization: `Bearer ${given.access_token}` }
    expect((await on.get('/user', auth)).body.id).toBe(claims.sub)
    const refreshed = await on.post('/token?grant_type=refresh_token', { refresh_token: given.refresh_token })
    expect(claimsIn(refreshed.body.access_token)).toMatchObject({
      session_id: claims.session_id,
      department: 'sales',
    })
  },
)

hooked(
  'a sign-in at a provider has the claims of the hook; its refusal is in the redirect, and makes no user',
  async ({ on, receiver, google }) => {
    google.next({ sub: 'at-provider', email: 'at-provider@example.com', email_verified: true })
    receiver.decide(refuse)
    const before = await rowsOf(on)
    const refused = await signInAt(on, google, AT_GOOGLE)
    expect(fragmentOf(refused)).toMatchObject({ error_code: 'hook_rejected', error_description: 'no token today' })
    expect(await rowsOf(on)).toEqual(before)
    receiver.decide(({ claims }) => answer({ ...claims, department: 'sales' }))
    const { access_token: token } = fragmentOf(await signInAt(on, google, AT_GOOGLE))
    expect(claimsIn(token as string)).toMatchObject({ department: 'sales', email: 'at-provider@example.com' })
  },
)

hooked('a hook that calls the service about the same user meanwhile gets its answer', async ({ on, receiver }) => {
  const email = 'calls-back@example.com'
  await on.post('/signup', { email, password })
  const path = linkPath((await on.mailbox.waitFor(email)).text)
  let visits = 0
  receiver.decide(async ({ user_id, claims }) => {
    const { status } = await on.put(`/admin/users/${user_id}`, { app_metadata: { visits: ++visits } }, on.admin)
    expect(status).toBe(200)
    expect((await on.get(`/admin/users/${user_id}`, on.admin)).status).toBe(200)
    return answer(claims)
  })
  expect(fragmentOf(await on.get(path)).access_token).toBeTruthy()
  const { refresh_token } = (await on.post('/token?grant_type=password', { email, password })).body
  const refreshed = await on.post('/token?grant_type=refresh_token', { refresh_token })
  // Each of the three asks twice: the first answer was about a user who has changed.
  expect(refreshed.body.user.app_metadata.visits).toBe(6)
})

hooked('an answer about a user who has changed meanwhile is asked for again', async ({ on, receiver }) => {
  receiver.decide(({ claims }) => answer(claims))
  const { userId, refreshToken: refresh_token } = await on.signedIn('promoted@example.com')
  receiver.requests.length = 0
  receiver.decide(async ({ user_id, claims }) => {
    await on.put(`/admin/users/${user_id}`, { role: 'editor' }, on.admin)
    return answer({ ...claims, seen: claims.role })
  })
  const { body } = await on.post('/token?grant_type=refresh_token', { refresh_token })
  expect(claimsIn(body.access_token)).toMatchObject({ sub: userId, role: 'editor', seen: 'editor' })
  expect(receiver.requests).toHaveLength(2)
})

/** Ways of a known user to a token, with the status that refuses a ban. */
const WAYS_OF_A_USER = [
  ['a password', 400],
  ['a refresh token', 400],
  ['an id_token', 403],
  ['a passkey', 403],
  ['an authenticator app', 403],
  ['a recovery code', 403],
] as const

hooked.for(WAYS_OF_A_USER)(
  'a ban while the hook is asked ends a sign-in by %s, and a right that is revoked then is in no token',
  async ([name, status], { on, google, receiver }) => {
    receiver.decide(({ claims }) => answer(claims))
    const given = { on, google, email: `known-by-${name.replaceAll(' ', '-')}@example.com` }
    const [, prepare] = WAYS[name] as (typeof WAYS)[string]
    // The first sign-in makes the user.
    if (name === 'an id_token') await (await prepare(given))()
    const signIn = await prepare(given)
    receiver.decide(async ({ user_id, claims }) => {
      const ban = { ban_duration: '1h', app_metadata: { is_owner: true } }
      expect((await on.put(`/admin/users/${user_id}`, ban, on.admin)).status).toBe(200)
      return answer(claims)
    })
    receiver.requests.length = 0
    expect(await signIn()).toMatchObject({ status, body: { error_code: 'user_banned' } })
    const userId = receiver.asked()[0]?.user_id
    await on.put(`/admin/users/${userId}`, { ban_duration: 'none' }, on.admin)

    receiver.decide(async ({ claims }) => {
      if (receiver.requests.length === 1) {
        await on.put(`/admin/users/${userId}`, { app_metadata: { is_owner: false } }, on.admin)
      }
      const { is_owner: isOwner } = claims.app_metadata as { is_owner: boolean }
      return answer({ ...claims, role: isOwner ? 'owner' : 'clerk' })
    })
    receiver.requests.length = 0
    const { body } = await signIn()
    expect(claimsIn(body.access_token)).toMatchObject({ app_metadata: { is_owner: false }, role: 'clerk' })
    expect(body.user.app_metadata).toMatchObject({ is_owner: false })
    expect(receiver.requests).toHaveLength(2)
  },
)

hooked.for([
  ['a password', 'invalid_credentials'],
  ['a passkey', 'webauthn_verification_failed'],
] as const)(
  'a user who is deleted while the hook is asked is not signed in by %s',
  async ([name, error_code], { on, google, receiver }) => {
    receiver.decide(({ claims }) => answer(claims))
    const [, prepare] = WAYS[name] as (typeof WAYS)[string]
    const signIn = await prepare({ on, google, email: `deleted-with-${name.replaceAll(' ', '-')}@example.com` })
    receiver.decide(async ({ user_id, claims }) => {
      await on.delete(`/admin/users/${user_id}`, on.admin)
      return answer(claims)
    })
    expect(await signIn()).toMatchObject({ status: 400, body: { error_code } })
  },
)

hooked('a hook is asked once about a sign-in, however slow it is', async ({ on, receiver }) => {
  receiver.decide(({ claims }) => answer(claims))
  await on.signedIn('patient@example.com')
  receiver.requests.length = 0
  receiver.decide(({ claims }) => {
    on.clock.advance({ seconds: 2 })
    return answer(claims)
  })
  const { status } = await on.post('/token?grant_type=password', { email: 'patient@example.com', password })
  expect([status, receiver.requests.length]).toEqual([200, 1])
})

hooked('a session that ends while the hook is asked gets no token', async ({ on, receiver }) => {
  receiver.decide(({ claims }) => answer(claims))
  const { userId, refreshToken: refresh_token } = await on.signedIn('ended@example.com')
  receiver.decide(async ({ claims }) => {
    await on.delete(`/admin/users/${userId}/sessions`, on.admin)
    return answer(claims)
  })
  expect(await on.post('/token?grant_type=refresh_token', { refresh_token })).toMatchObject({
    status: 400,
    body: { error_code: 'refresh_token_not_found' },
  })
})

hooked('parallel refreshes of one token get one successor', async ({ on, receiver }) => {
  receiver.decide(({ claims }) => answer(claims))
  const { refreshToken: refresh_token } = await on.signedIn('parallel@example.com')
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => on.post('/token?grant_type=refresh_token', { refresh_token })),
  )
  expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
})

hooked.for<[string, (asked: Question) => object, string]>([
  ['gives none', () => ({}), 'output claims field is missing'],
  ['drops what is needed', ({ claims: { aud: _, ...rest } }) => answer(rest), 'aud is required'],
  [
    'changes types',
    ({ claims }) => answer({ ...claims, exp: '1', amr: [1], app_metadata: [] }),
    'exp must be an integer',
  ],
  ['names another user', ({ claims }) => answer({ ...claims, sub: 'somebody' }), 'output claims change sub'],
  ['names another session', ({ claims }) => answer({ ...claims, session_id: 'x' }), 'output claims change session_id'],
  [
    'names another issuer',
    ({ claims }) => answer({ ...claims, iss: 'https://evil.example' }),
    'output claims change iss',
  ],
  ['adds a client', ({ claims }) => answer({ ...claims, client_id: 'app' }), 'output claims change client_id'],
  ['is issued earlier', ({ claims }) => answer({ ...claims, iat: 1 }), 'output claims change iat'],
  ['lasts longer', ({ claims }) => answer({ ...claims, exp: claims.exp + 1 }), 'output claims expire later'],
  ['ends at its issue', ({ claims }) => answer({ ...claims, exp: claims.iat }), 'expire before they are issued'],
  ['fits in no header', ({ claims }) => answer({ ...claims, note: 'x'.repeat(8000) }), 'have more than 8192 bytes'],
])('a hook that %s gets no token', async ([, how, message], { on, receiver }) => {
  await on.post('/admin/users', { email: 'guarded@example.com', password, email_confirm: true }, on.admin)
  receiver.decide(how)
  const refused = await on.post('/token?grant_type=password', { email: 'guarded@example.com', password })
  expect(refused).toMatchObject({ status: 500, body: { error_code: 'unexpected_failure' } })
  expect(refused.body.msg).toContain(message)
})

hooked('a hook may shorten a token, and drop claims that nobody needs', async ({ on, receiver }) => {
  receiver.decide(({ claims: { user_metadata: _, amr: _a, ...claims } }) =>
    answer({ ...claims, exp: claims.exp - 3000 }),
  )
  const { accessToken } = await on.signedIn('shorter@example.com')
  const { exp, iat, ...claims } = claimsIn(accessToken)
  expect(exp - iat).toBe(600)
  expect(claims).not.toHaveProperty('amr')
  expect(claims).not.toHaveProperty('user_metadata')
})

hooked('an additive hook names only what it adds', async ({ on, receiver }) => {
  const additive = await on.with({ [`${POINT}_ADDITIVE`]: 'true' })
  onTestFinished(() => additive.close())
  receiver.decide(() => answer({ department: 'sales' }))
  const { accessToken, userId } = await additive.signedIn('additive@example.com')
  expect(claimsIn(accessToken)).toMatchObject({ sub: userId, email: 'additive@example.com', department: 'sales' })
  receiver.decide(() => ({}))
  await additive.signedIn('adds-nothing@example.com')
  receiver.decide(() => answer({ sub: 'somebody' }))
  const refused = await additive.post('/token?grant_type=password', { email: 'additive@example.com', password })
  expect(refused.status).toBe(500)
})

hooked('a function of the database is asked in the transaction, where the new user is', async ({ on }) => {
  await on.deps.pool.query(`create schema claims; create function claims.add(event jsonb) returns jsonb language sql as $$
    select jsonb_build_object('claims', event -> 'claims' || jsonb_build_object('known',
      (select count(*) from users where id = (event ->> 'user_id')::uuid))) $$`)
  const within = await on.with({
    [`${POINT}_URI`]: 'pg-functions://postgres/claims/add',
    [`${POINT}_UNSIGNED`]: 'false',
    AUTH_MAILER_AUTOCONFIRM: 'true',
  })
  onTestFinished(() => within.close())
  const { body } = await within.post('/signup', { email: 'within@example.com', password })
  expect(claimsIn(body.access_token)).toMatchObject({ email: 'within@example.com', known: 1 })
})

hooked(
  'a hook by HTTP costs a sign-in by password or passkey one statement, a function its transaction and two',
  async ({ on, receiver }) => {
    receiver.decide(({ claims }) => answer(claims))
    await on.deps.pool.query(
      `create function public.as_given(event jsonb) returns jsonb language sql as 'select event'`,
    )
    const email = 'counted@example.com'
    const user = await withPasskey(on, {}, email)
    const costOf = async (settings: Record<string, string>) => {
      const own = await on.with(settings)
      const signIns = [
        () => own.post('/token?grant_type=password', { email, password }),
        () => signInByPasskey(own, user),
      ]
      const costs: number[] = []
      for (const signIn of signIns) {
        costs.push((await statementsOf(async () => expect((await signIn()).status).toBe(200))).length)
      }
      await own.close()
      return costs
    }
    const without = await costOf({ [`${POINT}_ENABLED`]: 'false' })
    const byFunction = { [`${POINT}_URI`]: 'pg-functions://postgres/public/as_given', [`${POINT}_UNSIGNED`]: 'false' }
    expect(await costOf({})).toEqual(without.map((cost) => cost + 1))
    expect(await costOf(byFunction)).toEqual(without.map((cost) => cost + 4))
  },
)

test('one connection is enough, because none is held while the hook is asked', async () => {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.close())
  const service = await startTestService({
    ...settingsOf(receiver),
    AUTH_DB_MAX_POOL_SIZE: '1',
    AUTH_WORKERS_ENABLED: 'false',
    AUTH_MAILER_AUTOCONFIRM: 'true',
  })
  onTestFinished(() => service.close())
  receiver.decide(async ({ claims }) => {
    expect((await service.deps.pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    return answer(claims)
  })
  const { body } = await service.post('/signup', { email: 'one@example.com', password })
  const { refresh_token } = (await service.post('/token?grant_type=password', { email: 'one@example.com', password }))
    .body
  expect(body.access_token && refresh_token).toBeTruthy()
  expect((await service.post('/token?grant_type=refresh_token', { refresh_token })).status).toBe(200)
})

test('functions that hang leave connections to other requests, and delay or refuse sign-ins alone', async () => {
  const service = await startTestService({
    [`${POINT}_ENABLED`]: 'true',
    [`${POINT}_URI`]: 'pg-functions://postgres/claims/wait',
    AUTH_DB_MAX_POOL_SIZE: '4',
    AUTH_WORKERS_ENABLED: 'false',
    AUTH_MAILER_AUTOCONFIRM: 'true',
  })
  onTestFinished(() => service.close())
  const { pool } = service.deps
  await pool.query(`create schema claims; create function claims.wait(event jsonb) returns jsonb language plpgsql as $$
    begin perform pg_advisory_xact_lock_shared(1); return event; end $$`)
  const email = 'hangs@example.com'
  await service.post('/signup', { email, password })
  const holder = await pool.connect()
  onTestFinished(() => holder.release(true))
  await holder.query('select pg_advisory_lock(1)')
  const signIns = Array.from({ length: 8 }, () => service.post('/token?grant_type=password', { email, password }))
  await expect.poll(() => pool.totalCount - pool.idleCount).toBeGreaterThanOrEqual(3)
  for (let others = 0; others < 5; others++) {
    expect((await service.get('/admin/users', service.admin)).status).toBe(200)
  }
  await holder.query('select pg_advisory_unlock(1)')
  expect((await Promise.all(signIns)).map(({ status }) => status)).toEqual(signIns.map(() => 200))
})
