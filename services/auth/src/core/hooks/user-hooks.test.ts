import { perFile } from '@services/common/testing/per-file'
import { test as base, describe, expect, onTestFinished } from 'vitest'
import { type OpenIdProvider, signInAt, startOpenIdProvider } from '../../../test/openid-provider.ts'
import { type Answer, codeIn, fragmentOf, startTestService, type TestService } from '../../../test/service.ts'
import type { Upstream } from '../../../test/upstream.ts'
import { startDecider, unsignedHooks } from '../../../test/upstreams/hook-receiver.ts'
import { ethereumWallet } from '../../../test/wallets.ts'
import { PASSKEYS, SITE } from '../../../test/webauthn/passkeys.ts'
import { createSecurityKey } from '../../../test/webauthn/security-key.ts'

const password = 'correct horse'
const NAMES = { 'before-user-created': 'BEFORE_USER_CREATED', 'after-user-created': 'AFTER_USER_CREATED' }
type Name = keyof typeof NAMES

interface Receiver extends Upstream {
  /** Sets the refusal of each hook from now on. */
  refuse(refusals: Partial<Record<Name, object>>): void
  /** Users that a hook was asked about. */
  // biome-ignore lint/suspicious/noExplicitAny: users are what the test says they are
  asked(name: Name): any[]
}

// biome-ignore lint/suspicious/noExplicitAny: as above
type Asked = { metadata: { name: Name }; user: any }

async function startReceiver(): Promise<Receiver> {
  const receiver = await startDecider<Asked>(() => ({}))
  const refuse: Receiver['refuse'] = (refusals) => {
    receiver.requests.length = 0
    receiver.decide(({ metadata }) => ({ error: refusals[metadata.name] }))
  }
  const asked = (name: Name) => receiver.asked().flatMap(({ metadata, user }) => (metadata.name === name ? [user] : []))
  return { ...receiver, refuse, asked }
}

const test = base.extend<object & { receiver: Receiver; google: OpenIdProvider; on: TestService }>({
  receiver: perFile(() => startReceiver()),
  google: perFile(() => startOpenIdProvider()),
  on: [
    async ({ receiver, google }, use) => {
      const on = await startTestService({
        ...unsignedHooks(receiver, ...Object.values(NAMES)),
        ...google.settings('GOOGLE'),
        ...PASSKEYS,
        AUTH_PASSKEY_SIGNUP_ENABLED: 'true',
        AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
        AUTH_EXTERNAL_WEB3_ETHEREUM_ENABLED: 'true',
        AUTH_RATE_LIMIT_EMAIL_SENT: '1000',
        AUTH_SMTP_MAX_FREQUENCY: '0',
        AUTH_MAILER_SIGN_IN_LINK_MAX_FREQUENCY: '0',
      })
      await use(on)
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

const idToken = ({ on, google, email }: Given, verified: boolean) => {
  const iat = Math.floor(on.clock.now().getTime() / 1000)
  return google.idToken({ sub: email, email, email_verified: verified, iat, exp: iat + 300 })
}

const byIdToken = (given: Given, verified: boolean) => async () =>
  given.on.post('/token?grant_type=id_token', { provider: 'google', id_token: await idToken(given, verified) })

const byLink =
  ({ on, email }: Given, type: string) =>
  () =>
    on.post('/admin/generate_link', { type, email, password }, on.admin)

/** Ways to a new user, with the provider that it has then; each request can be made again. */
const WAYS: Record<string, [string | undefined, (given: Given) => () => Promise<Answer>]> = {
  '/signup': [
    'email',
    ({ on, email }) =>
      () =>
        on.post('/signup', { email, password, data: { name: 'Ada' } }),
  ],
  '/signup anonymously': [
    undefined,
    ({ on }) =>
      () =>
        on.post('/signup', {}),
  ],
  '/otp': [
    'email',
    ({ on, email }) =>
      () =>
        on.post('/otp', { email }),
  ],
  '/magiclink': [
    'email',
    ({ on, email }) =>
      () =>
        on.post('/magiclink', { email }),
  ],
  '/invite': [
    'email',
    ({ on, email }) =>
      () =>
        on.post('/invite', { email }, on.admin),
  ],
  'a link to sign up': ['email', (given) => byLink(given, 'signup')],
  'a link that invites': ['email', (given) => byLink(given, 'invite')],
  'a magic link': ['email', (given) => byLink(given, 'magiclink')],
  'an id_token': ['google', (given) => byIdToken(given, true)],
  'an id_token with an unverified address': ['email', (given) => byIdToken(given, false)],
  'a wallet': [
    'web3',
    ({ on }) =>
      () =>
        on.post('/token?grant_type=web3', ethereumWallet().body(on.clock.now())),
  ],
  'a passkey alone': [
    'passkey',
    ({ on, email }) =>
      async () => {
        const { body } = await on.post('/passkeys/signup/options', { email })
        const credential = createSecurityKey().create({ ...SITE, challenge: body.options.challenge })
        return on.post('/passkeys/signup/verify', { email, challenge_id: body.challenge_id, credential } as object)
      },
  ],
  '/callback': [
    'google',
    ({ on, google, email }) =>
      () => {
        google.next({ sub: email, email, email_verified: true })
        return signInAt(on, google, '/authorize?provider=google&redirect_to=https://site.example/app')
      },
  ],
}

const usersOf = async ({ deps: { pool } }: TestService) => (await pool.query('select id from users')).rows.length

test.for(Object.entries(WAYS))(
  '%s makes a user that the hook has admitted, and is asked about once more',
  async ([name, [provider, way]], { on, receiver, google }) => {
    const email = `${name.replaceAll(/\W/g, '')}@example.com`
    const create = way({ on, google, email })
    const before = await usersOf(on)
    receiver.refuse({ 'before-user-created': { http_code: 418, message: 'members only' } })
    const refused = await create()
    const refusal = refused.body ?? fragmentOf(refused)
    expect(refusal).toMatchObject({ error_code: 'hook_rejected' })
    expect(refusal.msg ?? refusal.error_description).toBe('members only')
    expect(refused.status).toBe(refused.body ? 418 : 302)
    await on.settled()
    expect(await usersOf(on)).toBe(before)
    expect(receiver.asked('before-user-created')).toHaveLength(1)
    expect(receiver.asked('after-user-created')).toEqual([])
    expect(on.mailbox.messages({ to: email })).toEqual([])

    receiver.refuse({})
    await create()
    await on.settled()
    const asked = receiver.asked('before-user-created')
    const isAnonymous = provider === undefined
    const hasAddress = !isAnonymous && provider !== 'web3' && provider !== 'passkey'
    expect(asked).toMatchObject([
      {
        email: hasAddress ? email : '',
        ...(provider === 'passkey' && { new_email: email }),
        is_anonymous: isAnonymous,
        identities: [],
        app_metadata: isAnonymous ? {} : { provider, providers: [provider] },
      },
    ])
    expect(receiver.asked('after-user-created').map(({ id }) => id)).toEqual([asked[0].id])
    expect((await on.get(`/admin/users/${asked[0].id}`, on.admin)).body.id).toBe(asked[0].id)
    expect(await usersOf(on)).toBe(before + 1)
  },
)

describe('neither hook is asked', () => {
  test('by an address that has a user', async ({ on, receiver, google }) => {
    receiver.refuse({})
    await on.signedIn('has-one@example.com')
    await on.post('/signup', { email: 'repeats@example.com', password })
    await on.post('/invite', { email: 'invited@example.com' }, on.admin)
    await on.settled()
    receiver.refuse({ 'before-user-created': { message: 'no' } })
    for (const email of ['has-one@example.com', 'repeats@example.com', 'invited@example.com']) {
      expect((await on.post('/signup', { email, password })).status).toBe(200)
      expect((await on.post('/otp', { email })).status).toBe(200)
    }
    expect((await on.post('/invite', { email: 'invited@example.com' }, on.admin)).status).toBe(200)
    await byIdToken({ on, google, email: 'has-one@example.com' }, true)()
    await on.settled()
    expect(receiver.requests).toEqual([])
  })

  test('by a request that makes no user', async ({ on, receiver }) => {
    receiver.refuse({ 'before-user-created': { message: 'no' } })
    const closed = await on.with({ AUTH_DISABLE_SIGNUP: 'true' })
    onTestFinished(() => closed.close())
    expect((await on.post('/otp', { email: 'none@example.com', create_user: false })).status).toBe(200)
    expect((await closed.post('/otp', { email: 'none@example.com' })).status).toBe(200)
    expect((await closed.post('/signup', { email: 'none@example.com', password })).body.error_code).toBe(
      'signup_disabled',
    )
    const wallet = await closed.post('/token?grant_type=web3', ethereumWallet().body(on.clock.now()))
    expect(wallet.body.error_code).toBe('signup_disabled')
    await on.settled()
    expect(receiver.requests).toEqual([])
  })

  test('by an admin who creates a user', async ({ on, receiver }) => {
    receiver.refuse({ 'before-user-created': { message: 'no' } })
    expect((await on.post('/admin/users', { email: 'by-admin@example.com' }, on.admin)).status).toBe(200)
    expect(receiver.requests).toEqual([])
  })
})

test('of sign-ups at once with one address one makes the user, whom both hooks see and the last once', async ({
  on,
  receiver,
}) => {
  const open = await on.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
  const replica = await on.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
  onTestFinished(async () => {
    await open.close()
    await replica.close()
  })
  receiver.refuse({})
  const signUp = (at: TestService) => at.post('/signup', { email: 'at-once@example.com', password })
  const answers = await Promise.all([open, replica, open, replica].map(signUp))
  const made = answers.filter(({ status }) => status === 200)
  expect(made).toHaveLength(1)
  const id = made[0]?.body.user.id
  expect(receiver.asked('before-user-created').filter((asked) => asked.id === id)).toHaveLength(1)
  expect(receiver.asked('after-user-created').map((asked) => asked.id)).toEqual([id])
})

test('a failure of after-user-created is that of the request, whose user exists', async ({ on, receiver }) => {
  const open = await on.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
  onTestFinished(() => open.close())
  receiver.refuse({ 'after-user-created': { http_code: 409, message: 'no seat' } })
  const email = 'no-seat@example.com'
  expect(await open.post('/signup', { email, password })).toMatchObject({
    ...{ status: 409, body: { error_code: 'hook_rejected', msg: 'no seat' } },
  })
  expect((await open.post('/token?grant_type=password', { email, password })).status).toBe(200)
})

test('a code of an admitted user signs in, and the user is the one that the hook saw', async ({ on, receiver }) => {
  receiver.refuse({})
  const email = 'admitted@example.com'
  await on.post('/otp', { email, data: { team: 'blue' } })
  const token = codeIn((await on.mailbox.waitFor(email)).text)
  const { body } = await on.post('/verify', { type: 'email', email, token })
  expect(receiver.asked('before-user-created')).toMatchObject([{ id: body.user.id, user_metadata: { team: 'blue' } }])
})

test.for<[string, Record<string, string>, boolean]>([
  ['another request has other data', {}, true],
  ['a setting confirms it', { AUTH_MAILER_AUTOCONFIRM: 'true' }, false],
])('a hook sees the user that a worker makes where %s', async ([, settings, isSecond], { on, receiver }) => {
  const own = await on.with(settings)
  onTestFinished(() => own.close())
  receiver.refuse({ 'before-user-created': { http_code: 403, message: 'not yet' } })
  const email = `made-${isSecond}@example.com`
  if (isSecond) await own.post('/otp', { email, data: { team: 'red' } })
  receiver.refuse({})
  await own.post('/otp', { email, data: { team: 'blue' } })
  await on.settled()
  const [{ id, ...asked }] = receiver.asked('before-user-created')
  const { body } = await on.get(`/admin/users/${id}`, on.admin)
  const { email_confirmed_at: confirmedAt, user_metadata: data } = body
  expect(asked.user_metadata).toEqual(data)
  expect([data.team, Boolean(asked.email_confirmed_at)]).toEqual(isSecond ? [undefined, false] : ['blue', true])
  expect(Boolean(confirmedAt)).toBe(!isSecond)
  expect(receiver.asked('before-user-created')).toHaveLength(1)
})

describe('a known address', () => {
  const respond = (receiver: Receiver, status: number, afterMs = 0) => {
    receiver.requests.length = 0
    receiver.answer((response) => void setTimeout(() => response.writeHead(status).end(), afterMs))
  }

  test('takes as long as one that the hook is asked about', async ({ on, receiver }) => {
    const fresh = await on.with({})
    onTestFinished(() => fresh.close())
    respond(receiver, 204, 200)
    await fresh.post('/signup', { email: 'slow@example.com', password })
    const begun = performance.now()
    await fresh.post('/signup', { email: 'slow@example.com', password })
    expect(performance.now() - begun).toBeGreaterThan(190)
    expect(receiver.asked('before-user-created')).toHaveLength(1)
  })

  test.for(['/signup', '/otp'])(
    'gets the answer of a new one at %s of a new process, and during an outage',
    async (path, { on, receiver }) => {
      const emailOf = (who: string) => `${who}-${path.slice(1)}@outage.example.com`
      await on.signedIn(emailOf('known'))
      const fresh = await on.with({})
      onTestFinished(() => fresh.close())
      const ask = async (who: string) => {
        receiver.requests.length = 0
        const { status, body } = await fresh.post(path, { email: emailOf(who), password })
        await on.settled()
        on.clock.advance({ seconds: 61 })
        return { status, code: body.error_code, asked: receiver.asked('before-user-created').length }
      }
      // The first question of a process is asked: no answer has shown yet how long it takes.
      receiver.refuse({ 'before-user-created': { http_code: 403, message: 'no' } })
      expect(await ask('known')).toEqual({ status: 200, code: undefined, asked: 1 })
      expect(await ask('known')).toEqual({ status: 200, code: undefined, asked: 0 })
      // The request asks once; at /otp a worker asks again.
      let left = 0
      const failing = async (who: string) => {
        left = 1
        receiver.answer((response) => void response.writeHead(left-- > 0 ? 500 : 204).end())
        return ask(who)
      }
      const outage = path === '/otp' ? { status: 200, code: undefined } : { status: 500, code: 'unexpected_failure' }
      expect(await failing('new')).toMatchObject(outage)
      expect(await failing('known')).toEqual({ ...outage, asked: 1 })
      expect(await ask('known')).toEqual({ status: 200, code: undefined, asked: 1 })
      expect(await ask('known')).toEqual({ status: 200, code: undefined, asked: 0 })
      expect(on.mailbox.messages({ to: emailOf('new') })).toHaveLength(path === '/otp' ? 1 : 0)
    },
  )

  test('is no concern of an admin who invites it during an outage', async ({ on, receiver }) => {
    respond(receiver, 204)
    await on.post('/invite', { email: 'invited-again@example.com' }, on.admin)
    respond(receiver, 500)
    expect((await on.post('/invite', { email: 'invited-again@example.com' }, on.admin)).status).toBe(200)
    expect(receiver.requests).toEqual([])
  })
})
