// A stolen session yields nothing that outlasts it, and nothing unseen.
import { decodeJwt } from 'jose'
import { beforeAll, describe, expect } from 'vitest'
import { identityIn } from './linked-identities.ts'
import { type OpenIdProvider, startOpenIdProvider } from './openid-provider.ts'
import { codeIn, fragmentOf, linkPath, startTestService, type TestService, test } from './service.ts'
import { startSmsGateways } from './upstreams/sms-gateways.ts'

const STRANGERS = 'the stranger knows'
const OWNERS = 'only the owner knows'

test('the immediate change of a number is reported to its owner', async ({ service: shared }) => {
  const service = await shared.with({
    AUTH_SMS_AUTOCONFIRM: 'true',
    AUTH_MAILER_NOTIFICATIONS_PHONE_CHANGED_ENABLED: 'true',
  })
  const { auth } = await service.signedIn('owner@example.com')
  await service.put('/user', { phone: '4915100000011' }, auth)
  await service.put('/user', { phone: '4915100000012' }, auth)
  await service.mailbox.waitFor('owner@example.com', { subject: 'phone number was changed' })
  await service.close()
})

type Changing = Awaited<ReturnType<typeof startChanging>>
let changing: Changing
/** The same, but that sessions end by themselves: replaced, after five minutes, or unused for 200 seconds. */
let limited: Changing
let google: OpenIdProvider
/** The same, but that new passwords and addresses want the current password. */
let guarded: TestService
beforeAll(async () => {
  google = await startOpenIdProvider()
  changing = await startChanging({ ...google.settings('GOOGLE'), AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true' })
  limited = await startChanging({
    AUTH_SESSIONS_SINGLE_PER_USER: 'true',
    AUTH_SESSIONS_TIMEBOX: '300',
    AUTH_SESSIONS_INACTIVITY_TIMEOUT: '200',
  })
  guarded = await changing.service.with({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true' })
  return async () => {
    await guarded.close()
    await limited.close()
    await changing.close()
    await google.close()
  }
})

let phones = 4_915_100_001_000
const newPhone = () => `${++phones}`
const newEmail = () => `thief-${++phones}@example.com`
const newWishes = () => [{ phone: newPhone() }, { email: newEmail() }] as const

/** A service whose users change address by one code, and the codes that were sent. */
async function startChanging(settings: Record<string, string>) {
  const gateways = await startSmsGateways()
  const service = await startTestService({
    ...gateways.settings('twilio'),
    AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false',
    AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
    AUTH_RATE_LIMIT_EMAIL_SENT: '1000',
    AUTH_RATE_LIMIT_SMS_SENT: '1000',
    AUTH_RATE_LIMIT_TOKEN_REFRESH: '1000',
    AUTH_RATE_LIMIT_VERIFY: '1000',
    AUTH_RATE_LIMIT_OTP: '1000',
    ...settings,
  })
  const codeAt = async (address: string) =>
    address.includes('@')
      ? codeIn((await service.mailbox.waitFor(address)).text)
      : /\d{6}/.exec((await gateways.waitFor(address)).text)?.[0]
  const sent = async (userId: string, kind: string) => {
    await service.settled()
    const messages = service.deps.db.selectFrom('messages').select('id').where('user_id', '=', userId)
    return (await messages.where('kind', '=', kind).execute()).length
  }
  return {
    service,
    codeAt,
    sent,
    async close() {
      await service.close()
      await gateways.close()
    },
  }
}

describe('a change of address that a thief began', () => {
  type Owner = { service: TestService; email: string; auth: { authorization: string }; refresh: string; userId: string }
  /** Way of a session to end. */
  type Way = (owner: Owner) => Promise<unknown>
  const recover = async ({ service, email }: Owner) => {
    await service.post('/recover', { email })
    const { text } = await service.mailbox.waitFor(email, { subject: 'password' })
    const { body } = await service.post('/verify', { type: 'recovery', email, token: codeIn(text) })
    return { authorization: `Bearer ${body.access_token}` }
  }
  const asAdmin = ({ service, userId }: Owner, change: object) =>
    service.put(`/admin/users/${userId}`, change, service.admin)
  const sessionOf = ({ authorization }: Owner['auth']) => decodeJwt(authorization.slice(7)).session_id
  const ways: Record<string, Way> = {
    'a new password': ({ service, auth }) => service.put('/user', { password: 'another horse' }, auth),
    'a password set by an admin': (owner) => asAdmin(owner, { password: 'another horse' }),
    'a confirmation by an admin': (owner) => asAdmin(owner, { email_confirm: true }),
    'a recovery': recover,
    'signing out everywhere': ({ service, auth }) => service.post('/logout', {}, auth),
    'signing out elsewhere': ({ service, auth }) => service.post('/logout?scope=others', {}, auth),
    'an admin who ends all sessions': ({ service, userId }) =>
      service.delete(`/admin/users/${userId}/sessions`, service.admin),
    'the end of one session': ({ service, userId, auth }) =>
      service.delete(`/admin/users/${userId}/sessions/${sessionOf(auth)}`, service.admin),
    'a ban that is lifted': async (owner) => {
      await asAdmin(owner, { ban_duration: '1h' })
      await asAdmin(owner, { ban_duration: 'none' })
    },
    'the reuse of a refresh token': async ({ service, refresh }) => {
      const from = (agent: string) =>
        service.post('/token?grant_type=refresh_token', { refresh_token: refresh }, { 'user-agent': agent })
      await from('Owner/1.0')
      service.clock.advance({ seconds: 11 })
      expect((await from('Thief/1.0')).body.error_code).toBe('refresh_token_already_used')
    },
  }

  test.for(Object.keys(ways))('ends with %s, and no request revives it', async (way) => {
    const { service, codeAt, sent } = changing
    for (const wish of newWishes()) {
      const [type, address] = 'phone' in wish ? ['phone_change', wish.phone] : ['email_change', wish.email]
      const email = newEmail()
      const { auth, refreshToken: refresh, userId } = await service.signedIn(email)
      expect((await service.put('/user', wish, auth)).status).toBe(200)
      const token = await codeAt(address as string)
      await ways[way]?.({ service, email, auth, refresh, userId })
      const { body } = await service.get(`/admin/users/${userId}`, service.admin)
      expect(body).not.toHaveProperty('new_phone')
      expect(body).not.toHaveProperty('new_email')
      expect((await service.post('/verify', { type, ...wish, token })).body.error_code).toBe('otp_expired')
      service.clock.advance({ seconds: 'phone' in wish ? 61 : 901 })
      expect((await service.post('/resend', { type, email })).status).toBe(200)
      expect(await sent(userId, type as string)).toBe(1)
    }
  })

  /**
   * An answer of each endpoint that shows a user, the new session last, because it may end other ones. The type
   * ShownUser holds all further answers to the same function.
   */
  async function answersOf({ service, email, auth, userId }: Omit<Owner, 'refresh'>) {
    const listed = async (query: string) =>
      (await service.get(`/admin/users?filter=${email}&${query}`, service.admin)).body.users[0]
    const link = () => service.post('/admin/generate_link', { type: 'recovery', email }, service.admin)
    const before = [
      ['GET /user', (await service.get('/user', auth)).body],
      ['GET /admin/users/{id}', (await service.get(`/admin/users/${userId}`, service.admin)).body],
      ['PUT /admin/users/{id}', (await service.put(`/admin/users/${userId}`, {}, service.admin)).body],
      ['GET /admin/users', await listed('page=1')],
      ['GET /admin/users?cursor', await listed('cursor=')],
      ['POST /admin/generate_link', (await link()).body],
    ] as const
    const grant = async (type: string, body: object) => (await service.post(`/token?grant_type=${type}`, body)).body
    const signedIn = await grant('password', { email, password: 'correct horse' })
    const refreshed = await grant('refresh_token', { refresh_token: signedIn.refresh_token })
    const own = { authorization: `Bearer ${refreshed.access_token}` }
    return [
      ...before,
      ['POST /token?grant_type=password', signedIn.user],
      ['POST /token?grant_type=refresh_token', refreshed.user],
      ['PUT /user', (await service.put('/user', { data: {} }, own)).body],
    ] as const
  }
  const requestsIn = (answers: Awaited<ReturnType<typeof answersOf>>) =>
    answers.map(([where, { id, new_email, email_change_sent_at, new_phone, phone_change_sent_at }]) => [
      ...[
        where,
        id !== undefined,
        new_email ?? new_phone,
        (email_change_sent_at ?? phone_change_sent_at) !== undefined,
      ],
    ])

  /** Ends of a session that leave its change in the database until housekeeping. */
  const silentWays: Record<string, Way> = {
    'signing out there': ({ service, auth }) => service.post('/logout?scope=local', {}, auth),
    'a newer sign-in where only the newest session is valid': ({ service, email }) =>
      service.post('/token?grant_type=password', { email, password: 'correct horse' }),
    'the longest time of a session': async ({ service, refresh }) => {
      service.clock.advance({ seconds: 150 })
      expect((await service.post('/token?grant_type=refresh_token', { refresh_token: refresh })).status).toBe(200)
      service.clock.advance({ seconds: 151 })
    },
    'inactivity of its session': async ({ service }) => service.clock.advance({ seconds: 201 }),
    'unlinking the identity that its session began with': async ({ service, email }) => {
      const { body } = await service.post('/token?grant_type=password', { email, password: 'correct horse' })
      const auth = { authorization: `Bearer ${body.access_token}` }
      const id = identityIn((await service.get('/user', auth)).body, 'google')
      expect((await service.delete(`/user/identities/${id}`, auth)).status).toBe(200)
    },
  }

  test.for(Object.keys(silentWays))('ends with %s, and no request revives it', async (way) => {
    const { service, codeAt, sent } = /newest|longest|inactivity/.test(way) ? limited : changing
    for (const wish of newWishes()) {
      const [type, address] = 'phone' in wish ? ['phone_change', wish.phone] : ['email_change', wish.email]
      const email = newEmail()
      let { auth, refreshToken: refresh, userId } = await service.signedIn(email)
      if (way.startsWith('unlinking')) {
        const iat = Math.floor(service.clock.now().getTime() / 1000)
        const claims = { sub: email, email, email_verified: true, iat, exp: iat + 300 }
        const id_token = await google.idToken(claims)
        const { body } = await service.post('/token?grant_type=id_token', { provider: 'google', id_token })
        auth = { authorization: `Bearer ${body.access_token}` }
      }
      expect((await service.put('/user', wish, auth)).status).toBe(200)
      const token = await codeAt(address as string)
      await silentWays[way]?.({ service, email, auth, refresh, userId })
      const answers = requestsIn(await answersOf({ service, email, auth, userId }))
      expect(answers).toEqual(answers.map(([where]) => [where, true, undefined, false]))
      expect((await service.post('/verify', { type, ...wish, token })).body.error_code).toBe('otp_expired')
      service.clock.advance({ seconds: 'phone' in wish ? 61 : 901 })
      expect((await service.post('/resend', { type, email })).status).toBe(200)
      expect(await sent(userId, type as string)).toBe(1)
    }
  })

  test('is confirmed while its session is in use, and sent again with it', async () => {
    for (const { service, codeAt, sent } of [changing, limited]) {
      const email = newEmail()
      const { auth, userId } = await service.signedIn(email)
      const phone = newPhone()
      await service.put('/user', { phone }, auth)
      await codeAt(phone)
      service.clock.advance({ seconds: 61 })
      await service.post('/resend', { type: 'phone_change', email })
      expect(await sent(userId, 'phone_change')).toBe(2)
      expect((await service.post('/verify', { type: 'phone_change', phone, token: await codeAt(phone) })).status).toBe(
        200,
      )
    }
  })

  test('is in every answer while its session is in use', async () => {
    const { service, codeAt } = changing
    for (const wish of newWishes()) {
      const [wanted] = Object.values(wish)
      const email = newEmail()
      const { auth, userId } = await service.signedIn(email)
      await service.put('/user', wish, auth)
      await codeAt(wanted as string)
      const answers = requestsIn(await answersOf({ service, email, auth, userId }))
      expect(answers).toEqual(answers.map(([where]) => [where, true, wanted, true]))
    }
  })

  test.for(['phone_change', 'email_change'])('is not sent again once its code has expired (%s)', async (type) => {
    const { service, codeAt, sent } = changing
    const email = newEmail()
    const wish = type === 'phone_change' ? { phone: newPhone() } : { email: newEmail() }
    const { auth, userId } = await service.signedIn(email)
    await service.put('/user', wish, auth)
    await codeAt(Object.values(wish)[0] as string)
    service.clock.advance({ seconds: 901 })
    await service.post('/resend', { type, email })
    expect(await sent(userId, type)).toBe(type === 'phone_change' ? 1 : 2)
    service.clock.advance({ seconds: 3601 })
    await service.post('/resend', { type, email })
    expect(await sent(userId, type)).toBe(type === 'phone_change' ? 1 : 2)
  })
})

test.for(['phone_change', 'email_change'])(
  'the session of a %s does not set a password without the current one',
  async (type) => {
    const wish = type === 'phone_change' ? { phone: newPhone() } : { email: newEmail() }
    const { auth } = await guarded.signedIn(newEmail(), OWNERS)
    await guarded.put('/user', { ...wish, current_password: OWNERS }, auth)
    const token = await changing.codeAt(Object.values(wish)[0] as string)
    const { body } = await guarded.post('/verify', { type, ...wish, token })
    expect(decodeJwt(body.access_token).amr).toMatchObject([{ method: type }])
    const stolen = { authorization: `Bearer ${body.access_token}` }
    const refused = await guarded.put('/user', { password: STRANGERS }, stolen)
    expect(refused).toMatchObject({ status: 400, body: { error_code: 'current_password_required' } })
    expect((await guarded.put('/user', { password: STRANGERS, current_password: OWNERS }, stolen)).status).toBe(200)
  },
)

test('signing out everywhere leaves a recovery link valid that is on its way to the owner', async ({ service }) => {
  const { auth } = await service.signedUp('on-its-way@example.com', OWNERS)
  const before = await service.mailbox.waitFor('on-its-way@example.com')
  await service.post('/recover', { email: 'on-its-way@example.com' })
  const { text } = await service.mailbox.waitFor('on-its-way@example.com', { after: before })
  expect((await service.post('/logout', {}, auth)).status).toBe(204)
  expect(fragmentOf(await service.get(linkPath(text)))).toMatchObject({ type: 'recovery' })
})

describe('where the current password is demanded a stolen session', () => {
  test.for([{ phone: '4915100000045' }, { email: 'thiefs-own@example.com' }])(
    'attaches no address to recover by without it: %o',
    async (wish) => {
      const robbed = newEmail()
      const { auth, userId } = await guarded.signedIn(robbed, OWNERS)
      for (const [guess, code] of [
        [{}, 'current_password_required'],
        [{ current_password: '' }, 'current_password_required'],
        [{ current_password: STRANGERS }, 'current_password_invalid'],
      ] as const) {
        expect(await guarded.put('/user', { ...wish, ...guess }, auth)).toMatchObject({
          status: 400,
          body: { error_code: code },
        })
      }
      const { body } = await guarded.get(`/admin/users/${userId}`, guarded.admin)
      expect(body).toMatchObject({ email: robbed, phone: '' })
      for (const wished of ['new_email', 'new_phone']) expect(body).not.toHaveProperty(wished)
      expect((await guarded.put('/user', { ...wish, current_password: OWNERS }, auth)).status).toBe(200)
      expect(await changing.codeAt(Object.values(wish)[0] as string)).toBeTruthy()
    },
  )

  test('guesses at it no faster than at a sign-in', async () => {
    const { auth } = await guarded.signedIn('guessed-at@example.com', OWNERS)
    const change = async (current_password: string) =>
      (await guarded.put('/user', { phone: '4915100000046', current_password }, auth)).status
    for (let i = 0; i < 5; i++) expect(await change(`guess ${i}`)).toBe(400)
    expect(await change(OWNERS)).toBe(429)
  })

  test('changes the rest without it, and repeats the address there is', async () => {
    const { auth } = await guarded.signedIn('same@example.com', OWNERS)
    const changes = { email: 'SAME@example.com', data: { name: 'Ada' } }
    expect((await guarded.put('/user', changes, auth)).status).toBe(200)
  })

  test('is no matter where the session began with a mailed link, or the account has no password', async () => {
    const put = (changes: object, token: string) => guarded.put('/user', changes, { authorization: `Bearer ${token}` })
    const byLink = async (email: string) => {
      guarded.mailbox.clear()
      await guarded.post('/otp', { email })
      const answer = await guarded.get(linkPath((await guarded.mailbox.waitFor(email)).text))
      return fragmentOf(answer).access_token as string
    }
    await guarded.signedIn('forgot@example.com', OWNERS)
    expect((await put({ phone: '4915100000047' }, await byLink('forgot@example.com'))).status).toBe(200)

    const email = 'without-2@example.com'
    expect((await put({ email }, await byLink('without@example.com'))).status).toBe(200)
    const { body } = await guarded.post('/verify', { type: 'email_change', email, token: await changing.codeAt(email) })
    expect(decodeJwt(body.access_token).amr).toMatchObject([{ method: 'email_change' }])
    expect((await put({ phone: '4915100000048' }, body.access_token)).status).toBe(200)
  })
})

test.for(['AUTH_SESSIONS_TIMEBOX', 'AUTH_SESSIONS_INACTIVITY_TIMEOUT'])(
  'a session past its %s changes nothing any more',
  async (setting) => {
    const service = await changing.service.with({ [setting]: '600' })
    const { auth, userId } = await service.signedIn()
    expect((await service.put('/user', { data: { in: 'time' } }, auth)).status).toBe(200)
    const session = decodeJwt(auth.authorization.slice(7)).session_id
    service.clock.advance({ seconds: 601 })
    const answers = [
      await service.put('/user', { data: { too: 'late' } }, auth),
      await service.get('/reauthenticate', auth),
      await service.delete(`/user/sessions/${session}`, auth),
      await service.post('/logout', {}, auth),
    ]
    for (const answer of answers)
      expect(answer).toMatchObject({ status: 403, body: { error_code: 'session_not_found' } })
    const { body } = await service.get(`/admin/users/${userId}`, service.admin)
    expect(body.user_metadata).not.toHaveProperty('too')
    await service.close()
  },
)
