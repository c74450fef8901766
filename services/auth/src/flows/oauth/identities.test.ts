import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askToLink, identityIn, link as linkAt, newPerson, type Person } from '../../../test/linked-identities.ts'
import { type OpenIdProvider, pressButton, startOpenIdProvider, visitFrom } from '../../../test/openid-provider.ts'
import { enrollTotp, signInAgain, verifyTotp, withTotp } from '../../../test/second-factors.ts'
import {
  fragmentOf,
  linkPath,
  queryOf,
  type SignedIn,
  startTestService,
  type TestService,
  toSignedIn,
} from '../../../test/service.ts'

const password = 'correct horse'

let google: OpenIdProvider
let service: TestService
beforeAll(async () => {
  google = await startOpenIdProvider()
  service = await startTestService({
    ...google.settings('GOOGLE'),
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    AUTH_MAILER_NOTIFICATIONS_IDENTITY_LINKED_ENABLED: 'true',
    AUTH_MAILER_NOTIFICATIONS_IDENTITY_UNLINKED_ENABLED: 'true',
    AUTH_SMS_AUTOCONFIRM: 'true',
    AUTH_SMS_TEST_OTP: '4915100000001:111111',
  })
})
afterAll(async () => {
  await service.close()
  await google.close()
})

type Auth = SignedIn['auth']

const authorize = (auth: Auth) => askToLink(service, auth)
const link = (auth: Auth, person: Person) => linkAt(service, google, auth, person)
const read = async (auth: Auth) => (await service.get('/user', auth)).body
const unlink = (auth: Auth, id: string) => service.delete(`/user/identities/${id}`, auth)
async function anonymous() {
  const { body } = await service.post('/signup', {})
  return { userId: body.user.id, auth: { authorization: `Bearer ${body.access_token}` } }
}

describe('linking', () => {
  test('adds the account at the provider, whatever its address, keeps the data, notifies the owner and signs in', async () => {
    const { auth, userId } = await service.signedUp('links@example.com', password)
    const confirmation = await service.mailbox.waitFor('links@example.com')
    const before = await read(auth)
    const answer = await link(auth, newPerson({ name: 'At Google' }))
    expect([answer.status, fragmentOf(answer).provider]).toEqual([302, 'google'])
    const user = await read({ authorization: `Bearer ${fragmentOf(answer).access_token}` })
    expect([user.id, user.email, user.user_metadata]).toEqual([userId, 'links@example.com', before.user_metadata])
    expect(user.app_metadata.providers).toEqual(['email', 'google'])
    const told = await service.mailbox.waitFor('links@example.com', { after: confirmation })
    expect(told.text).toContain('google')
    const { body: entries } = await service.get('/admin/audit?query=action:identity_linked', service.admin)
    expect(JSON.stringify(entries)).toContain(userId)
  })

  test('begins at an address of ours with a button: in the answer for scripts, else by a redirect', async () => {
    const { auth } = await service.signedIn()
    const redirected = await service.get('/user/identities/authorize?provider=google', auth)
    const { body, headers } = await authorize(auth)
    expect([redirected.status, headers['set-cookie']]).toEqual([302, undefined])
    for (const url of [String(redirected.headers.location), body.url]) {
      expect(url).toMatch(/^https:\/\/auth\.example\/callback\?begin=/)
      const { pathname, search } = new URL(url)
      const begun = await pressButton(service, await service.get(pathname + search))
      expect([begun.status, String(begun.headers.location).startsWith(google.issuer)]).toEqual([200, true])
    }
  })

  test('is refused for one that is linked already, here or elsewhere', async () => {
    const person = newPerson()
    const { auth } = await service.signedIn()
    await link(auth, person)
    const twice = queryOf(await link(auth, person))
    expect(twice).toMatchObject({
      error_code: 'identity_already_exists',
      error_description: 'Identity is already linked',
    })
    const other = await service.signedIn()
    expect(queryOf(await link(other.auth, person)).error_description).toBe('Identity is already linked to another user')
  })

  test('makes an anonymous user one with an address', async () => {
    const { auth, userId } = await anonymous()
    const person = newPerson()
    await link(auth, person)
    const user = await read(auth)
    expect(user).toMatchObject({ id: userId, email: person.email, is_anonymous: false })
    expect(user.email_confirmed_at).toBeTruthy()
  })

  test('takes no address from another account', async () => {
    const { auth } = await anonymous()
    await service.signedIn('has-it@example.com')
    expect(queryOf(await link(auth, newPerson({ email: 'has-it@example.com' }))).error_code).toBe('email_exists')
    expect((await read(auth)).identities).toEqual([])
  })

  test('keeps an address that is not verified waiting for its confirmation', async () => {
    const { auth } = await anonymous()
    const person = newPerson({ email_verified: false })
    expect(queryOf(await link(auth, person))).toMatchObject({
      error_code: 'email_not_confirmed',
      error_description: 'Unverified email with google. A confirmation email has been sent to your google email',
    })
    expect((await service.mailbox.waitFor(person.email)).text).toContain('/verify?')
    const user = await read(auth)
    expect([user.email, user.new_email, user.is_anonymous]).toEqual(['', person.email, true])
  })

  test('refuses a user banned meanwhile, and links nothing', async () => {
    const { auth, userId } = await service.signedIn()
    google.next(newPerson())
    const { body } = await authorize(auth)
    await service.put(`/admin/users/${userId}`, { ban_duration: '1h' }, service.admin)
    const callback = await visitFrom(service, google, body.url)
    const answer = await service.get(callback.pathname + callback.search)
    expect(queryOf(answer)).toMatchObject({ error: 'access_denied', error_code: 'user_banned' })
    expect((await service.get(`/admin/users/${userId}`, service.admin)).body.identities).toHaveLength(1)
  })

  test('and signing in by the same account at once do not stop each other', async () => {
    for (let attempts = 0; attempts < 6; attempts++) {
      const person = newPerson()
      const { auth } = await service.signedIn(person.email)
      google.next(person)
      const linking = await visitFrom(service, google, (await authorize(auth)).body.url)
      const begun = await service.get('/authorize?provider=google')
      const signingIn = await google.visit(String(begun.headers.location))
      const back = ({ pathname, search }: URL) => service.get(pathname + search)
      const [linked, signedIn] = await Promise.all([back(linking), back(signingIn)])
      expect(fragmentOf(signedIn).access_token).toBeTruthy()
      expect(queryOf(linked).error_code).toBeOneOf([undefined, 'identity_already_exists'])
    }
  })

  test('for an account that is deleted meanwhile ends with an error', async () => {
    const { auth, userId } = await service.signedIn()
    google.next(newPerson())
    const { body } = await authorize(auth)
    const callback = await visitFrom(service, google, body.url)
    await service.delete(`/admin/users/${userId}`, service.admin)
    expect(queryOf(await service.get(callback.pathname + callback.search)).error_code).toBe('user_not_found')
  })
})

describe('an account begun to be linked is not linked any more', () => {
  /** Ways to end the session of a thief, after which the link that they began must not work. */
  test.each<[string, string, (user: SignedIn) => Promise<unknown>]>([
    ['once its session was ended', 'session_not_found', ({ auth }) => service.post('/logout?scope=global', {}, auth)],
    [
      'once an admin ended all sessions',
      'session_not_found',
      ({ userId }) => service.delete(`/admin/users/${userId}/sessions`, service.admin),
    ],
    [
      'once its user was banned',
      'user_banned',
      ({ userId }) => service.put(`/admin/users/${userId}`, { ban_duration: '1h' }, service.admin),
    ],
    [
      'once another session has a second factor',
      'session_not_found',
      async ({ userId }) => {
        const { body } = await service.get(`/admin/users/${userId}`, service.admin)
        const owner = await signInAgain(service, body.email)
        await verifyTotp(service, owner, await enrollTotp(service, owner))
      },
    ],
  ])('%s', async (_when, code, putOut) => {
    const user = await service.signedIn()
    google.next(newPerson())
    const { body } = await authorize(user.auth)
    const callback = await visitFrom(service, google, body.url)
    await putOut(user)
    const answer = await service.get(callback.pathname + callback.search)
    expect(queryOf(answer).error_code).toBe(code)
    const { body: after } = await service.get(`/admin/users/${user.userId}`, service.admin)
    expect(after.app_metadata.providers).toEqual(['email'])
  })

  test('while its session has proven less than its user by now', async () => {
    const user = await withTotp(service)
    google.next(newPerson())
    const { body } = await authorize(user.auth)
    const callback = await visitFrom(service, google, body.url)
    // The state after the factor was removed and another one verified elsewhere.
    await service.deps.db.updateTable('sessions').set({ aal: 'aal1' }).where('user_id', '=', user.userId).execute()
    const answer = await service.get(callback.pathname + callback.search)
    expect(queryOf(answer).error_code).toBe('insufficient_aal')
  })
})

describe('unlinking', () => {
  test('refuses a sign-in by the identity that arrives while it is unlinked', async () => {
    const { auth, userId } = await service.signedIn()
    const person = newPerson()
    await link(auth, person)
    const identity = identityIn(await read(auth), 'google')
    const iat = Math.floor(service.clock.now().getTime() / 1000)
    const id_token = await google.idToken({ ...person, iat, exp: iat + 300 })
    const holder = await service.deps.pool.connect()
    await holder.query('begin')
    await holder.query('select from users where id = $1 for update', [userId])
    const unlinked = unlink(auth, identity)
    await expect.poll(() => countLockWaits(service.deps.pool)).toBe(1)
    const signIn = service.post('/token?grant_type=id_token', { provider: 'google', id_token })
    await expect.poll(() => countLockWaits(service.deps.pool)).toBe(2)
    await holder.query('commit')
    holder.release()
    expect((await unlinked).status).toBe(200)
    expect((await signIn).body.access_token).toBeUndefined()
  })

  test('is refused for the identity of the address, which another one does not replace', async () => {
    const { auth } = await service.signedIn('first@example.com', password)
    await link(auth, newPerson())
    expect(await unlink(auth, identityIn(await read(auth), 'email'))).toMatchObject({
      status: 422,
      body: { error_code: 'email_conflict_identity_not_deletable' },
    })
    const { email, app_metadata } = await read(auth)
    expect([email, app_metadata.providers]).toEqual(['first@example.com', ['email', 'google']])
  })

  test('of an account at a provider leaves the address, whose owner gets a mail', async () => {
    const { auth } = await service.signedIn('stays@example.com')
    await link(auth, newPerson())
    await unlink(auth, identityIn(await read(auth), 'google'))
    expect(await read(auth)).toMatchObject({ email: 'stays@example.com', app_metadata: { providers: ['email'] } })
    await expect
      .poll(() => service.mailbox.messages({ to: 'stays@example.com' }).map(({ subject }) => subject))
      .toContain('A sign-in method was removed from your account')
  })

  test('of a number takes the number', async () => {
    const { body } = await service.post('/signup', { phone: '4915100000001', password })
    const auth = { authorization: `Bearer ${body.access_token}` }
    await link(auth, newPerson())
    await unlink(auth, identityIn(await read(auth), 'phone'))
    const user = await read(auth)
    expect([user.phone, user.phone_confirmed_at]).toEqual(['', undefined])
  })

  test('is refused for the last one, for a stranger and for a malformed id', async () => {
    const { auth } = await service.signedIn('lonely@example.com')
    const own = identityIn(await read(auth), 'email')
    expect(await unlink(auth, own)).toMatchObject({
      status: 422,
      body: { error_code: 'single_identity_not_deletable' },
    })
    const person = newPerson()
    await link(auth, person)
    const other = await service.signedIn()
    expect(await unlink(auth, identityIn(await read(other.auth), 'email'))).toMatchObject({
      status: 422,
      body: { error_code: 'identity_not_found' },
    })
    expect(await unlink(auth, 'x')).toMatchObject({ status: 404, body: { error_code: 'validation_failed' } })
    expect(await service.delete(`/user/identities/${own}`, { ...auth, 'x-jwt-aud': 'other' })).toMatchObject({
      status: 403,
      body: { error_code: 'unexpected_audience' },
    })
    expect((await read(auth)).identities).toHaveLength(2)
  })

  test('knows the identity in capitals too', async () => {
    const { auth } = await service.signedIn()
    await link(auth, newPerson())
    const id = identityIn(await read(auth), 'google')
    expect((await unlink(auth, id.toUpperCase())).status).toBe(200)
    expect((await read(auth)).identities).toHaveLength(1)
  })

  test('of both identities at once leaves one', async () => {
    const { auth } = await service.signedIn()
    await link(auth, newPerson())
    const user = await read(auth)
    const answers = await Promise.all(
      user.identities.map((one: { identity_id: string }) => unlink(auth, one.identity_id)),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422])
  })

  test('needs a live session', async () => {
    const { auth } = await service.signedIn()
    const user = await read(auth)
    await service.post('/logout', {}, auth)
    expect((await unlink(auth, identityIn(user, 'email'))).body.error_code).toBe('session_not_found')
    expect((await authorize(auth)).body.error_code).toBe('session_not_found')
  })
})

test('a user with a second factor proves it before a way to sign in is added or removed', async () => {
  const user = await withTotp(service)
  const thief = await signInAgain(service, user.email)
  await link(user.auth, newPerson())
  const identity = identityIn(await read(user.auth), 'google')
  const id_token = await google.idToken(newPerson())
  const answers = [
    await authorize(thief.auth),
    await unlink(thief.auth, identity),
    await service.post('/token?grant_type=id_token', { provider: 'google', id_token, link_identity: true }, thief.auth),
  ]
  expect(answers).toMatchObject(answers.map(() => ({ status: 403, body: { error_code: 'insufficient_aal' } })))
  expect((await unlink(user.auth, identity)).status).toBe(200)
})

test('without the setting there is neither, and a caller who is not signed in gets 401 first', async () => {
  const off = await service.with({
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'false',
    AUTH_MAILER_AUTOCONFIRM: 'true',
  })
  const { body } = await off.post('/signup', { email: 'off@example.com', password })
  const auth = { authorization: `Bearer ${body.access_token}` }
  const refused = { status: 404, body: { error_code: 'manual_linking_disabled', msg: 'Manual linking is disabled' } }
  expect(await off.get('/user/identities/authorize?provider=google', auth)).toMatchObject(refused)
  expect(await off.delete('/user/identities/x', auth)).toMatchObject(refused)
  expect((await off.delete('/user/identities/x')).body.error_code).toBe('no_authorization')
  await off.close()
})

describe('an account with a proven number has no address that its provider did not verify: the owner may still come', () => {
  const number = '4915100000001'

  test.each<[string, (own: TestService) => Promise<SignedIn>]>([
    [
      'with the number proven before',
      async (own) => {
        const stranger = toSignedIn((await own.post('/signup', { phone: number, password })).body)
        await linkTold(own, stranger)
        return stranger
      },
    ],
    [
      'with the number proven after',
      async (own) => {
        const stranger = toSignedIn((await own.post('/signup', {})).body)
        await linkTold(own, stranger)
        await own.mailbox.waitFor(told)
        expect((await own.put('/user', { phone: number }, stranger.auth)).status).toBe(200)
        return stranger
      },
    ],
  ])('%s', async (_when, makeStranger) => {
    const own = await startTestService({
      ...google.settings('GOOGLE'),
      AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
      AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
      AUTH_SMS_AUTOCONFIRM: 'true',
      AUTH_SMS_TEST_OTP: `${number}:111111`,
    })
    const stranger = await makeStranger(own)
    await own.settled()
    own.clock.advance({ seconds: 901 })
    const [before] = own.mailbox.messages({ to: told })
    await own.post('/signup', { email: told, password })
    const mail = await own.mailbox.waitFor(told, before ? { after: before } : {})
    const { access_token } = fragmentOf(await own.get(linkPath(mail.text)))
    const { body: owner } = await own.get('/user', { authorization: `Bearer ${access_token}` })
    expect(owner.email).toBe(told)
    expect(owner.id).not.toBe(stranger.userId)
    await own.close()
  })

  const told = 'told@example.com'

  async function linkTold(own: TestService, { auth }: SignedIn) {
    google.next(newPerson({ email: told, email_verified: false }))
    const { body } = await own.get('/user/identities/authorize?provider=google&skip_http_redirect=true', auth)
    const callback = await visitFrom(own, google, body.url)
    await own.get(callback.pathname + callback.search)
  }
})

describe('an address that its provider did not verify', () => {
  test('does not block a sign-up with it, or its owner', async () => {
    const { auth } = await service.signedIn()
    await link(auth, newPerson({ email: 'owner-of-it@example.com', email_verified: false }))
    const { auth: owner } = await service.signedIn('owner-of-it@example.com', password)
    expect((await read(owner)).email).toBe('owner-of-it@example.com')
  })
})

test('a session that ends while its password is checked removes nothing', async () => {
  const own = await startTestService({
    ...google.settings('GOOGLE'),
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
  })
  const { auth } = await own.signedIn()
  await linkAt(own, google, auth, newPerson())
  const identityAtGoogle = async () => identityIn((await own.get('/user', auth)).body, 'google')
  const identity = await identityAtGoogle()
  own.clock.advance({ seconds: 16 * 60 })
  const { passwords } = own.deps
  own.deps.passwords = {
    ...passwords,
    verify: async (...typed) => {
      await own.post('/logout', {}, auth)
      return passwords.verify(...typed)
    },
  }
  const url = `/user/identities/${identity}`
  const answer = await own.app.inject({
    method: 'DELETE',
    url,
    headers: auth,
    payload: { current_password: password },
  })
  expect([answer.statusCode, answer.json().error_code]).toEqual([403, 'session_not_found'])
  expect(await identityAtGoogle()).toBe(identity)
  await own.close()
})
