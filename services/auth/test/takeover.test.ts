// Ways into somebody else's account, or of keeping them out of it, by mixing flows. Each was found by reading or attacking.
import { createHash, randomBytes } from 'node:crypto'
import { decodeJwt } from 'jose'
import { describe, expect } from 'vitest'
import { startSmsGateways } from './far-sides/sms-gateways.ts'
import {
  type Answer,
  codeIn,
  fragmentOf,
  linkPath,
  queryOf,
  startTestService,
  type TestService,
  test,
  tokenIn,
} from './service.ts'

const STRANGERS = 'the stranger knows'
const OWNERS = 'only the owner knows'

const signIn = (service: TestService, email: string, password: string) =>
  service.post('/token?grant_type=password', { email, password })

const generate = async (service: TestService, body: object) =>
  (await service.post('/admin/generate_link', body, service.admin)).body

const followLink = (service: TestService, { action_link }: { action_link: string }) => {
  const { pathname, search } = new URL(action_link)
  return service.get(pathname + search)
}

describe('a stranger who registers an address first', () => {
  test('by data of a sign-up with a phone number does not take the address', async () => {
    const service = await startTestService({ AUTH_SMS_AUTOCONFIRM: 'true' })
    const data = { email: 'victim@example.com', email_verified: true, phone: '1' }
    const squatter = await service.post('/signup', { phone: '4915112345678', password: STRANGERS, data })
    expect(squatter.body.user.user_metadata).not.toHaveProperty('email')
    await service.post('/signup', { email: 'victim@example.com', password: OWNERS })
    expect((await service.mailbox.waitFor('victim@example.com')).subject).toContain('Confirm')
    await service.close()
  })

  test('keeps no password when the owner signs up too and confirms', async ({ service }) => {
    const email = 'first@example.com'
    await service.post('/signup', { email, password: STRANGERS })
    const first = await service.mailbox.waitFor(email)
    service.clock.advance({ seconds: 901 })
    await service.post('/signup', { email, password: OWNERS })
    const second = await service.mailbox.waitFor(email, { after: first })
    expect((await service.get(linkPath(second.text))).headers.location).toContain('access_token')
    // Nothing tells whose password is whose: neither is set, the session of the link may set one.
    expect((await signIn(service, email, STRANGERS)).status).toBe(400)
    expect((await signIn(service, email, OWNERS)).status).toBe(400)
  })

  test('gains nothing by signing up the address again after its owner', async ({ service }) => {
    const email = 'second@example.com'
    await service.post('/signup', { email, password: OWNERS })
    const first = await service.mailbox.waitFor(email)
    service.clock.advance({ seconds: 901 })
    await service.post('/signup', { email, password: STRANGERS })
    const second = await service.mailbox.waitFor(email, { after: first })
    await service.get(linkPath(second.text))
    expect((await signIn(service, email, STRANGERS)).status).toBe(400)
  })

  test.for(['signup', 'otp'])(
    'gains nothing by being first and last, the owner asking by %s in between',
    async (how, { service }) => {
      const email = `sandwich-${how}@example.com`
      const stranger = () => service.post('/signup', { email, password: STRANGERS })
      await stranger()
      const first = await service.mailbox.waitFor(email)
      service.clock.advance({ seconds: 901 })
      await service.post(`/${how}`, how === 'otp' ? { email } : { email, password: OWNERS })
      const second = await service.mailbox.waitFor(email, { after: first })
      service.clock.advance({ seconds: 901 })
      await stranger()
      const third = await service.mailbox.waitFor(email, { after: second })
      service.clock.advance({ seconds: 901 })
      await service.post('/resend', { type: 'signup', email })
      const last = await service.mailbox.waitFor(email, { after: third })
      expect((await service.get(linkPath(last.text))).headers.location).toContain('access_token')
      expect((await signIn(service, email, STRANGERS)).status).toBe(400)
    },
  )

  test('who signs up twice with one password has it after confirming', async ({ service }) => {
    const email = 'patient@example.com'
    await service.post('/signup', { email, password: OWNERS })
    const first = await service.mailbox.waitFor(email)
    service.clock.advance({ seconds: 901 })
    await service.post('/signup', { email, password: OWNERS })
    const second = await service.mailbox.waitFor(email, { after: first })
    await service.get(linkPath(second.text))
    expect((await signIn(service, email, OWNERS)).status).toBe(200)
  })

  test.for(['magiclink', 'recovery', 'signup'])(
    'keeps no password when a generated %s link is followed',
    async (type, { service }) => {
      const email = `generated-${type}@example.com`
      await service.post('/signup', { email, password: STRANGERS })
      const link = await generate(service, { type, email, ...(type === 'signup' ? { password: OWNERS } : {}) })
      expect((await followLink(service, link)).headers.location).toContain('access_token')
      expect((await signIn(service, email, STRANGERS)).status).toBe(400)
      expect((await signIn(service, email, OWNERS)).status).toBe(type === 'signup' ? 200 : 400)
    },
  )
})

describe('an invitation', () => {
  test('stays one when somebody asks for a sign-in link to its address', async ({ service }) => {
    const email = 'invitee@example.com'
    await service.post('/invite', { email }, service.admin)
    const invitation = await service.mailbox.waitFor(email)
    await service.post('/otp', { email })
    const again = await service.mailbox.waitFor(email, { after: invitation })
    expect(linkPath(again.text)).toContain('type=invite')
    expect((await service.get(linkPath(again.text))).headers.location).toContain('access_token')
  })

  test('does not take the password of a stranger who signs up its address', async ({ service }) => {
    const email = 'invitee-two@example.com'
    await service.post('/invite', { email }, service.admin)
    const invitation = await service.mailbox.waitFor(email)
    await service.post('/signup', { email, password: STRANGERS })
    const again = await service.mailbox.waitFor(email, { after: invitation })
    expect((await service.post('/verify', { type: 'email', email, token: codeIn(again.text) })).status).toBe(200)
    expect((await signIn(service, email, STRANGERS)).status).toBe(400)
  })

  test('is not spent by passwords that are too weak', async ({ service }) => {
    const email = 'invitee-three@example.com'
    await service.post('/invite', { email }, service.admin)
    const token = codeIn((await service.mailbox.waitFor(email)).text)
    const verify = (password: string) => service.post('/verify', { type: 'invite', email, token, password })
    for (let i = 0; i < 6; i++) expect((await verify('123')).status).toBe(422)
    expect((await verify(OWNERS)).status).toBe(200)
  })
})

describe('a change of address', () => {
  test('is not agreed to by the link of another one', async ({ service }) => {
    const { auth } = await service.signedIn('agrees@example.com')
    await service.put('/user', { email: 'attacker@example.com' }, auth)
    const older = await service.mailbox.waitFor('attacker@example.com')
    const current = await generate(service, {
      type: 'email_change_current',
      email: 'agrees@example.com',
      new_email: 'ceo@example.com',
    })
    expect((await followLink(service, current)).headers.location).toContain('message=')
    const answer = await service.post('/verify', { type: 'email_change', token_hash: tokenIn(older.text) })
    expect(answer).toMatchObject({ status: 403, body: { error_code: 'otp_expired' } })
    expect((await service.get('/user', auth)).body.email).toBe('agrees@example.com')
  })

  test('can be asked for although a stranger asks to resend it', async ({ service }) => {
    const { auth } = await service.signedIn('wants@example.com')
    expect((await service.post('/resend', { type: 'email_change', email: 'wants@example.com' })).status).toBe(200)
    expect((await service.put('/user', { email: 'wanted-now@example.com' }, auth)).status).toBe(200)
  })

  test('to many addresses, one after the other, is spaced', async ({ service }) => {
    const { auth } = await service.signedIn('spammer@example.com')
    expect((await service.put('/user', { email: 'target-1@example.com' }, auth)).status).toBe(200)
    expect((await service.put('/user', { email: 'target-2@example.com' }, auth)).status).toBe(429)
  })
})

describe('an address that somebody else registered and never confirmed', () => {
  const change = async (service: TestService, auth: { authorization: string }, email: string) => {
    expect((await service.put('/user', { email }, auth)).status).toBe(200)
    const { text } = await service.mailbox.waitFor(email, { subject: 'new' })
    await service.post('/verify', { type: 'email_change', token_hash: tokenIn(text) })
  }

  test('is taken by who proves it, and the one who never did loses it with the account', async () => {
    const service = await startTestService({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
    const { auth, userId } = await service.signedIn('before@example.com')
    const email = 'squatted@example.com'
    await service.post('/signup', { email, password: STRANGERS })
    const squatters = await service.mailbox.waitFor(email)
    await change(service, auth, email)
    expect((await service.get('/user', auth)).body).toMatchObject({ id: userId, email })
    expect((await signIn(service, email, STRANGERS)).status).toBe(400)
    expect((await service.get(linkPath(squatters.text))).headers.location).toContain('otp_expired')
    const { body } = await service.get('/admin/users', service.admin)
    expect(body.users).toHaveLength(1)
    const { body: entries } = await service.get('/admin/audit?query=action:user_deleted', service.admin)
    expect(entries[0].payload).toMatchObject({ actor_id: userId, traits: { user_email: email } })
    await service.close()
  })

  test('leaves an account that has a number of its own, without the address', async () => {
    const service = await startTestService({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
    const { auth } = await service.signedIn('with-number@example.com')
    const email = 'half@example.com'
    await service.post('/signup', { email, password: STRANGERS })
    await service.mailbox.waitFor(email)
    const { users } = (await service.get(`/admin/users?filter=${email}`, service.admin)).body
    const [other] = users
    await service.put(`/admin/users/${other.id}`, { phone: '4915100000031', phone_confirm: true }, service.admin)
    await change(service, auth, email)
    expect((await service.get('/user', auth)).body.email).toBe(email)
    const { body: kept } = await service.get(`/admin/users/${other.id}`, service.admin)
    expect(kept).toMatchObject({ email: '', phone: '4915100000031' })
    expect(kept.identities.map(({ provider }: { provider: string }) => provider)).toEqual(['phone'])
    await service.close()
  })

  test('stays theirs if they confirm it first; what is confirmed, invited or made by an admin is never taken', async () => {
    const service = await startTestService({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
    const { auth } = await service.signedIn('late-one@example.com')
    await service.post('/signup', { email: 'faster@example.com', password: OWNERS })
    const first = await service.mailbox.waitFor('faster@example.com')
    expect((await service.put('/user', { email: 'faster@example.com' }, auth)).status).toBe(200)
    const asked = await service.mailbox.waitFor('faster@example.com', { after: first })
    await service.get(linkPath(first.text))
    const answer = await service.post('/verify', { type: 'email_change', token_hash: tokenIn(asked.text) })
    expect(answer).toMatchObject({ status: 422, body: { error_code: 'email_exists' } })
    await service.post('/invite', { email: 'guest@example.com' }, service.admin)
    await service.post('/admin/users', { email: 'made@example.com' }, service.admin)
    // Whoever asks for a mail to the address makes no sign-up of it.
    await service.post('/resend', { type: 'signup', email: 'made@example.com' })
    await service.mailbox.waitFor('made@example.com')
    for (const email of ['faster@example.com', 'guest@example.com', 'made@example.com']) {
      const refused = await service.put('/user', { email }, auth)
      expect(refused).toMatchObject({ status: 422, body: { error_code: 'email_exists' } })
    }
    await service.close()
  })

  test('is not taken where a change needs no proof', async () => {
    const service = await startTestService({ AUTH_SMS_AUTOCONFIRM: 'true' })
    const phone = '4915100000032'
    await service.post('/admin/users', { phone }, service.admin)
    const asked = { confirmation_sent_at: service.clock.now(), made_by_admin: false }
    await service.deps.db.updateTable('users').set(asked).where('phone', '=', phone).execute()
    const { auth } = await service.signedIn('unproven@example.com')
    const refused = await service.put('/user', { phone }, auth)
    expect(refused).toMatchObject({ status: 422, body: { error_code: 'phone_exists' } })
    await service.close()
  })

  test('can be a number', async () => {
    const gateways = await startSmsGateways()
    const service = await startTestService(gateways.settings('twilio'))
    const phone = '4915100000033'
    await service.post('/signup', { phone, password: STRANGERS })
    await gateways.waitFor(phone)
    const { auth } = await service.signedIn('numbers@example.com')
    expect((await service.put('/user', { phone }, auth)).status).toBe(200)
    await expect.poll(() => gateways.messages.length, { timeout: 5_000 }).toBe(2)
    const token = /\d{6}/.exec(gateways.messages[1]?.text ?? '')?.[0]
    expect((await service.post('/verify', { type: 'phone_change', phone, token })).status).toBe(200)
    expect((await service.get('/user', auth)).body.phone).toBe(phone)
    await service.close()
    await gateways.close()
  })
})

test.for(['unconfirmed', 'confirmed'])(
  'a sign-up that confirms by itself takes no %s account that is there',
  async (state, { service }) => {
    const careless = await startTestService({
      AUTH_DATABASE_URL: service.deps.config.database.url,
      AUTH_WORKERS_ENABLED: 'false',
      AUTH_MAILER_AUTOCONFIRM: 'true',
    })
    const email = `${state}-there@example.com`
    await service.post('/signup', { email, password: OWNERS })
    const { text } = await service.mailbox.waitFor(email)
    if (state === 'confirmed') await service.get(linkPath(text))
    const answer = await careless.post('/signup', { email, password: STRANGERS })
    expect(answer).toMatchObject({ status: 400, body: { error_code: 'user_already_exists' } })
    expect((await signIn(careless, email, STRANGERS)).status).toBe(400)
    if (state === 'unconfirmed') await service.get(linkPath(text))
    expect((await signIn(service, email, OWNERS)).status).toBe(200)
    await careless.close()
  },
)

test('asking whose addresses are taken is limited for each user, in all replicas together', async () => {
  const one = await startTestService()
  const two = await startTestService({
    AUTH_DATABASE_URL: one.deps.config.database.url,
    AUTH_WORKERS_ENABLED: 'false',
  })
  const { auth } = await one.signedIn('curious@example.com')
  await one.signedIn('taken@example.com')
  const ask = (index: number) => (index % 2 ? one : two).put('/user', { email: 'taken@example.com' }, auth)
  const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => ask(index)))
  expect(answers.filter(({ status }) => status === 422)).toHaveLength(10)
  const refused = answers.find(({ status }) => status === 429)
  expect(refused?.body.error_code).toBe('over_request_rate_limit')
  expect((await one.put('/user', { email: 'curious@example.com', data: { fine: true } }, auth)).status).toBe(200)
  const other = await one.signedIn('other-one@example.com')
  expect((await two.put('/user', { email: 'taken@example.com' }, other.auth)).status).toBe(422)
  await two.close()
  await one.close()
})

test('resending a change of number counts where the message goes', async () => {
  const gateways = await startSmsGateways()
  const service = await startTestService({
    ...gateways.settings('twilio'),
    AUTH_SMS_MAX_PER_NUMBER: '2/24h',
    AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
    AUTH_SMS_OTP_EXP: '3600',
  })
  const { auth } = await service.signedIn('pumper@example.com')
  await service.put('/user', { phone: '4915100000001' }, auth)
  for (let i = 0; i < 4; i++) {
    service.clock.advance({ seconds: 901 })
    await service.post('/resend', { type: 'phone_change', email: 'pumper@example.com' })
    await expect.poll(() => service.deps.queue.depth('message-requests')).toBe(0)
  }
  await expect.poll(() => service.deps.queue.depth('sms')).toBe(0)
  expect(gateways.messages).toHaveLength(2)
  await service.close()
  await gateways.close()
})

test('the code of a PKCE link is worth nothing once its user is deleted, hard or soft', async ({ service }) => {
  for (const should_soft_delete of [true, false]) {
    const email = `deleted-${should_soft_delete}@example.com`
    const verifier = randomBytes(32).toString('base64url')
    const code_challenge = createHash('sha256').update(verifier).digest('base64url')
    const { body } = await service.post('/signup', {
      email,
      password: OWNERS,
      code_challenge,
      code_challenge_method: 's256',
    })
    const { code } = queryOf(await service.get(linkPath((await service.mailbox.waitFor(email)).text)))
    const [user] = await service.deps.db.selectFrom('users').select('id').where('email', '=', email).execute()
    const deleted = await service.app.inject({
      method: 'DELETE',
      url: `/admin/users/${user?.id ?? body.id}`,
      headers: service.admin,
      payload: { should_soft_delete },
    })
    expect(deleted.statusCode).toBe(200)
    const exchanged = await service.post('/token?grant_type=pkce', { auth_code: code, code_verifier: verifier })
    expect(exchanged.status).toBe(404)
  }
})

test('a password of an account with a proven number survives the confirmation of its e-mail address', async ({
  service,
}) => {
  const made = await service.post(
    '/admin/users',
    { phone: '4915100000009', phone_confirm: true, email: 'both@example.com', password: OWNERS },
    service.admin,
  )
  expect(made.status).toBe(200)
  await service.post('/recover', { email: 'both@example.com' })
  await service.get(linkPath((await service.mailbox.waitFor('both@example.com')).text))
  expect((await signIn(service, 'both@example.com', OWNERS)).status).toBe(200)
})

test('asking for a nonce while the password changes waits its turn', async ({ service }) => {
  for (let round = 0; round < 10; round++) {
    const { auth } = await service.signedIn(`turns-${round}@example.com`)
    const answers = await Promise.all([
      service.put('/user', { password: 'a new horse' }, auth),
      service.get('/reauthenticate', auth),
      service.get('/reauthenticate', auth),
    ])
    for (const { status } of answers) expect([200, 403, 429]).toContain(status)
  }
})

test('the immediate change of a number is told to its owner', async () => {
  const service = await startTestService({
    AUTH_SMS_AUTOCONFIRM: 'true',
    AUTH_MAILER_NOTIFICATIONS_PHONE_CHANGED_ENABLED: 'true',
  })
  const { auth } = await service.signedIn('owner@example.com')
  await service.put('/user', { phone: '4915100000011' }, auth)
  await service.put('/user', { phone: '4915100000012' }, auth)
  await service.mailbox.waitFor('owner@example.com', { subject: 'phone number was changed' })
  await service.close()
})

test('misses are not forgotten by a sign-in to an account of the same name in another audience', async ({
  service,
}) => {
  const email = 'guessed@example.com'
  await service.signedIn(email, OWNERS)
  const elsewhere = { 'x-jwt-aud': 'elsewhere' }
  service.clock.advance({ seconds: 901 })
  await service.post('/signup', { email, password: STRANGERS }, elsewhere)
  const statuses = []
  for (let i = 0; i < 12; i++) {
    statuses.push((await signIn(service, email, `guess ${i}`)).status)
    await service.post('/token?grant_type=password', { email, password: STRANGERS }, elsewhere)
  }
  expect(statuses).toContain(429)
})

test('a stranger who signs up a number does not kill the code its owner waits for', async () => {
  const gateways = await startSmsGateways()
  const service = await startTestService(gateways.settings('twilio'))
  const phone = '4915100000021'
  const made = await service.post('/admin/users', { phone, phone_confirm: true, password: OWNERS }, service.admin)
  expect(made.status).toBe(200)
  await service.post('/otp', { phone })
  const token = /\d{6}/.exec((await gateways.waitFor(phone)).text)?.[0]
  service.clock.advance({ seconds: 61 })
  expect((await service.post('/signup', { phone, password: STRANGERS })).status).toBe(200)
  expect((await service.post('/verify', { type: 'sms', phone, token })).status).toBe(200)
  await service.close()
  await gateways.close()
})

test('an admin who is banned, or no admin any more, is none by an older token either', async ({ service }) => {
  for (const change of [{ ban_duration: '1h' }, { role: 'authenticated' }]) {
    const { userId, ...user } = await service.signedIn(`admin-${Object.keys(change)[0]}@example.com`, OWNERS)
    await service.put(`/admin/users/${userId}`, { role: 'service_role' }, service.admin)
    const { body: me } = await service.get('/user', user.auth)
    const { body } = await signIn(service, me.email, OWNERS)
    const auth = { authorization: `Bearer ${body.access_token}` }
    expect((await service.get('/admin/users', auth)).status).toBe(200)
    await service.put(`/admin/users/${userId}`, change, service.admin)
    expect((await service.get('/admin/users', auth)).status).toBe(403)
  }
})

/** A service whose users change address by one code, and the codes that were sent. */
async function startChanging(settings: Record<string, string> = {}) {
  const gateways = await startSmsGateways()
  const service = await startTestService({
    ...gateways.settings('twilio'),
    AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false',
    AUTH_SMS_MAX_PER_PREFIX: '1000/1h',
    ...settings,
  })
  const codeAt = async (address: string) =>
    address.includes('@')
      ? codeIn((await service.mailbox.waitFor(address)).text)
      : /\d{6}/.exec((await gateways.waitFor(address)).text)?.[0]
  const sent = async (userId: string, kind: string) => {
    await expect.poll(() => service.deps.queue.depth('message-requests')).toBe(0)
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
  const recover = async ({ service, email }: Owner) => {
    await service.post('/recover', { email })
    const { text } = await service.mailbox.waitFor(email, { subject: 'password' })
    const { body } = await service.post('/verify', { type: 'recovery', email, token: codeIn(text) })
    return { authorization: `Bearer ${body.access_token}` }
  }
  const asAdmin = ({ service, userId }: Owner, change: object) =>
    service.put(`/admin/users/${userId}`, change, service.admin)
  const ways: Record<string, (owner: Owner) => Promise<unknown>> = {
    'a new password': ({ service, auth }) => service.put('/user', { password: 'another horse' }, auth),
    'a password set by an admin': (owner) => asAdmin(owner, { password: 'another horse' }),
    'a confirmation by an admin': (owner) => asAdmin(owner, { email_confirm: true }),
    'a recovery': recover,
    'signing out everywhere': ({ service, auth }) => service.post('/logout', {}, auth),
    'signing out elsewhere': ({ service, auth }) => service.post('/logout?scope=others', {}, auth),
    'an admin who ends all sessions': ({ service, userId }) =>
      service.delete(`/admin/users/${userId}/sessions`, service.admin),
    'the end of one session': ({ service, userId, auth }) =>
      service.delete(
        `/admin/users/${userId}/sessions/${decodeJwt(auth.authorization.slice(7)).session_id}`,
        service.admin,
      ),
    'a ban that is lifted': async (owner) => {
      await asAdmin(owner, { ban_duration: '1h' })
      await asAdmin(owner, { ban_duration: 'none' })
    },
    'the reuse of a refresh token': async ({ service, refresh }) => {
      const again = () => service.post('/token?grant_type=refresh_token', { refresh_token: refresh })
      await again()
      service.clock.advance({ seconds: 11 })
      expect((await again()).body.error_code).toBe('refresh_token_already_used')
    },
  }

  test.for(Object.keys(ways))('ends with %s, and nobody revives it', async (way) => {
    const { service, codeAt, sent, close } = await startChanging()
    for (const wish of [{ phone: '4915100000041' }, { email: 'thief@example.com' }]) {
      const [type, address] = 'phone' in wish ? ['phone_change', wish.phone] : ['email_change', wish.email]
      const email = `robbed-by-${type}@example.com`
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
    await close()
  })

  test.for(['phone_change', 'email_change'])('is not sent again once its code has expired (%s)', async (type) => {
    const { service, codeAt, sent, close } = await startChanging()
    const email = 'late-wish@example.com'
    const wish = type === 'phone_change' ? { phone: '4915100000042' } : { email: 'late-thief@example.com' }
    const { auth, userId } = await service.signedIn(email)
    await service.put('/user', wish, auth)
    await codeAt(Object.values(wish)[0] as string)
    service.clock.advance({ seconds: 901 })
    await service.post('/resend', { type, email })
    expect(await sent(userId, type)).toBe(type === 'phone_change' ? 1 : 2)
    service.clock.advance({ seconds: 3601 })
    await service.post('/resend', { type, email })
    expect(await sent(userId, type)).toBe(type === 'phone_change' ? 1 : 2)
    await close()
  })

  test('is still wished for after signing out here only', async () => {
    const { service, codeAt, close } = await startChanging()
    const { auth } = await service.signedIn('here-only@example.com')
    await service.put('/user', { phone: '4915100000043' }, auth)
    await service.post('/logout?scope=local', {}, auth)
    const confirmation = { type: 'phone_change', phone: '4915100000043', token: await codeAt('4915100000043') }
    expect((await service.post('/verify', confirmation)).status).toBe(200)
    await close()
  })
})

test.for(['phone_change', 'email_change'])(
  'the session of a %s does not set a password without the current one',
  async (type) => {
    const { service, codeAt, close } = await startChanging({
      AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true',
    })
    const wish = type === 'phone_change' ? { phone: '4915100000044' } : { email: 'attached@example.com' }
    const { auth } = await service.signedIn('guarded@example.com', OWNERS)
    await service.put('/user', { ...wish, current_password: OWNERS }, auth)
    const token = await codeAt(Object.values(wish)[0] as string)
    const { body } = await service.post('/verify', { type, ...wish, token })
    expect(decodeJwt(body.access_token).amr).toMatchObject([{ method: type }])
    const stolen = { authorization: `Bearer ${body.access_token}` }
    const refused = await service.put('/user', { password: STRANGERS }, stolen)
    expect(refused).toMatchObject({ status: 400, body: { error_code: 'current_password_required' } })
    expect((await service.put('/user', { password: STRANGERS, current_password: OWNERS }, stolen)).status).toBe(200)
    await close()
  },
)

test('signing out everywhere leaves a recovery link good that is on its way to the owner', async ({ service }) => {
  const { auth } = await service.signedIn('on-its-way@example.com', OWNERS)
  const before = await service.mailbox.waitFor('on-its-way@example.com')
  await service.post('/recover', { email: 'on-its-way@example.com' })
  const { text } = await service.mailbox.waitFor('on-its-way@example.com', { after: before })
  expect((await service.post('/logout', {}, auth)).status).toBe(204)
  expect(fragmentOf(await service.get(linkPath(text)))).toMatchObject({ type: 'recovery' })
})

describe('where the current password is demanded a stolen session', () => {
  const begin = () => startChanging({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true' })

  test.for([{ phone: '4915100000045' }, { email: 'thiefs-own@example.com' }])(
    'attaches no address to recover by without it: %o',
    async (wish) => {
      const { service, codeAt, close } = await begin()
      const { auth, userId } = await service.signedIn('robbed@example.com', OWNERS)
      for (const [guess, code] of [
        [{}, 'current_password_required'],
        [{ current_password: '' }, 'current_password_required'],
        [{ current_password: STRANGERS }, 'current_password_invalid'],
      ] as const) {
        expect(await service.put('/user', { ...wish, ...guess }, auth)).toMatchObject({
          status: 400,
          body: { error_code: code },
        })
      }
      const { body } = await service.get(`/admin/users/${userId}`, service.admin)
      expect(body).toMatchObject({ email: 'robbed@example.com', phone: '' })
      for (const wished of ['new_email', 'new_phone']) expect(body).not.toHaveProperty(wished)
      expect((await service.put('/user', { ...wish, current_password: OWNERS }, auth)).status).toBe(200)
      expect(await codeAt(Object.values(wish)[0] as string)).toBeTruthy()
      await close()
    },
  )

  test('guesses at it no faster than at a sign-in', async () => {
    const { service, close } = await begin()
    const { auth } = await service.signedIn('guessed-at@example.com', OWNERS)
    const change = async (current_password: string) =>
      (await service.put('/user', { phone: '4915100000046', current_password }, auth)).status
    for (let i = 0; i < 5; i++) expect(await change(`guess ${i}`)).toBe(400)
    expect(await change(OWNERS)).toBe(429)
    await close()
  })

  test('changes the rest without it, and repeats the address there is', async () => {
    const { service, close } = await begin()
    const { auth } = await service.signedIn('same@example.com', OWNERS)
    const changes = { email: 'SAME@example.com', data: { name: 'Ada' } }
    expect((await service.put('/user', changes, auth)).status).toBe(200)
    await close()
  })

  test('is no matter where the session began with a mailed link, or the account has no password', async () => {
    const { service, codeAt, close } = await begin()
    const put = (changes: object, token: string) => service.put('/user', changes, { authorization: `Bearer ${token}` })
    const byLink = async (email: string) => {
      service.mailbox.clear()
      await service.post('/otp', { email })
      const answer = await service.get(linkPath((await service.mailbox.waitFor(email)).text))
      return fragmentOf(answer).access_token as string
    }
    await service.signedIn('forgot@example.com', OWNERS)
    expect((await put({ phone: '4915100000047' }, await byLink('forgot@example.com'))).status).toBe(200)

    const email = 'without-2@example.com'
    expect((await put({ email }, await byLink('without@example.com'))).status).toBe(200)
    const { body } = await service.post('/verify', { type: 'email_change', email, token: await codeAt(email) })
    expect(decodeJwt(body.access_token).amr).toMatchObject([{ method: 'email_change' }])
    expect((await put({ phone: '4915100000048' }, body.access_token)).status).toBe(200)
    await close()
  })
})

test.for(['AUTH_SESSIONS_TIMEBOX', 'AUTH_SESSIONS_INACTIVITY_TIMEOUT'])(
  'a session past its %s changes nothing any more',
  async (setting) => {
    const service = await startTestService({ [setting]: '600' })
    const { auth, userId } = await service.signedIn('overdue@example.com')
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

test.for(['constructor', '__proto__', 'toString'])(
  'signing out with the scope %s ends nothing',
  async (scope, { service }) => {
    const { auth } = await service.signedIn()
    const refused = await service.post(`/logout?scope=${scope}`, {}, auth)
    expect(refused).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
    expect((await service.get('/user/sessions', auth)).body).toContainEqual(expect.objectContaining({ current: true }))
  },
)

describe('a number whose plain form is long', () => {
  const long = { deep: [{ least: 1e-30 }] }
  const ways: Record<string, (service: TestService, data: object) => Promise<Answer>> = {
    'a sign-up': (service, data) => service.post('/signup', { email: 'numbers-1@example.com', password: OWNERS, data }),
    'an anonymous sign-up': (service, data) => service.post('/signup', { data }),
    'a magic link': (service, data) => service.post('/otp', { email: 'numbers-2@example.com', data }),
    'PUT /user': async (service, data) => service.put('/user', { data }, (await service.signedIn()).auth),
    'a new user of an admin': (service, data) =>
      service.post('/admin/users', { email: 'numbers-3@example.com', app_metadata: data }, service.admin),
    'an admin': async (service, data) =>
      service.put(`/admin/users/${(await service.signedIn()).userId}`, { user_metadata: data }, service.admin),
    'an invitation': (service, data) =>
      service.post('/invite', { email: 'numbers-4@example.com', data }, service.admin),
    'a generated link': (service, data) =>
      service.post('/admin/generate_link', { type: 'invite', email: 'numbers-5@example.com', data }, service.admin),
  }

  test.for(Object.keys(ways))('does not get into metadata by %s', async (way) => {
    const service = await startTestService({ AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' })
    for (const data of [long, { n: 1e308 }, { n: -1e25 }]) {
      const answer = await ways[way]?.(service, data)
      expect(answer).toMatchObject({ status: 422, body: { error_code: 'validation_failed' } })
    }
    const usual = { n: [0.1, -1e21, 1.5e-7, Number.MAX_SAFE_INTEGER, -123456.789012345] }
    expect((await ways[way]?.(service, usual))?.status).toBe(200)
    await service.close()
  })
})

test('a guess at a code writes once, whether or not there is one at the address', async ({ service }) => {
  const email = 'awaits-a-code@example.com'
  await service.post('/signup', { email, password: OWNERS })
  await service.mailbox.waitFor(email)
  /** Which rows a guess leaves written: of codes, and in their place. */
  const written = async (address: string) => {
    const { rows } = await service.deps.pool.query(
      `select (select array_agg(xmin::text order by ctid) from one_time_tokens) as codes,
              (select array_agg(xmin::text order by ctid) from send_gaps) as others`,
    )
    await service.post('/verify', { type: 'signup', email: address, token: '000000' })
    const { rows: after } = await service.deps.pool.query(
      `select (select array_agg(xmin::text order by ctid) from one_time_tokens) as codes,
              (select array_agg(xmin::text order by ctid) from send_gaps) as others`,
    )
    const count = (column: 'codes' | 'others') =>
      after[0][column].filter((xmin: string) => !rows[0][column].includes(xmin)).length
    return { codes: count('codes'), others: count('others') }
  }
  expect(await written(email)).toEqual({ codes: 1, others: 0 })
  expect(await written('nobody-there@example.com')).toEqual({ codes: 0, others: 1 })
  // The same row again, so that guesses at one address do not fill the table.
  const { rows } = await service.deps.pool.query('select count(*) from send_gaps')
  expect(await written('nobody-there@example.com')).toEqual({ codes: 0, others: 1 })
  expect((await service.deps.pool.query('select count(*) from send_gaps')).rows).toEqual(rows)
})

describe('mails with codes to one address are capped', () => {
  const settings = { AUTH_MAILER_MAX_PER_ADDRESS: '3/24h', AUTH_MAILER_SIGN_IN_LINK_MAX_FREQUENCY: '0' }

  test.for(['known', 'unknown'])('alike when it is %s, in all replicas together', async (kind) => {
    const one = await startTestService(settings)
    const two = await startTestService({
      ...settings,
      AUTH_DATABASE_URL: one.deps.config.database.url,
      AUTH_WORKERS_ENABLED: 'false',
    })
    const email = `${kind}-guessed-at@example.com`
    if (kind === 'known') {
      await one.post('/admin/users', { email, email_confirm: true, password: OWNERS }, one.admin)
    }
    const statuses = []
    for (let i = 0; i < 5; i++) {
      one.clock.advance({ seconds: 61 })
      two.clock.advance({ seconds: 61 })
      statuses.push((await (i % 2 ? one : two).post('/recover', { email })).status)
    }
    expect(statuses).toEqual([200, 200, 200, 429, 429])
    const refused = await one.post('/otp', { email, create_user: false })
    expect(refused).toMatchObject({ status: 429, body: { error_code: 'over_email_send_rate_limit' } })
    expect((await one.post('/recover', { email: `other-${email}` })).status).toBe(200)
    await two.close()
    await one.close()
  })

  test('and what is refused uses up nothing of the budget of all', async () => {
    const service = await startTestService({ ...settings, AUTH_RATE_LIMIT_EMAIL_SENT: '4' })
    for (let i = 0; i < 8; i++) {
      service.clock.advance({ seconds: 61 })
      await service.post('/recover', { email: 'loud@example.com' })
    }
    expect((await service.post('/recover', { email: 'quiet@example.com' })).status).toBe(200)
    expect((await service.post('/recover', { email: 'too-late@example.com' })).status).toBe(429)
    await service.close()
  })
})
