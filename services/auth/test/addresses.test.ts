// Ownership of addresses: proven ones belong to their owner, others appear in no token, no session and no sign-in
// method. docs/addresses.md names the test of each step.
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { importLines } from './import-lines.ts'
import {
  type OpenIdProvider,
  type ProviderAccount,
  signInAt,
  startOpenIdProvider,
  visitFrom,
} from './openid-provider.ts'
import { enrollTotp, verifyTotp } from './second-factors.ts'
import {
  type Answer,
  fragmentOf,
  linkPath,
  queryOf,
  type SignedIn,
  startTestService,
  type TestService,
  toSignedIn,
} from './service.ts'
import { SMS_GATEWAY } from './sms-config.ts'

const STRANGERS = 'the stranger knows'
const OWNERS = 'only the owner knows'
/** Numbers are all test numbers: no message leaves. */
const CODE = '111111'
const NUMBERS = Array.from({ length: 40 }, (_, index) => `49151000001${String(index).padStart(2, '0')}`)

let openId: OpenIdProvider
let service: TestService
let autoconfirming: TestService
let careless: TestService
beforeAll(async () => {
  openId = await startOpenIdProvider()
  service = await startTestService({
    ...SMS_GATEWAY,
    AUTH_WORKERS_ENABLED: 'true',
    AUTH_SMS_TEST_OTP: NUMBERS.map((number) => `${number}:${CODE}`).join(','),
    ...openId.settings('GOOGLE'),
    ...openId.settings('OIDC_CORP'),
    AUTH_EXTERNAL_OIDC_CORP_EMAIL_OPTIONAL: 'true',
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    AUTH_SMTP_MAX_FREQUENCY: '0',
    AUTH_MAILER_SIGN_IN_LINK_MAX_FREQUENCY: '0',
    AUTH_SMS_MAX_FREQUENCY: '0',
  })
  autoconfirming = await service.with({ AUTH_MAILER_AUTOCONFIRM: 'true', AUTH_SMS_AUTOCONFIRM: 'true' })
  careless = await service.with({ AUTH_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS: 'true' })
})
afterAll(async () => {
  await Promise.all([autoconfirming.close(), careless.close()])
  await service.close()
  await openId.close()
})

type Auth = SignedIn['auth']
type Provider = 'google' | 'corp'
type Person = ProviderAccount

let people = 0
const newSub = () => `addresses-${people++}`
const newAddress = () => `${newSub()}@example.com`
const newNumber = () => NUMBERS.pop() as string
const verifiedAt = (email: string): Person => ({ sub: newSub(), email, email_verified: true })
const toldAt = (email: string): Person => ({ sub: newSub(), email, email_verified: false })

const come = (to: Pick<TestService, 'get' | 'submit'>, provider: Provider, person: Person, query = '') => {
  openId.next(person)
  return signInAt(to, openId, `/authorize?provider=${provider}${query}`)
}

async function link(to: TestService, auth: Auth, provider: Provider, person: Person): Promise<Answer> {
  openId.next(person)
  const begun = await to.get(`/user/identities/authorize?provider=${provider}&skip_http_redirect=true`, auth)
  const callback = await visitFrom(to, openId, begun.body.url)
  return to.get(callback.pathname + callback.search)
}

const read = async (auth: Auth) => (await service.get('/user', auth)).body
const asAdmin = async (userId: string) => (await service.get(`/admin/users/${userId}`, service.admin)).body
const bearerOf = (accessToken: string | undefined): Auth => ({ authorization: `Bearer ${accessToken}` })
const signIn = (to: TestService, email: string, password: string) =>
  to.post('/token?grant_type=password', { email, password })
const refresh = async ({ refreshToken }: SignedIn) =>
  (await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })).body
const identityOf = async (auth: Auth, provider: string) =>
  (await read(auth)).identities.find((one: { provider: string }) => one.provider === provider).identity_id
const unlink = async (auth: Auth, provider: string) =>
  service.delete(`/user/identities/${await identityOf(auth, provider)}`, auth)
const anonymous = async () => toSignedIn((await service.post('/signup', {})).body)

/** The path of the link in the mail that comes of a request, whatever came before it. */
async function linkOf(to: string, request: () => Promise<unknown>): Promise<string> {
  await service.settled()
  const before = service.mailbox.messages({ to })
  await request()
  await service.settled()
  const mail = service.mailbox.messages({ to }).find((message) => !before.includes(message))
  return linkPath(mail?.text ?? '')
}

async function addNumber(auth: Auth, phone: string) {
  expect((await service.put('/user', { phone }, auth)).status).toBe(200)
  expect((await service.post('/verify', { type: 'phone_change', phone, token: CODE })).status).toBe(200)
}

async function signInByNumber(phone: string) {
  await service.post('/otp', { phone })
  await service.settled()
  return service.post('/verify', { type: 'sms', phone, token: CODE })
}

/** Statements that every application may trust: the claims of the token and the user beside it. */
function shownBy({ access_token, user }: { access_token: string; user?: { email: string; phone: string } }) {
  const { email, phone, user_metadata } = decodeJwt<{ email: string; phone: string; user_metadata: object }>(
    access_token,
  )
  if (user) expect([user.email, user.phone]).toEqual([email, phone])
  return { email, phone, user_metadata }
}

const withoutAddress = (told: string) => ({
  email: '',
  user_metadata: expect.not.objectContaining({ email: told, email_verified: true }),
})

/** Ways by which an admin takes over responsibility for an account, whatever its registrant did. */
const ADMINS_WORDS: [string, () => object][] = [
  ['confirms the address', () => ({ email_confirm: true })],
  ['chooses a password', () => ({ password: OWNERS })],
  ['gives it another address', () => ({ email: newAddress(), email_confirm: true })],
  ['gives it a number', () => ({ phone: newNumber(), phone_confirm: true })],
]

/** Ways of an owner to their address, and the user they are then. */
const DOORS: Record<string, (email: string) => Promise<Answer>> = {
  'a sign-up': async (email) =>
    service.get(await linkOf(email, () => service.post('/signup', { email, password: OWNERS }))),
  'a sign-in link': async (email) => service.get(await linkOf(email, () => service.post('/otp', { email }))),
  'an invitation': async (email) =>
    service.get(await linkOf(email, () => service.post('/invite', { email, data: { team: 'a' } }, service.admin))),
  'a generated link': async (email) => {
    const { body } = await service.post('/admin/generate_link', { type: 'magiclink', email }, service.admin)
    return service.get(linkPath(body.action_link))
  },
  'a provider that verifies': (email) => come(service, 'google', verifiedAt(email)),
}

describe('unlinking', () => {
  test('the identity of the address moves the account to no thief, and the owner keeps every way in', async () => {
    const email = newAddress()
    const thiefs = newAddress()
    const owner = await service.signedUp(email, OWNERS)
    await link(service, owner.auth, 'google', verifiedAt(thiefs))
    expect(await unlink(owner.auth, 'email')).toMatchObject({
      status: 422,
      body: { error_code: 'email_conflict_identity_not_deletable' },
    })
    expect(await read(owner.auth)).toMatchObject({
      id: owner.userId,
      email,
      app_metadata: { providers: ['email', 'google'] },
    })
    await service.post('/recover', { email: thiefs })
    await service.settled()
    expect(service.mailbox.messages({ to: thiefs })).toEqual([])
    expect((await signIn(service, email, OWNERS)).status).toBe(200)
  })

  test('gives an account no address that a provider has not verified', async () => {
    const { auth } = await service.signedIn()
    const { email } = await read(auth)
    await addNumber(auth, newNumber())
    await link(service, auth, 'corp', toldAt(newAddress()))
    expect((await unlink(auth, 'email')).status).toBe(422)
    expect((await read(auth)).email).toBe(email)
  })

  test('one of two identities of the address leaves the address, the password and the other one', async () => {
    const { auth, userId } = await service.signedIn(undefined, OWNERS)
    const { email } = await read(auth)
    const person = verifiedAt(email)
    await link(service, auth, 'google', person)
    expect((await unlink(auth, 'email')).status).toBe(200)
    expect(await read(auth)).toMatchObject({ email, app_metadata: { providers: ['google'] } })
    expect((await signIn(service, email, OWNERS)).body.user.id).toBe(userId)
    const again = await come(service, 'google', person)
    expect(decodeJwt(fragmentOf(again).access_token as string)).toMatchObject({ sub: userId, email })
  })

  test('the identity of the address works once the address has been changed', async () => {
    const from = newAddress()
    const to = newAddress()
    const came = await come(service, 'google', verifiedAt(from))
    const auth = bearerOf(fragmentOf(came).access_token)
    await service.put('/user', { email: to }, auth)
    for (const address of [from, to]) await service.get(linkPath((await service.mailbox.waitFor(address)).text))
    expect((await unlink(auth, 'google')).status).toBe(200)
    expect(await read(auth)).toMatchObject({ email: to, app_metadata: { providers: ['email'] } })
  })
})

describe('an address that a user has left, and that an identity of theirs still has', () => {
  async function leave() {
    const from = newAddress()
    const to = newAddress()
    const person = verifiedAt(from)
    const auth = bearerOf(fragmentOf(await come(service, 'google', person)).access_token)
    await service.put('/user', { email: to }, auth)
    for (const address of [from, to]) await service.get(linkPath((await service.mailbox.waitFor(address)).text))
    const user = await read(auth)
    expect(user.email).toBe(to)
    expect(user.identities.map((identity: { email?: string }) => identity.email)).toContain(from)
    return { from, person, auth, userId: user.id as string }
  }

  test.each(Object.keys(DOORS))('is its next owner’s, who comes by %s to an account of their own', async (door) => {
    const { from, person, auth, userId } = await leave()
    const { access_token } = fragmentOf((await DOORS[door]?.(from)) as Answer)
    const next = await read(bearerOf(access_token))
    expect(next).toMatchObject({ email: from, email_confirmed_at: expect.any(String) })
    expect(next.id).not.toBe(userId)
    expect((await read(auth)).app_metadata.providers).toEqual(['email', 'google'])
    // The account at the provider stays a sign-in method of the user who linked it.
    expect(decodeJwt(fragmentOf(await come(service, 'google', person)).access_token as string).sub).toBe(userId)
  })

  test('is free for another user, who proves it', async () => {
    const { from } = await leave()
    const user = await anonymous()
    const mailed = await linkOf(from, () => service.put('/user', { email: from }, user.auth))
    const { access_token } = fragmentOf(await service.get(mailed))
    expect(decodeJwt(access_token as string)).toMatchObject({ sub: user.userId, email: from })
  })
})

describe('an account in use that never proved the address it has', () => {
  /** Imported: the address is a provider's word, number and session are the stranger's. */
  async function squat(email: string) {
    const phone = newNumber()
    const person = toldAt(email)
    const identities = [
      { provider: 'phone', identity_data: { phone } },
      { provider: 'corp', provider_id: person.sub, identity_data: person },
    ]
    const password_hash = await service.deps.passwords.hash(STRANGERS)
    await importLines(service, [{ email, phone, phone_verified: true, password_hash, identities }])
    const { body } = await service.post('/token?grant_type=password', { phone, password: STRANGERS })
    return { ...toSignedIn(body), phone, person }
  }

  test.each(Object.keys(DOORS))(
    'gives it back to an owner who comes by %s, and shares nothing with them',
    async (door) => {
      const email = newAddress()
      const stranger = await squat(email)
      const came = await DOORS[door]?.(email)
      const { access_token } = fragmentOf(came as Answer)
      const owner = await read(bearerOf(access_token))
      expect(owner).toMatchObject({ email, phone: '', email_confirmed_at: expect.any(String) })
      expect(owner.id).not.toBe(stranger.userId)
      expect((await signIn(service, email, STRANGERS)).status).toBe(400)
      // The stranger keeps their own.
      expect(await read(stranger.auth)).toMatchObject({ id: stranger.userId, email: '', phone: stranger.phone })
      expect((await signInByNumber(stranger.phone)).body.user).toMatchObject({ id: stranger.userId, email: '' })
      const again = await come(service, 'corp', stranger.person)
      expect(decodeJwt(fragmentOf(again).access_token as string)).toMatchObject({ sub: stranger.userId, email: '' })
    },
  )

  test('is not what an owner recovers', async () => {
    const email = newAddress()
    const { userId } = await squat(email)
    await service.post('/recover', { email })
    await service.settled()
    expect(service.mailbox.messages({ to: email })).toEqual([])
    expect((await asAdmin(userId)).email).toBe('')
  })

  test('keeps its sessions, whose tokens and answers do not show the address', async () => {
    const email = newAddress()
    const stranger = await squat(email)
    const forged = { email, email_verified: true, phone_verified: true, sub: 'forged', theme: 'dark' }
    const { db } = service.deps
    await db
      .updateTable('users')
      .set({ user_metadata: JSON.stringify(forged) })
      .where('id', '=', stranger.userId)
      .execute()
    const { auth, ...signedUp } = stranger
    const refreshed = await refresh({ auth, ...signedUp })
    expect(shownBy(refreshed)).toMatchObject({ ...withoutAddress(email), phone: stranger.phone })
    const facts = { email_verified: false, phone_verified: true, sub: stranger.userId, theme: 'dark' }
    expect(shownBy(refreshed).user_metadata).toEqual(facts)
    expect(await read(auth)).toMatchObject({ email: '', new_email: email, user_metadata: facts })
    const { identities } = await read(auth)
    expect(identities.map((identity: { email?: string }) => identity.email)).not.toContain(email)
  })

  test('gets it once its user requests and proves it, whatever unconfirmed account has it', async () => {
    const email = newAddress()
    const { auth, userId } = await squat(email)
    const mailed = await linkOf(email, () => service.put('/user', { email }, auth))
    const { access_token } = fragmentOf(await service.get(mailed))
    expect(decodeJwt(access_token as string)).toMatchObject({ sub: userId, email })
  })

  test('gives back a number as well', async () => {
    const [email, phone] = [newAddress(), newNumber()]
    const password_hash = await service.deps.passwords.hash(STRANGERS)
    await importLines(service, [{ email, email_verified: true, phone, password_hash }])
    const { auth, userId } = toSignedIn((await signIn(service, email, STRANGERS)).body)
    expect(await read(auth)).toMatchObject({ phone: '', new_phone: phone })
    const { body } = await service.post('/signup', { phone, password: OWNERS })
    expect(body.phone).toBe(phone)
    const proven = await service.post('/verify', { type: 'sms', phone, token: CODE })
    expect(shownBy(proven.body)).toMatchObject({ phone, email: '' })
    expect(proven.body.user.id).not.toBe(userId)
    expect((await asAdmin(userId)).phone).toBe('')
  })

  test('gives it back where an admin confirmed the number alone', async () => {
    const email = newAddress()
    const { body } = await service.post('/signup', { email, password: STRANGERS })
    const confirmed = { phone: newNumber(), phone_confirm: true }
    expect((await service.put(`/admin/users/${body.id}`, confirmed, service.admin)).status).toBe(200)
    const owner = fragmentOf((await DOORS['a sign-in link']?.(email)) as Answer)
    expect(decodeJwt(owner.access_token as string)).toMatchObject({ email, phone: '' })
    expect(await asAdmin(body.id)).toMatchObject({ email: '', phone: confirmed.phone })
  })

  test.each([
    ['that has ended', '?scope=local'],
    ['in use', undefined],
  ])('gives it back beside a change of a session %s', async (_, logout) => {
    const [email, next, phone] = [newAddress(), newAddress(), newNumber()]
    const { body } = await service.post('/signup', { email, password: STRANGERS })
    await service.put(`/admin/users/${body.id}`, { phone, phone_confirm: true }, service.admin)
    await service.post('/otp', { phone })
    const { auth } = toSignedIn((await service.post('/verify', { type: 'sms', phone, token: CODE })).body)
    expect((await service.put('/user', { email: next, password: OWNERS }, auth)).status).toBe(200)
    if (logout) await service.post(`/logout${logout}`, {}, auth)
    await DOORS['a sign-in link']?.(email)
    // An ended change shows no more, and another session of the user cannot confirm it.
    const wanted = logout ? email : next
    const again = toSignedIn((await service.post('/token?grant_type=password', { phone, password: OWNERS })).body)
    expect(await read(again.auth)).toMatchObject({ email: '', new_email: wanted })
    expect(await asAdmin(body.id)).toMatchObject({ email: '', new_email: wanted })
    // Housekeeping cancels a change with the expiry of its link: that of the ended one is deleted.
    const tokens = service.deps.db.selectFrom('one_time_tokens').select('purpose').where('user_id', '=', body.id)
    expect(await tokens.execute()).toEqual(logout ? [] : [{ purpose: 'email_change_new' }])
  })

  test.each([
    ['that has expired', { AUTH_SESSIONS_TIMEBOX: '300' }],
    ['that was not used for long', { AUTH_SESSIONS_INACTIVITY_TIMEOUT: '300' }],
    ['that a newer one replaced', { AUTH_SESSIONS_SINGLE_PER_USER: 'true' }],
  ])('shows the address that it gives back, and not a change of a session %s', async (_, limits) => {
    // A clock of its own: the provider of the others keeps real time.
    const phone = '4915100000999'
    const limited = await startTestService({ ...SMS_GATEWAY, ...limits, AUTH_SMS_TEST_OTP: `${phone}:${CODE}` })
    onTestFinished(() => limited.close())
    const [email, next] = [newAddress(), newAddress()]
    const { body } = await limited.post('/signup', { email, password: STRANGERS })
    await limited.put(`/admin/users/${body.id}`, { phone, phone_confirm: true }, limited.admin)
    await limited.post('/otp', { phone })
    const { auth } = toSignedIn((await limited.post('/verify', { type: 'sms', phone, token: CODE })).body)
    expect((await limited.put('/user', { email: next, password: OWNERS }, auth)).status).toBe(200)
    limited.clock.advance({ seconds: 301 })
    const password = { phone, password: OWNERS }
    const again = toSignedIn((await limited.post('/token?grant_type=password', password)).body)
    const shown = async () => (await limited.get('/user', again.auth)).body
    expect((await shown()).new_email).not.toBe(next)
    const link = await limited.post('/admin/generate_link', { type: 'magiclink', email }, limited.admin)
    expect(link.body.id).not.toBe(body.id)
    expect(await shown()).toMatchObject({ email: '', new_email: email })
    const tokens = limited.deps.db.selectFrom('one_time_tokens').select('purpose').where('user_id', '=', body.id)
    expect(await tokens.execute()).toEqual([])
  })

  test('keeps it where an admin gave it the address', async () => {
    const email = newAddress()
    const phone = newNumber()
    const made = { email, phone, phone_confirm: true, password: OWNERS }
    const { body } = await service.post('/admin/users', made, service.admin)
    const byNumber = await service.post('/token?grant_type=password', { phone, password: OWNERS })
    expect(shownBy(byNumber.body)).toMatchObject({ email: '', phone })
    const owner = await DOORS['a sign-in link']?.(email)
    expect(decodeJwt(fragmentOf(owner as Answer).access_token as string)).toMatchObject({ sub: body.id, email, phone })
    const given = await anonymous()
    const address = newAddress()
    await service.put(`/admin/users/${given.userId}`, { email: address }, service.admin)
    expect(await read(given.auth)).toMatchObject({ email: '', new_email: address })
    const proven = await DOORS['a sign-in link']?.(address)
    expect(decodeJwt(fragmentOf(proven as Answer).access_token as string)).toMatchObject({
      sub: given.userId,
      email: address,
    })
  })
})

describe('a provider that has not verified an address', () => {
  test.each<[string, (person: Person) => Promise<string | undefined>]>([
    [
      'in the browser',
      async (person) => {
        const answer = await come(service, 'corp', person)
        return queryOf(answer).error_code ?? fragmentOf(answer).access_token
      },
    ],
    [
      'by an id_token',
      async (person) => {
        const id_token = await openId.idToken({ ...person })
        const { body } = await service.post('/token?grant_type=id_token', { provider: 'corp', id_token })
        return body.error_code ?? body.access_token
      },
    ],
  ])('lets nobody in with it, %s; a sign-in that does not tell it opens an account of its own', async (_how, knock) => {
    const told = toldAt(newAddress())
    expect(await knock(told)).toBe('provider_email_needs_verification')
    expect(await knock(told)).toBe('provider_email_needs_verification')
    const own = decodeJwt(String(await knock({ sub: told.sub })))
    expect(own.email).toBe('')
    expect(decodeJwt(String(await knock(told)))).toMatchObject({ sub: own.sub, email: '' })
  })

  test.each(ADMINS_WORDS)('is no way in once an admin %s', async (_what, change) => {
    const person = toldAt(newAddress())
    expect(queryOf(await come(service, 'corp', person)).error_code).toBe('provider_email_needs_verification')
    const { body } = await service.get(`/admin/users?filter=${person.email}`, service.admin)
    const [{ id }] = body.users
    expect((await service.put(`/admin/users/${id}`, change(), service.admin)).status).toBe(200)
    expect(fragmentOf(await come(service, 'corp', person))).not.toHaveProperty('access_token')
    expect((await asAdmin(id)).app_metadata.providers).not.toContain('corp')
    expect((await asAdmin(id)).identities).not.toEqual([])
  })

  test.each(ADMINS_WORDS)('is no way in once an admin %s where a setting had confirmed it', async (_what, change) => {
    const person = toldAt(newAddress())
    const { access_token, refresh_token } = fragmentOf(await come(autoconfirming, 'corp', person))
    const sub = decodeJwt(access_token as string).sub as string
    expect((await service.put(`/admin/users/${sub}`, change(), service.admin)).status).toBe(200)
    const ended = await service.post('/token?grant_type=refresh_token', { refresh_token })
    expect(ended.body.error_code).toBe('refresh_token_not_found')
    expect(fragmentOf(await come(service, 'corp', person))).not.toHaveProperty('access_token')
    expect((await asAdmin(sub)).app_metadata.providers).not.toContain('corp')
    expect((await asAdmin(sub)).identities).not.toEqual([])
  })

  test('is not concerned where an admin confirms an address that was proven, or an account without one', async () => {
    const proven = verifiedAt(newAddress())
    for (const person of [proven, { sub: newSub() }]) {
      const { access_token } = fragmentOf(await come(service, 'corp', person))
      const { sub } = decodeJwt(access_token as string)
      const change = { email: proven === person ? proven.email : newAddress(), email_confirm: true, password: OWNERS }
      expect((await service.put(`/admin/users/${sub}`, change, service.admin)).status).toBe(200)
      expect(decodeJwt(fragmentOf(await come(service, 'corp', person)).access_token as string).sub).toBe(sub)
    }
  })

  test('lets its user in once the address is proven here', async () => {
    const person = toldAt(newAddress())
    const proven = await service.get(await linkOf(person.email as string, () => come(service, 'corp', person)))
    const { access_token } = fragmentOf(proven)
    expect(shownBy({ access_token: access_token as string })).toMatchObject({ email: person.email })
    expect(fragmentOf(await come(service, 'corp', person)).access_token).toBeTruthy()
  })

  test('lets its user in once it has verified the address itself', async () => {
    const person = toldAt(newAddress())
    await come(service, 'corp', person)
    const { access_token } = fragmentOf(await come(service, 'corp', { ...person, email_verified: true }))
    expect(shownBy({ access_token: access_token as string })).toMatchObject({
      email: person.email,
      user_metadata: { email: person.email, email_verified: true },
    })
  })

  test('gives its user another address that it has verified, unless that is taken', async () => {
    const { auth, userId } = await service.signedIn()
    const { email: taken } = await read(auth)
    for (const email of [newAddress(), taken]) {
      const person = toldAt(newAddress())
      await come(service, 'corp', person)
      const { access_token } = fragmentOf(await come(service, 'corp', { ...person, email, email_verified: true }))
      expect(shownBy({ access_token: access_token as string }).email).toBe(email)
      // Nothing was stored before: the verified address opens the account that has it.
      expect(decodeJwt(access_token as string).sub === userId).toBe(email === taken)
    }
    const person = { sub: newSub() }
    await come(service, 'corp', person)
    const { access_token } = fragmentOf(await come(service, 'corp', { ...person, email: taken, email_verified: true }))
    expect(shownBy({ access_token: access_token as string }).email).toBe('')
  })

  test('moves no account to another address when its own changes, verified or not', async () => {
    const first = verifiedAt(newAddress())
    const { access_token } = fragmentOf(await come(service, 'google', first))
    const { sub } = decodeJwt(access_token as string)
    for (const changed of [toldAt(newAddress()), verifiedAt(newAddress())]) {
      const answer = await come(service, 'google', { ...changed, sub: first.sub })
      const claims = shownBy({ access_token: fragmentOf(answer).access_token as string })
      expect(claims.email).toBe(first.email)
      const isVerified = changed.email_verified === true
      expect(claims.user_metadata).toMatchObject({
        email: isVerified ? changed.email : first.email,
        email_verified: true,
      })
      expect((await asAdmin(sub as string)).email).toBe(first.email)
    }
  })
})

describe('an anonymous user who links an account with an unverified address', () => {
  test('has it as the one they want, in no token and no answer as theirs, until they prove it', async () => {
    const user = await anonymous()
    const person = toldAt(newAddress())
    const told = person.email as string
    expect(queryOf(await link(service, user.auth, 'corp', person)).error_code).toBe('email_not_confirmed')
    const refreshed = await refresh(user)
    expect(shownBy(refreshed)).toMatchObject(withoutAddress(told))
    expect(refreshed.user).toMatchObject({ is_anonymous: true, new_email: told })
    const again = await linkOf(told, async () => {
      expect(queryOf(await come(service, 'corp', person)).error_code).toBe('provider_email_needs_verification')
    })
    const { access_token } = fragmentOf(await service.get(again))
    expect(decodeJwt(access_token as string)).toMatchObject({ sub: user.userId, email: told, is_anonymous: false })
    expect(decodeJwt(fragmentOf(await come(service, 'corp', person)).access_token as string).sub).toBe(user.userId)
  })

  test('has it once the provider has verified it', async () => {
    const user = await anonymous()
    const person = toldAt(newAddress())
    await link(service, user.auth, 'corp', person)
    const { access_token } = fragmentOf(await come(service, 'corp', { ...person, email_verified: true }))
    expect(decodeJwt(access_token as string)).toMatchObject({
      sub: user.userId,
      email: person.email,
      is_anonymous: false,
    })
  })

  test('loses nothing to a user who proves the address first, and gains nothing of theirs', async () => {
    const user = await anonymous()
    const person = toldAt(newAddress())
    const told = person.email as string
    const linked = await linkOf(told, () => link(service, user.auth, 'corp', person))
    const owner = await service.signedIn(told, OWNERS)
    expect(owner.userId).not.toBe(user.userId)
    expect(String((await service.get(linked)).headers.location)).toContain('error_code=email_exists')
    expect(await read(user.auth)).toMatchObject({ id: user.userId, email: '' })
  })

  test('gets the same answer whether the address is taken or not', async () => {
    const taken = await service.signedIn()
    const { email } = await read(taken.auth)
    const answers = []
    for (const address of [email, newAddress()]) {
      const user = await anonymous()
      const answer = queryOf(await link(service, user.auth, 'corp', toldAt(address)))
      const { new_email, identities, ...rest } = await read(user.auth)
      answers.push({ answer, isWanted: new_email === address, identities: identities.length, email: rest.email })
    }
    expect(answers[0]).toEqual(answers[1])
    await service.settled()
    expect(service.mailbox.messages({ to: email })).toEqual([])
  })

  test('gets an address that the provider verified, from a registrant who never proved it', async () => {
    const email = newAddress()
    await service.post('/signup', { email, password: STRANGERS })
    const user = await anonymous()
    await link(service, user.auth, 'google', verifiedAt(email))
    expect(shownBy(await refresh(user))).toMatchObject({ email })
    expect((await signIn(service, email, STRANGERS)).status).toBe(400)
  })
})

describe('where accounts are let in without a verified address', () => {
  test('the session has none, and a mail proves the unverified one', async () => {
    const person = toldAt(newAddress())
    const told = person.email as string
    let access_token: string | undefined
    const mailed = await linkOf(told, async () => {
      access_token = fragmentOf(await come(careless, 'corp', person)).access_token
    })
    expect(shownBy({ access_token: access_token as string })).toMatchObject(withoutAddress(told))
    const user = await read(bearerOf(access_token))
    expect(user).toMatchObject({ email: '', new_email: told })
    const proven = fragmentOf(await service.get(mailed))
    expect(decodeJwt(proven.access_token as string)).toMatchObject({ sub: user.id, email: told })
  })

  test.each(Object.keys(DOORS))(
    'who proves the address by %s gets an account of their own, and the first keeps its',
    async (door) => {
      const email = newAddress()
      const person = toldAt(email)
      const first = fragmentOf(await come(careless, 'corp', person)).access_token
      await service.settled()
      const owner = decodeJwt(fragmentOf((await DOORS[door]?.(email)) as Answer).access_token as string)
      expect(owner.email).toBe(email)
      const again = decodeJwt(fragmentOf(await come(careless, 'corp', person)).access_token as string)
      expect(again).toMatchObject({ sub: decodeJwt(first as string).sub, email: '' })
      expect(again.sub).not.toBe(owner.sub)
    },
  )

  test('it is the same whether the address is taken or not, and its owner gets no mail', async () => {
    const { auth } = await service.signedIn()
    const { email } = await read(auth)
    for (const address of [email, newAddress()]) {
      const { access_token } = fragmentOf(await come(careless, 'corp', toldAt(address)))
      expect(await read(bearerOf(access_token))).toMatchObject({ email: '', new_email: address })
    }
    await service.settled()
    expect(service.mailbox.messages({ to: email })).toEqual([])
  })

  test('an account that was refused before gives up the address when it is let in', async () => {
    const person = toldAt(newAddress())
    expect(queryOf(await come(service, 'corp', person)).error_code).toBe('provider_email_needs_verification')
    const { access_token } = fragmentOf(await come(careless, 'corp', person))
    expect(shownBy({ access_token: access_token as string })).toMatchObject(withoutAddress(person.email as string))
    const { id } = await read(bearerOf(access_token))
    expect((await asAdmin(id)).email).toBe('')
  })

  test('an anonymous user who links an account is none any more, and comes back by it', async () => {
    const user = await anonymous()
    const person = toldAt(newAddress())
    expect(fragmentOf(await link(careless, user.auth, 'corp', person)).access_token).toBeTruthy()
    const again = decodeJwt(fragmentOf(await come(careless, 'corp', person)).access_token as string)
    expect(again).toMatchObject({ sub: user.userId, email: '', is_anonymous: false })
  })
})

describe('an address that counts as confirmed by a setting', () => {
  async function register(data: object = {}) {
    const email = newAddress()
    const { body } = await autoconfirming.post('/signup', { email, password: STRANGERS, data })
    return { ...toSignedIn(body), email }
  }

  test('is shown as confirmed, as the setting says', async () => {
    const stranger = await register()
    expect(shownBy(await refresh(stranger))).toMatchObject({
      email: stranger.email,
      user_metadata: { email: stranger.email, email_verified: true },
    })
  })

  test('goes to an owner who comes by a provider that verifies, with nothing left of its registrant', async () => {
    const stranger = await register({ role: 'owner' })
    const phone = newNumber()
    expect((await autoconfirming.put('/user', { phone }, stranger.auth)).status).toBe(200)
    await link(service, stranger.auth, 'corp', verifiedAt(newAddress()))
    // Nor does a second factor keep it: it is the registrant's.
    await verifyTotp(service, stranger, await enrollTotp(service, stranger))
    const { access_token } = fragmentOf(await come(service, 'google', verifiedAt(stranger.email)))
    const owner = await read(bearerOf(access_token))
    expect(owner.factors ?? []).toEqual([])
    expect(owner).toMatchObject({ email: stranger.email, phone: '', app_metadata: { providers: ['google'] } })
    expect(owner.user_metadata).not.toHaveProperty('role')
    expect((await signIn(service, stranger.email, STRANGERS)).status).toBe(400)
    expect((await service.post('/token?grant_type=password', { phone, password: STRANGERS })).status).toBe(400)
    expect((await refresh(stranger)).access_token).toBeUndefined()
  })

  test.each(['recover', 'otp'])(
    'goes to an owner who follows a mail of /%s, and no way in of the stranger is left',
    async (way) => {
      const stranger = await register()
      await link(service, stranger.auth, 'corp', verifiedAt(newAddress()))
      await verifyTotp(service, stranger, await enrollTotp(service, stranger))
      const mailed = await linkOf(stranger.email, () => service.post(`/${way}`, { email: stranger.email }))
      const { access_token } = fragmentOf(await service.get(mailed))
      expect((await read(bearerOf(access_token))).factors ?? []).toEqual([])
      expect(await read(bearerOf(access_token))).toMatchObject({
        email: stranger.email,
        app_metadata: { providers: ['email'] },
      })
      expect((await signIn(service, stranger.email, STRANGERS)).status).toBe(400)
      expect((await refresh(stranger)).access_token).toBeUndefined()
      // Proven from now on: the next link is a sign-in, and a password of the owner stays.
      await service.put('/user', { password: OWNERS }, bearerOf(access_token))
      await service.get(await linkOf(stranger.email, () => service.post('/otp', { email: stranger.email })))
      expect((await signIn(service, stranger.email, OWNERS)).status).toBe(200)
    },
  )

  test.each(ADMINS_WORDS)('leaves nothing of its registrant once an admin %s', async (_what, change) => {
    const stranger = await register({ role: 'owner' })
    const phone = newNumber()
    await autoconfirming.put('/user', { phone }, stranger.auth)
    await verifyTotp(service, stranger, await enrollTotp(service, stranger))
    const word: { phone?: string } = change()
    expect((await service.put(`/admin/users/${stranger.userId}`, word, service.admin)).status).toBe(200)
    const left = await asAdmin(stranger.userId)
    expect(left.factors ?? []).toEqual([])
    expect(left.user_metadata).not.toHaveProperty('role')
    expect(left.phone).toBe(word.phone ?? '')
    expect((await refresh(stranger)).access_token).toBeUndefined()
    expect((await signIn(service, left.email, STRANGERS)).status).toBe(400)
    expect((await service.post('/token?grant_type=password', { phone, password: STRANGERS })).status).toBe(400)
    const taken = (await signInByNumber(phone)).body.user
    expect(taken.id).not.toBe(stranger.userId)
  })

  test.each<[string, () => { email?: string; phone_confirm?: boolean }]>([
    ['its e-mail address', () => ({ email_confirm: false }) as object],
    ['its number', () => ({ phone_confirm: false })],
    ['its e-mail address for another one', () => ({ email: newAddress(), email_confirm: false })],
  ])('leaves nothing of its registrant once an admin takes back the confirmation of %s', async (_what, change) => {
    const update = change()
    const first = 'phone_confirm' in update ? { phone: newNumber() } : { email: newAddress() }
    const made = await autoconfirming.post('/signup', { ...first, password: STRANGERS, data: { role: 'owner' } })
    const stranger = toSignedIn(made.body)
    await link(service, stranger.auth, 'corp', { sub: newSub() })
    await verifyTotp(service, stranger, await enrollTotp(service, stranger))
    expect((await service.put(`/admin/users/${stranger.userId}`, update, service.admin)).status).toBe(200)
    const { email, phone, ...left } = await asAdmin(stranger.userId)
    expect([left.factors ?? [], left.email_confirmed_at, left.phone_confirmed_at]).toEqual([[], undefined, undefined])
    expect(left.user_metadata).not.toHaveProperty('role')
    expect((await refresh(stranger)).access_token).toBeUndefined()
    const { body } = phone
      ? await signInByNumber(phone)
      : { body: fragmentOf(await service.get(await linkOf(email, () => service.post('/otp', { email })))) }
    expect(await read(bearerOf(body.access_token))).toMatchObject({ id: stranger.userId, email, phone })
    const held = phone ? { phone } : { email }
    expect((await service.post('/token?grant_type=password', { ...held, password: STRANGERS })).status).toBe(400)
    expect((await asAdmin(stranger.userId)).app_metadata.providers).toEqual([phone ? 'phone' : 'email'])
  })

  test('leaves the account that another one keeps in use, once an admin takes its confirmation back', async () => {
    const stranger = await register()
    const phone = newNumber()
    await autoconfirming.put('/user', { phone }, stranger.auth)
    const update = { email_confirm: false }
    expect((await service.put(`/admin/users/${stranger.userId}`, update, service.admin)).status).toBe(200)
    const owner = fragmentOf((await DOORS['a sign-in link']?.(stranger.email)) as Answer)
    expect(decodeJwt(owner.access_token as string).sub).not.toBe(stranger.userId)
    expect(await read(stranger.auth)).toMatchObject({ id: stranger.userId, email: '', phone })
  })

  test.each(['a sign-in link', 'a provider that verifies'])(
    'is its owner’s with the password that an admin chose, by %s as well',
    async (door) => {
      const stranger = await register()
      await service.put(`/admin/users/${stranger.userId}`, { password: OWNERS }, service.admin)
      const owner = toSignedIn((await signIn(service, stranger.email, OWNERS)).body)
      await verifyTotp(service, owner, await enrollTotp(service, owner))
      const { access_token } = fragmentOf((await DOORS[door]?.(stranger.email)) as Answer)
      expect(decodeJwt(access_token as string)).toMatchObject({ sub: owner.userId, email: stranger.email, aal: 'aal1' })
      expect((await asAdmin(owner.userId)).factors).not.toEqual([])
      expect((await signIn(service, stranger.email, OWNERS)).status).toBe(200)
    },
  )

  test('stays one where an admin puts another in its place: the owner of that one takes the account', async () => {
    const stranger = await register()
    const email = newAddress()
    const phone = newNumber()
    await autoconfirming.put('/user', { phone }, stranger.auth)
    const update = { email, phone: newNumber() }
    expect((await service.put(`/admin/users/${stranger.userId}`, update, service.admin)).body).toMatchObject(update)
    const { access_token } = fragmentOf(await service.get(await linkOf(email, () => service.post('/otp', { email }))))
    expect(await read(bearerOf(access_token))).toMatchObject({ id: stranger.userId, email, phone: '' })
    expect((await signIn(service, email, STRANGERS)).status).toBe(400)
    expect((await refresh(stranger)).access_token).toBeUndefined()
  })

  test('beside a proven one is no word of an admin who chooses a password', async () => {
    const phone = newNumber()
    const stranger = await service.signedUp(undefined, STRANGERS)
    await autoconfirming.put('/user', { phone }, stranger.auth)
    await service.put(`/admin/users/${stranger.userId}`, { password: OWNERS }, service.admin)
    const owner = await service.signedUp()
    await addNumber(owner.auth, phone)
    expect(await read(owner.auth)).toMatchObject({ id: owner.userId, phone })
    expect((await asAdmin(stranger.userId)).phone).toBe('')
  })

  test('can be a number', async () => {
    const phone = newNumber()
    const { body } = await autoconfirming.post('/signup', { phone, password: STRANGERS })
    const owner = await signInByNumber(phone)
    expect(owner.body.user).toMatchObject({ id: body.user.id, phone })
    expect((await service.post('/token?grant_type=password', { phone, password: STRANGERS })).status).toBe(400)
    expect((await refresh(toSignedIn(body))).access_token).toBeUndefined()
  })

  test('leaves an account whose registrant has proven another one, for a new account of its owner', async () => {
    const phone = newNumber()
    const stranger = await service.signedUp(undefined, STRANGERS)
    expect((await autoconfirming.put('/user', { phone }, stranger.auth)).body.phone).toBe(phone)
    const owner = await signInByNumber(phone)
    expect(shownBy(owner.body)).toMatchObject({ phone, email: '' })
    expect(owner.body.user.id).not.toBe(stranger.userId)
    expect(await read(stranger.auth)).toMatchObject({ id: stranger.userId, phone: '' })
    const { identities } = await read(stranger.auth)
    expect(identities.map(({ provider }: { provider: string }) => provider)).toEqual(['email'])
    expect((await signInByNumber(phone)).body.user.id).toBe(owner.body.user.id)
  })

  test.each(['invites', 'makes'])(
    'is no word of an admin who %s the account by another address: who proves it takes it',
    async (how) => {
      const email = newAddress()
      let accessToken: string | undefined
      if (how === 'makes') {
        await service.post('/admin/users', { email, password: OWNERS, email_confirm: true }, service.admin)
        accessToken = (await signIn(service, email, OWNERS)).body.access_token
      } else {
        const path = await linkOf(email, () => service.post('/invite', { email }, service.admin))
        accessToken = fragmentOf(await service.get(path)).access_token
      }
      const phone = newNumber()
      const holder = bearerOf(accessToken)
      expect((await autoconfirming.put('/user', { phone }, holder)).body.phone).toBe(phone)
      const owner = await service.signedUp()
      await addNumber(owner.auth, phone)
      expect(await read(owner.auth)).toMatchObject({ id: owner.userId, phone })
      expect(await read(holder)).toMatchObject({ email, phone: '' })
    },
  )

  test('is taken by another user who proves it, and its account keeps what else it has', async () => {
    const stranger = await register()
    const own = await service.with({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
    const owner = await own.signedIn()
    expect((await own.put('/user', { email: stranger.email }, owner.auth)).status).toBe(200)
    await own.get(linkPath((await service.mailbox.waitFor(stranger.email)).text))
    expect(await read(owner.auth)).toMatchObject({ id: owner.userId, email: stranger.email })
    expect(await read(stranger.auth)).toMatchObject({ id: stranger.userId, email: '' })
    await own.close()
  })
})

describe('a ban of an account that never proved its address', () => {
  const ban = (id: string) => service.put(`/admin/users/${id}`, { ban_duration: '24h' }, service.admin)

  test.each(Object.keys(DOORS))(
    'keeps an owner who comes by %s from nothing, and stays with the registrant',
    async (door) => {
      const email = newAddress()
      const { body } = await service.post('/signup', { email, password: STRANGERS, data: { planted: true } })
      await service.mailbox.waitFor(email)
      await ban(body.id)
      const { access_token } = fragmentOf((await DOORS[door]?.(email)) as Answer)
      const owner = await read(bearerOf(access_token))
      expect(owner).toMatchObject({ email, user_metadata: expect.not.objectContaining({ planted: true }) })
      expect(owner.id).not.toBe(body.id)
      expect((await asAdmin(body.id)).error_code).toBe('user_not_found')
      expect((await signIn(service, email, STRANGERS)).status).toBe(400)
    },
  )

  test('yields to an owner who follows the link they requested, not one of a stranger', async () => {
    const own = await service.with({ AUTH_RATE_LIMIT_HEADER: 'X-Real-IP' })
    const email = newAddress()
    const { body } = await own.post('/signup', { email, password: STRANGERS })
    await service.mailbox.waitFor(email)
    await ban(body.id)
    const ask = (code_challenge: string, address: string) =>
      linkOf(email, () =>
        own.post('/otp', { email, code_challenge, code_challenge_method: 'plain' }, { 'x-real-ip': address }),
      )
    await ask('s'.repeat(43), '203.0.113.9')
    const answer = await own.get(await ask('o'.repeat(43), '192.0.2.1'))
    const auth_code = queryOf(answer).code
    const { status, body: session } = await own.post('/token?grant_type=pkce', {
      auth_code,
      code_verifier: 'o'.repeat(43),
    })
    expect([status, session.user?.email]).toEqual([200, email])
    expect(session.user.id).not.toBe(body.id)
    await own.close()
  })

  test.each(['a sign-in link', 'a recovery', 'a change of address', 'a provider that verifies'])(
    'holds against %s where a setting assumed the address and the account was in use',
    async (door) => {
      const email = newAddress()
      const stranger = toSignedIn((await autoconfirming.post('/signup', { email, password: STRANGERS })).body)
      await ban(stranger.userId)
      if (door === 'a change of address') {
        const { auth } = await anonymous()
        const answer = await service.get(await linkOf(email, () => service.put('/user', { email }, auth)))
        expect({ ...queryOf(answer), ...fragmentOf(answer) }).toMatchObject({ error_code: 'email_exists' })
      } else {
        const answer =
          door === 'a recovery'
            ? await service.get(await linkOf(email, () => service.post('/recover', { email })))
            : ((await DOORS[door]?.(email)) as Answer)
        expect({ ...queryOf(answer), ...fragmentOf(answer) }).toMatchObject({ error_code: 'user_banned' })
      }
      const left = await asAdmin(stranger.userId)
      expect(left).toMatchObject({ email, banned_until: expect.any(String) })
      expect(left.app_metadata.providers).toEqual(['email'])
      // Lifted, it is the owner's as before.
      await service.put(`/admin/users/${stranger.userId}`, { ban_duration: 'none' }, service.admin)
      const { access_token } = fragmentOf((await DOORS['a sign-in link']?.(email)) as Answer)
      expect((await read(bearerOf(access_token))).email).toBe(email)
      expect((await signIn(service, email, STRANGERS)).status).toBe(400)
    },
  )

  test('holds for a number, too, that a setting assumed', async () => {
    const phone = newNumber()
    const { body } = await autoconfirming.post('/signup', { phone, password: STRANGERS })
    await ban(body.user.id)
    expect((await signInByNumber(phone)).body.error_code).toBe('user_banned')
  })

  test('holds where an admin gave it the address', async () => {
    const email = newAddress()
    const { body } = await service.post('/admin/users', { email }, service.admin)
    await ban(body.id)
    const answer = await service.get(await linkOf(email, () => service.post('/otp', { email })))
    expect(fragmentOf(answer).error_code).toBe('user_banned')
  })
})

test.each(['a sign-up', 'a sign-in link', 'a recovery'])(
  'a registration that an admin calls unconfirmed is still its owner’s, who comes by %s, and no stranger’s',
  async (door) => {
    const email = newAddress()
    await service.post('/signup', { email, password: STRANGERS })
    const [{ id: userId }] = (await service.get(`/admin/users?filter=${email}`, service.admin)).body.users
    const update = { user_metadata: { team: 'a' }, email_confirm: false }
    expect((await service.put(`/admin/users/${userId}`, update, service.admin)).status).toBe(200)
    const recover = async () => service.get(await linkOf(email, () => service.post('/recover', { email })))
    const owner = fragmentOf(await (DOORS[door] ?? recover)(email))
    expect(decodeJwt(owner.access_token as string)).toMatchObject({ sub: userId, email })
    expect((await signIn(service, email, STRANGERS)).status).toBe(400)
  },
)

test("the link of a sign-up that a provider's account follows as an invitation brings nothing of the registrant", async () => {
  const email = newAddress()
  const path = await linkOf(email, () =>
    service.post('/signup', { email, password: STRANGERS, data: { planted: true } }),
  )
  const token = new URL(path, 'http://x').searchParams.get('token')
  const { access_token } = fragmentOf(await come(service, 'google', verifiedAt(email), `&invite_token=${token}`))
  const owner = await read(bearerOf(access_token))
  expect(owner).toMatchObject({ email, app_metadata: { providers: ['google'] }, has_password: false })
  expect(owner.user_metadata).not.toHaveProperty('planted')
})

test.each(['a mail', 'a provider'])(
  'a token of who registered an assumed address reads nothing once its owner proves it by %s',
  async (way) => {
    const email = newAddress()
    const stranger = toSignedIn((await autoconfirming.post('/signup', { email, password: STRANGERS })).body)
    expect((await service.get('/user', stranger.auth)).status).toBe(200)
    const entered =
      way === 'a mail'
        ? await service.get(await linkOf(email, () => service.post('/recover', { email })))
        : await come(service, 'google', verifiedAt(email))
    expect(await read(bearerOf(fragmentOf(entered).access_token))).toMatchObject({ id: stranger.userId, email })
    expect(await service.get('/user', stranger.auth)).toMatchObject({
      status: 403,
      body: { error_code: 'session_not_found' },
    })
  },
)

describe('where accounts at a provider link to no user', () => {
  test('a stranger who registered the address keeps its owner from nothing', async () => {
    const own = await service.with({ AUTH_EXTERNAL_GOOGLE_LINKING: 'never' })
    const email = newAddress()
    const registrants = await linkOf(email, () =>
      service.post('/signup', { email, password: STRANGERS, data: { planted: true } }),
    )
    const { access_token } = fragmentOf(await come(own, 'google', verifiedAt(email)))
    const owner = await read(bearerOf(access_token))
    expect(owner).toMatchObject({ email, app_metadata: { providers: ['google'] } })
    expect(owner.user_metadata).not.toHaveProperty('planted')
    expect(fragmentOf(await service.get(registrants)).access_token).toBeUndefined()
    expect((await signIn(service, email, STRANGERS)).status).toBe(400)
    const { body: entries } = await service.get('/admin/audit?query=action:user_deleted', service.admin)
    const deleted = { actor_id: owner.id, traits: expect.objectContaining({ user_email: email }) }
    expect(entries.map(({ payload }: { payload: object }) => payload)).toContainEqual(expect.objectContaining(deleted))
    await own.close()
  })

  test('an account that counts as confirmed by a setting gives up the address and stays', async () => {
    const own = await service.with({ AUTH_EXTERNAL_GOOGLE_LINKING: 'never' })
    const email = newAddress()
    const stranger = toSignedIn((await autoconfirming.post('/signup', { email, password: STRANGERS })).body)
    const { access_token } = fragmentOf(await come(own, 'google', verifiedAt(email)))
    expect(await read(bearerOf(access_token))).toMatchObject({ email, app_metadata: { providers: ['google'] } })
    expect(await read(stranger.auth)).toMatchObject({ id: stranger.userId, email: '' })
    await own.close()
  })
})

describe('members of user_metadata about addresses are written by the service alone', () => {
  const facts = { sub: 'forged', email: 'ceo@corp.example', email_verified: true, phone: '1', phone_verified: true }
  const data = { ...facts, theme: 'dark' }
  const ways: Record<string, () => Promise<Auth>> = {
    'PUT /user': async () => {
      const { auth } = await service.signedIn()
      expect((await service.put('/user', { data }, auth)).status).toBe(200)
      return auth
    },
    'an anonymous sign-up': async () => toSignedIn((await service.post('/signup', { data })).body).auth,
    'a sign-up': async () =>
      toSignedIn((await autoconfirming.post('/signup', { email: newAddress(), password: OWNERS, data })).body).auth,
    'a sign-in link': async () => {
      const email = newAddress()
      const mailed = await linkOf(email, () => service.post('/otp', { email, data }))
      return bearerOf(fragmentOf(await service.get(mailed)).access_token)
    },
    'an invitation': async () => {
      const email = newAddress()
      const mailed = await linkOf(email, () => service.post('/invite', { email, data }, service.admin))
      return bearerOf(fragmentOf(await service.get(mailed)).access_token)
    },
    'a generated link': async () => {
      const order = { type: 'signup', email: newAddress(), password: OWNERS, data }
      await service.post('/admin/generate_link', order, service.admin)
      const { body } = await service.post('/admin/generate_link', order, service.admin)
      return bearerOf(fragmentOf(await service.get(linkPath(body.action_link))).access_token)
    },
    'an admin': async () => {
      const { auth, userId } = await service.signedIn()
      await service.put(`/admin/users/${userId}`, { user_metadata: data }, service.admin)
      return auth
    },
    'an admin who makes the user': async () => {
      const made = { phone: newNumber(), phone_confirm: true, password: OWNERS, user_metadata: data }
      await service.post('/admin/users', made, service.admin)
      return toSignedIn((await service.post('/token?grant_type=password', made)).body).auth
    },
    'a sign-up whose data names them as null': async () => {
      const { auth } = await service.signedIn()
      await service.put(
        '/user',
        { data: { ...Object.fromEntries(Object.keys(facts).map((key) => [key, null])), theme: 'dark' } },
        auth,
      )
      return auth
    },
  }

  test.each(Object.keys(ways))('whatever is sent by %s', async (way) => {
    const { id, email, email_confirmed_at, phone, user_metadata } = await read(await (ways[way]?.() as Promise<Auth>))
    const told: Record<string, unknown> = {
      sub: id,
      email,
      email_verified: email !== '' && email_confirmed_at !== undefined,
      phone,
      phone_verified: phone !== '',
    }
    expect(user_metadata.theme).toBe('dark')
    for (const key of Object.keys(facts)) expect([undefined, told[key]]).toContain(user_metadata[key])
  })
})

test('a proof of another address does not verify one from a provider', async () => {
  const person = toldAt(newAddress())
  const { access_token } = fragmentOf(await come(careless, 'corp', person))
  const own = newAddress()
  await service.put('/user', { email: own }, bearerOf(access_token))
  const proven = fragmentOf(await service.get(linkPath((await service.mailbox.waitFor(own)).text)))
  expect(shownBy({ access_token: proven.access_token as string })).toMatchObject({
    email: own,
    user_metadata: { email: own, email_verified: true },
  })
})

test('an account with an unverified address of a provider goes to its owner, even if a limit refused their own sign-up', async () => {
  const spaced = await service.with({ AUTH_SMTP_MAX_FREQUENCY: '900' })
  const person = toldAt(newAddress())
  const { email = '' } = person
  const stranger = spaced.otherBrowser()
  await come(stranger, 'corp', person)
  const mail = await service.mailbox.waitFor(email)
  expect((await spaced.post('/signup', { email, password: OWNERS })).status).toBe(429)
  const owner = await read(bearerOf(fragmentOf(await spaced.get(linkPath(mail.text))).access_token))
  expect(owner).toMatchObject({ email, app_metadata: { providers: ['email'] } })
  expect(fragmentOf(await come(stranger, 'corp', person)).access_token).toBeUndefined()
  await spaced.close()
})
