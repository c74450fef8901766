// Every way that causes an event, through the public door. An event without a way here fails, and so does a way that
// causes others than it says.
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import pg from 'pg'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { EVENTS } from '../src/core/webhooks/events.ts'
import { deleteExpired } from '../src/housekeeping.ts'
import { freshEmail, remove } from './admin.ts'
import { authHere } from './command-line.ts'
import { identityIn } from './linked-identities.ts'
import { type OpenIdProvider, startOpenIdProvider } from './openid-provider.ts'
import { enrollTotp, signInAgain, verifyTotp, withTotp } from './second-factors.ts'
import { type Answer, codeIn, linkPath, startTestService, type TestService } from './service.ts'
import { addPausedReceiver, eventsDuring, storedEvents } from './upstreams/paused-receiver.ts'
import { startSmsGateways } from './upstreams/sms-gateways.ts'
import {
  ask,
  assertion,
  PASSKEYS,
  prove,
  register,
  signIn as signInByPasskey,
  withPasskey,
} from './webauthn/passkeys.ts'

const password = 'correct horse'

let google: OpenIdProvider
let service: TestService
/** The same with other settings. */
let confirming: TestService
let limited: TestService
beforeAll(async () => {
  google = await startOpenIdProvider()
  const gateways = await startSmsGateways()
  service = await startTestService({
    ...google.settings('GOOGLE'),
    ...gateways.settings('twilio'),
    ...PASSKEYS,
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false',
    AUTH_RATE_LIMIT_EMAIL_SENT: '1000',
    AUTH_RATE_LIMIT_VERIFY: '1000',
    AUTH_RATE_LIMIT_FAILED_SIGN_INS: '1',
    AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
    AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
  })
  await addPausedReceiver(service)
  confirming = await service.with({ AUTH_MAILER_AUTOCONFIRM: 'true', AUTH_SMS_AUTOCONFIRM: 'true' })
  limited = await service.with({
    AUTH_SESSIONS_TIMEBOX: '3600',
    AUTH_SESSIONS_INACTIVITY_TIMEOUT: '3600',
    AUTH_ANONYMOUS_USERS_MAX_IDLE: '30d',
  })
  return async () => {
    await service.close()
    await gateways.close()
    await google.close()
  }
})

const post = (path: string, body: object = {}, headers = {}) => service.post(path, body, headers)
const asAdmin = (id: string, change: object) => service.put(`/admin/users/${id}`, change, service.admin)
const linkTo = async (email: string, subject?: string) =>
  linkPath((await service.mailbox.waitFor(email, subject ? { subject } : {})).text)
const idToken = (email: string, more: object = {}) => {
  const iat = Math.floor(service.clock.now().getTime() / 1000)
  return google.idToken({ sub: email, email, email_verified: true, iat, exp: iat + 300, ...more })
}
const atGoogle = async (email: string, headers = {}) =>
  post('/token?grant_type=id_token', { provider: 'google', id_token: await idToken(email) }, headers)
const byUser = async () => {
  const email = freshEmail()
  return { email, ...(await service.signedIn(email)) }
}
const settings = () => ({ AUTH_DATABASE_URL: service.deps.config.database.url, AUTH_PASSWORD_HASH_MEMORY_KIB: '64' })
const run = async (line: string) => expect((await authHere(line.split(' '), settings())).code).toBe(0)

/** Prepares, and returns the act that causes the events. */
type Way = () => Promise<() => Promise<unknown>>

/** Nothing to prepare. */
const only =
  (act: () => Promise<unknown>): Way =>
  async () =>
    act

const NEW = 'user.created'
const PROVEN = [NEW, 'user.confirmed']
const SIGNED_IN = 'session.created'
/** `session.ended` and its reason. */
const ended = (reason: string) => `session.ended ${reason}`

/** Events of each way, in their order. */
const WAYS: [string, string[], Way][] = [
  ['a sign-up', [NEW], only(() => post('/signup', { email: freshEmail(), password }))],
  [
    'a sign-up under autoconfirm',
    [...PROVEN, SIGNED_IN],
    only(() => confirming.post('/signup', { email: freshEmail(), password })),
  ],
  ['an anonymous sign-up', [NEW, SIGNED_IN], only(() => post('/signup'))],
  ['a sign-in link for an unknown address', [NEW], only(() => post('/otp', { email: freshEmail() }))],
  ['an invitation', [NEW], only(() => post('/invite', { email: freshEmail() }, service.admin))],
  [
    'a link that an admin makes',
    [NEW],
    only(() => post('/admin/generate_link', { type: 'signup', email: freshEmail(), password }, service.admin)),
  ],
  ['an admin who creates a user', [NEW], only(() => post('/admin/users', { email: freshEmail() }, service.admin))],
  [
    'an admin who creates a confirmed user',
    PROVEN,
    only(() => post('/admin/users', { email: freshEmail(), email_confirm: true }, service.admin)),
  ],
  ['a first sign-in at a provider', [...PROVEN, SIGNED_IN], only(() => atGoogle(freshEmail()))],
  [
    'an import',
    [NEW, NEW],
    async () => {
      const file = join(tmpdir(), `events-${process.pid}.jsonl`)
      const lines = [freshEmail(), freshEmail()].map((email) => JSON.stringify({ email }))
      await writeFile(file, lines.join('\n'))
      return () => run(`users import ${file}`)
    },
  ],
  ['the command line that creates a user', [NEW], only(() => run(`users create --email ${freshEmail()}`))],
  [
    'the proof of an address by link',
    ['user.confirmed', 'user.updated', SIGNED_IN],
    async () => {
      const email = freshEmail()
      await post('/signup', { email, password })
      const link = await linkTo(email)
      return () => service.get(link)
    },
  ],
  [
    'the confirmation by an admin',
    ['user.confirmed', 'user.updated'],
    async () => {
      const { body } = await post('/admin/users', { email: freshEmail() }, service.admin)
      return () => asAdmin(body.id, { email_confirm: true })
    },
  ],
  [
    'a sign-in by password',
    [SIGNED_IN],
    async () => {
      const { email } = await byUser()
      return () => signInAgain(service, email)
    },
  ],
  [
    'a sign-in by password with a trusted device',
    [SIGNED_IN],
    async () => {
      const { email, auth } = await withTotp(service)
      const { token } = (await post('/factors/trusted-devices', {}, auth)).body
      return () => post('/token?grant_type=password', { email, password }, { 'x-device-token': token })
    },
  ],
  [
    'a sign-in by link',
    [SIGNED_IN],
    async () => {
      const { email } = await byUser()
      await post('/magiclink', { email })
      const link = await linkTo(email)
      return () => service.get(link)
    },
  ],
  [
    'a sign-in at a provider',
    [SIGNED_IN],
    async () => {
      const email = freshEmail()
      await atGoogle(email)
      return () => atGoogle(email)
    },
  ],
  [
    'a sign-in at a provider that joins by its address',
    ['identity.linked', 'user.updated', SIGNED_IN],
    async () => {
      const { email } = await byUser()
      return () => atGoogle(email)
    },
  ],
  [
    'metadata of its user',
    ['user.updated'],
    async () => {
      const { auth } = await byUser()
      return () => service.put('/user', { data: { a: 1 } }, auth)
    },
  ],
  [
    'metadata by an admin',
    ['user.updated'],
    async () => {
      const { userId } = await byUser()
      return () => asAdmin(userId, { app_metadata: { plan: 'pro' } })
    },
  ],
  [
    'a request for another address',
    [],
    async () => {
      const { auth } = await byUser()
      return () => service.put('/user', { email: freshEmail() }, auth)
    },
  ],
  [
    'the proof of another address',
    ['email.changed', 'user.updated', SIGNED_IN],
    async () => {
      const { auth } = await byUser()
      const email = freshEmail()
      await service.put('/user', { email }, auth)
      const token = codeIn((await service.mailbox.waitFor(email)).text)
      return () => post('/verify', { type: 'email_change', email, token })
    },
  ],
  [
    'an address by an admin',
    ['email.changed', 'user.updated'],
    async () => {
      const { userId } = await byUser()
      return () => asAdmin(userId, { email: freshEmail() })
    },
  ],
  [
    'a number that is confirmed at once',
    ['identity.linked', 'phone.changed', 'user.updated'],
    async () => {
      const { auth } = await byUser()
      return () => confirming.put('/user', { phone: '4915100000021' }, auth)
    },
  ],
  [
    'a number that its user removes',
    ['identity.unlinked', 'phone.changed', 'user.updated'],
    async () => {
      const { auth } = await byUser()
      await confirming.put('/user', { phone: '4915100000022' }, auth)
      return () => service.put('/user', { phone: '' }, auth)
    },
  ],
  [
    'a new password',
    ['password.changed', ended('password_changed')],
    async () => {
      const { email, auth } = await byUser()
      await signInAgain(service, email)
      return () => service.put('/user', { password: 'another horse' }, auth)
    },
  ],
  [
    'a password by an admin',
    ['password.changed', ended('password_changed')],
    async () => {
      const { userId } = await byUser()
      return () => asAdmin(userId, { password: 'another horse' })
    },
  ],
  [
    'a password from the command line',
    ['password.changed', ended('password_changed')],
    async () => {
      const { userId } = await byUser()
      return async () => {
        const line = `users set-password ${userId} --password-stdin`
        expect((await authHere(line.split(' '), settings(), 'another horse')).code).toBe(0)
      }
    },
  ],
  [
    'a ban',
    ['user.updated', 'user.banned'],
    async () => {
      const { userId } = await byUser()
      return () => asAdmin(userId, { ban_duration: '1h' })
    },
  ],
  [
    'a ban that is lifted',
    ['user.updated', 'user.unbanned'],
    async () => {
      const { userId } = await byUser()
      await asAdmin(userId, { ban_duration: '1h' })
      return () => asAdmin(userId, { ban_duration: 'none' })
    },
  ],
  [
    'signing out',
    [ended('signed_out')],
    async () => {
      const { auth } = await byUser()
      return () => post('/logout', {}, auth)
    },
  ],
  [
    'signing out elsewhere',
    [ended('signed_out')],
    async () => {
      const { email, auth } = await byUser()
      await signInAgain(service, email)
      return () => post('/logout?scope=others', {}, auth)
    },
  ],
  [
    'an admin who ends all sessions',
    [ended('ended_by_admin')],
    async () => {
      const { userId } = await byUser()
      return () => service.delete(`/admin/users/${userId}/sessions`, service.admin)
    },
  ],
  [
    'the command line that ends all sessions',
    [ended('ended_by_admin')],
    async () => {
      const { userId } = await byUser()
      return () => run(`users sign-out ${userId}`)
    },
  ],
  [
    'a refresh',
    [],
    async () => {
      const { refreshToken: refresh_token } = await byUser()
      return () => post('/token?grant_type=refresh_token', { refresh_token })
    },
  ],
  [
    'a reused refresh token',
    ['security.refresh_token_reused', ended('refresh_token_reused')],
    async () => {
      const { refreshToken: refresh_token } = await byUser()
      const from = (agent: string) =>
        post('/token?grant_type=refresh_token', { refresh_token }, { 'user-agent': agent })
      await from('Owner/1.0')
      service.clock.advance({ seconds: 11 })
      return () => from('Thief/1.0')
    },
  ],
  [
    'housekeeping that finds sessions past their limits',
    [ended('expired')],
    async () => {
      service.clock.advance({ seconds: 3 * 86_400 })
      await housekeep()
      await byUser()
      service.clock.advance({ seconds: 3 * 86_400 })
      return housekeep
    },
  ],
  [
    'an identity that its user links',
    ['identity.linked', 'user.updated', SIGNED_IN],
    async () => {
      const { auth } = await byUser()
      return async () => {
        const id_token = await idToken(freshEmail())
        return post('/token?grant_type=id_token', { provider: 'google', id_token, link_identity: true }, auth)
      }
    },
  ],
  [
    'an identity that its user unlinks',
    ['identity.unlinked', 'user.updated', ended('identity_unlinked')],
    async () => {
      const { email, auth } = await byUser()
      await atGoogle(email)
      const id = identityIn((await service.get('/user', auth)).body, 'google')
      return () => remove(service, `/user/identities/${id}`, auth, {})
    },
  ],
  [
    'the first proof of a factor',
    ['factor.verified', 'factor.verified'],
    async () => {
      const user = await byUser()
      const totp = await enrollTotp(service, user)
      return () => verifyTotp(service, user, totp)
    },
  ],
  [
    'a later proof of a factor',
    [ended('second_factor_proven')],
    async () => {
      const { email, totp } = await withTotp(service)
      const [first] = [await signInAgain(service, email), await signInAgain(service, email)]
      return () => verifyTotp(service, first, totp)
    },
  ],
  [
    'a factor that its user removes',
    ['factor.removed', 'factor.removed'],
    async () => {
      const { auth, totp } = await withTotp(service)
      return () => remove(service, `/factors/${totp.id}`, auth, {})
    },
  ],
  [
    'a factor that an admin removes',
    ['factor.removed', 'factor.removed'],
    async () => {
      const { userId, totp } = await withTotp(service)
      return () => service.delete(`/admin/users/${userId}/factors/${totp.id}`, service.admin)
    },
  ],
  [
    'a factor that the command line removes',
    ['factor.removed', 'factor.removed'],
    async () => {
      const { userId, totp } = await withTotp(service)
      return () => run(`users remove-factor ${userId} ${totp.id}`)
    },
  ],
  [
    'a passkey',
    ['passkey.created'],
    async () => {
      const user = await byUser()
      return () => register(service, user)
    },
  ],
  [
    'a sign-in by a passkey',
    [SIGNED_IN],
    async () => {
      const passkey = await withPasskey(service)
      const asked = await ask(service)
      return () => prove(service, asked.body.challenge_id, assertion(asked, passkey))
    },
  ],
  [
    'a passkey that its user removes',
    ['passkey.removed'],
    async () => {
      const { auth, passkeyId } = await withPasskey(service)
      return () => service.delete(`/passkeys/${passkeyId}`, auth)
    },
  ],
  [
    'a message that is given up',
    ['message.failed'],
    async () => {
      await service.settled()
      await service.mailbox.answer(550)
      return async () => {
        const { userId } = await byAdminUser()
        await post('/magiclink', { email: (await service.get(`/admin/users/${userId}`, service.admin)).body.email })
        await service.settled()
        await service.mailbox.accept()
      }
    },
  ],
  [
    'wrong passwords',
    ['security.locked_out'],
    async () => {
      const { email } = await byUser()
      const guess = () => post('/token?grant_type=password', { email, password: 'wrong' })
      await guess()
      return async () => {
        expect((await guess()).status).toBe(429)
        await guess()
        await expect.poll(() => lockedOut(email)).toBe(1)
      }
    },
  ],
  [
    'a deletion',
    [ended('user_deleted'), 'user.deleted'],
    async () => {
      const { userId } = await byUser()
      return () => remove(service, `/admin/users/${userId}`, service.admin, {})
    },
  ],
  [
    'a soft deletion',
    [ended('user_deleted'), 'user.deleted'],
    async () => {
      const { userId } = await byUser()
      return () => remove(service, `/admin/users/${userId}`, service.admin, { should_soft_delete: true })
    },
  ],
  [
    'the command line that deletes a user',
    [ended('user_deleted'), 'user.deleted'],
    async () => {
      const { userId } = await byUser()
      return () => run(`users delete ${userId} --yes`)
    },
  ],
  [
    'housekeeping that finds an idle anonymous user',
    ['user.deleted'],
    async () => {
      service.clock.advance({ seconds: 31 * 86_400 })
      await housekeep()
      await post('/signup')
      service.clock.advance({ seconds: 3 * 86_400 })
      await housekeep()
      service.clock.advance({ seconds: 30 * 86_400 })
      return housekeep
    },
  ],
]

const housekeep = () => deleteExpired(limited.deps, service.deps.log)

const byAdminUser = async () => {
  const { body } = await post('/admin/users', { email: freshEmail(), email_confirm: true }, service.admin)
  return { userId: body.id as string }
}

async function lockedOut(email: string): Promise<number> {
  const all = await storedEvents(service)
  return all.filter(({ event, data }) => event === 'security.locked_out' && data.user.email === email).length
}

/** Text of an event, as the table has it. */
const shown = ({ event, data }: { event: string; data: { reason?: string } }) =>
  event === 'session.ended' ? `${event} ${data.reason}` : event

test.for(WAYS)('%s', async ([, expected, prepare]) => {
  const act = await prepare()
  const events = await eventsDuring(service, act)
  const asides = expected.includes('message.failed') ? [NEW, 'user.confirmed'] : []
  expect(events.map(shown)).toEqual([...asides, ...expected])
  for (const { user_id, data } of events) expect(data.user.id).toBe(user_id)
})

test('every event has a way', () => {
  const caused = new Set(WAYS.flatMap(([, events]) => events.map((event) => event.split(' ', 1)[0])))
  expect([...caused].toSorted()).toEqual([...EVENTS].toSorted())
})

test('the user of an event is as an admin sees it, and nothing is secret', async () => {
  const { userId, totp, recoveryCodes, email } = await withTotp(service)
  const [event] = await eventsDuring(service, () => asAdmin(userId, { user_metadata: { a: 1 } }))
  const { body } = (await service.get(`/admin/users/${userId}`, service.admin)) as Answer
  expect(event?.data.user).toEqual(body)
  const ofUser = (await storedEvents(service)).filter(({ user_id }) => user_id === userId)
  const { rows: stored } = await service.deps.pool.query('select password_hash from users where id = $1', [userId])
  const texts = JSON.stringify(ofUser)
  expect(texts).toContain(email)
  for (const secret of [totp.secret, ...recoveryCodes, stored[0].password_hash]) expect(texts).not.toContain(secret)
})

test.for<[string, object]>([
  ['deleted', {}],
  ['softly deleted', { should_soft_delete: true }],
])('events of a %s user lose its personal data, also those that wait', async ([, how]) => {
  const { userId, email } = await byUser()
  await asAdmin(userId, { user_metadata: { full_name: 'Ada' } })
  await remove(service, `/admin/users/${userId}`, service.admin, how)
  const { rows } = await service.deps.pool.query(
    'select event, data from webhook_deliveries where user_id = $1 order by position',
    [userId],
  )
  expect(rows.length).toBeGreaterThan(4)
  for (const { data } of rows) expect(data.user).toEqual({ id: userId })
  expect(JSON.stringify(rows)).not.toMatch(new RegExp(`${email}|Ada`))
  expect(rows.find(({ event }) => event === 'session.created').data.session).toEqual({ id: expect.any(String) })
  const shown = await service.deps.pool.query('select from event_users where user_id = $1', [userId])
  expect(shown.rowCount).toBe(0)
})

test('the event of a soft deletion is still that after a hard one', async () => {
  const { userId } = await byUser()
  const deleted = async (how = {}) => {
    await remove(service, `/admin/users/${userId}`, service.admin, how)
    return (await storedEvents(service)).findLast(({ user_id: id, event }) => id === userId && event === 'user.deleted')
  }
  const event = await deleted({ should_soft_delete: true })
  expect(event?.data).toEqual({ user: { id: userId }, soft: true })
  expect(await deleted()).toEqual(event)
})

test.for<[string, string, () => Promise<{ userId: string; act: () => Promise<unknown> }>]>([
  [
    'a sign-in',
    SIGNED_IN,
    async () => {
      const { userId, email } = await byUser()
      return { userId, act: () => signInAgain(service, email) }
    },
  ],
  [
    'a sign-in with a passkey, whose use counts once,',
    SIGNED_IN,
    async () => {
      const user = await withPasskey(service)
      // The count must rise from the first use on.
      await signInByPasskey(service, user)
      return { userId: user.userId, act: async () => expect((await signInByPasskey(service, user)).status).toBe(200) }
    },
  ],
  [
    'a message that is given up',
    'message.failed',
    async () => {
      const { userId, email } = await byUser()
      await service.settled()
      await service.mailbox.answer(550)
      onTestFinished(() => service.mailbox.accept())
      await post('/magiclink', { email })
      await service.settled()
      const { messages } = (await service.get(`/admin/messages?user_id=${userId}`, service.admin)).body
      return { userId, act: () => post(`/admin/messages/${messages[0].id}/retry`, {}, service.admin) }
    },
  ],
])('%s that waits for another change shows the user as that left it', async ([, event, prepare]) => {
  const { userId, act } = await prepare()
  const other = new pg.Client({ connectionString: service.deps.config.database.url })
  await other.connect()
  onTestFinished(() => other.end())
  const [told] = await eventsDuring(service, async () => {
    await other.query('begin')
    const change = `user_metadata = '{"left": 1}', updated_at = updated_at + interval '1 ms'`
    await other.query(`update users set ${change} where id = $1`, [userId])
    const acting = act()
    await expect.poll(() => countLockWaits(other)).toBeGreaterThan(0)
    await other.query('commit')
    await acting
  })
  expect(told).toMatchObject({ event, data: { user: { id: userId, user_metadata: { left: 1 } } } })
})

test('sign-ins that wait for a ban are refused and cause no event', async () => {
  const email = freshEmail()
  const user = await withPasskey(service, {}, email)
  const other = new pg.Client({ connectionString: service.deps.config.database.url })
  await other.connect()
  onTestFinished(() => other.end())
  const events = await eventsDuring(service, async () => {
    await other.query('begin')
    const ban = `banned_until = $2, updated_at = updated_at + interval '1 ms'`
    const end = new Date(service.clock.now().getTime() + 3_600_000)
    await other.query(`update users set ${ban} where id = $1`, [user.userId, end])
    const signIns = [post('/token?grant_type=password', { email, password }), signInByPasskey(service, user)]
    await expect.poll(() => countLockWaits(other)).toBe(2)
    await other.query('commit')
    const answers = await Promise.all(signIns)
    expect(answers.map(({ status, body }) => [status, body.error_code])).toEqual([
      [400, 'user_banned'],
      [403, 'user_banned'],
    ])
  })
  expect(events).toEqual([])
})

test('an account that comes into use while its address is released keeps it, or has its event', async () => {
  const email = freshEmail()
  const { body } = await post('/signup', { email, password })
  await service.settled()
  const query = pg.Client.prototype.query as (...given: unknown[]) => Promise<unknown>
  const comesIntoUse = `insert into sessions (id, user_id, amr, refreshed_at, created_at)
    select gen_random_uuid(), id, '[]', created_at, created_at from users where id = '${body.id}'`
  let isInUse = false
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(async function (
    this: pg.Client,
    ...given: unknown[]
  ) {
    const result = await Reflect.apply(query, this, given)
    const [{ text, values }] = given as [{ text?: string; values?: unknown[] }]
    if (!isInUse && text?.endsWith('for update') && text.includes('email_vouched') && values?.includes(email)) {
      isInUse = true
      await service.deps.pool.query(comesIntoUse)
    }
    return result
  } as never)
  const link = { type: 'magiclink', email }
  const events = await eventsDuring(service, async () => {
    await post('/admin/generate_link', link, service.admin).finally(() => spy.mockRestore())
    expect(isInUse).toBe(true)
  })
  const { rows } = await service.deps.pool.query('select email from users where id = $1', [body.id])
  const changed = events.filter(({ event, user_id }) => event === 'email.changed' && user_id === body.id)
  expect(changed).toHaveLength(rows[0].email === null ? 1 : 0)
})

test.each([
  ['no receiver wants', ['user.created'], 0],
  ['a receiver wants', ['security.*'], 1],
])('guesses at a locked account hold no connection for a report that %s', async (_, wanted, expected) => {
  const small = await startTestService({ AUTH_RATE_LIMIT_FAILED_SIGN_INS: '1', AUTH_DB_MAX_POOL_SIZE: '4' })
  onTestFinished(() => small.close())
  await addPausedReceiver(small, wanted)
  const email = freshEmail()
  const { userId } = await small.signedIn(email)
  const guess = () => small.post('/token?grant_type=password', { email, password: 'wrong' })
  const other = new pg.Client({ connectionString: small.deps.config.database.url })
  await other.connect()
  onTestFinished(() => other.end())
  await other.query('begin')
  await other.query('select from users where id = $1 for update', [userId])
  const statuses: number[] = []
  for (let n = 0; n < 12; n++) statuses.push((await guess()).status)
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(4)
  await other.query('rollback')
  const reports = async () => (await storedEvents(small)).filter(({ event }) => event === 'security.locked_out').length
  await expect
    .poll(async () => {
      await guess()
      return reports()
    })
    .toBe(expected)
})

test('a change that is rolled back causes no event', async () => {
  const { userId } = await byUser()
  const tooLarge = { user_metadata: { a: 'x'.repeat(20_000) } }
  const events = await eventsDuring(service, async () => expect((await asAdmin(userId, tooLarge)).status).toBe(422))
  expect(events).toEqual([])
})
