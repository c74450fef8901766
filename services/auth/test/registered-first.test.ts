// Addresses and numbers that a stranger registers before their owners: the user who proves them gets them, and nothing
// of the stranger's.
import { describe, expect } from 'vitest'
import { deleteExpired } from '../src/housekeeping.ts'
import { test as base, codeIn, linkPath, startTestService, type TestService, tokenIn } from './service.ts'
import { type SmsUpstream, startSmsGateways } from './upstreams/sms-gateways.ts'

/** `texting`: a service whose SMS go to `gateways`. */
const test = base.extend<object & { texting: { service: TestService; gateways: SmsUpstream } }>({
  texting: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures a fixture uses from it
    async ({}, use) => {
      const gateways = await startSmsGateways()
      const service = await startTestService(gateways.settings('twilio'))
      await use({ service, gateways })
      await service.close()
      await gateways.close()
    },
    { scope: 'file' },
  ],
})

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
  test('by data of a sign-up with a phone number does not take the address', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_SMS_AUTOCONFIRM: 'true' })
    const data = { email: 'victim@example.com', email_verified: true, phone: '1' }
    const registrant = await service.post('/signup', { phone: '4915112345678', password: STRANGERS, data })
    expect(registrant.body.user.user_metadata).not.toHaveProperty('email')
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
    // Nothing shows whose password it is: neither is set, the session of the link may set one.
    expect((await signIn(service, email, STRANGERS)).status).toBe(400)
    expect((await signIn(service, email, OWNERS)).status).toBe(400)
  })

  test('gains nothing by signing up with the address again after its owner', async ({ service }) => {
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

  test('a user who signs up twice with one password has it after confirming', async ({ service }) => {
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
  test('stays one when a sign-in link to its address is requested', async ({ service }) => {
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

describe('an address that another person registered and never confirmed', () => {
  const change = async (service: TestService, auth: { authorization: string }, email: string) => {
    expect((await service.put('/user', { email }, auth)).status).toBe(200)
    const { text } = await service.mailbox.waitFor(email, { subject: 'new' })
    await service.post('/verify', { type: 'email_change', token_hash: tokenIn(text) })
  }

  test('is taken by the user who proves it, and the one who never did loses it with the account', async ({
    service: shared,
  }) => {
    const service = await shared.with({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
    const { auth, userId } = await service.signedIn('before@example.com')
    const email = 'squatted@example.com'
    const { body: registered } = await service.post('/signup', { email, password: STRANGERS })
    const registrants = await service.mailbox.waitFor(email)
    await change(service, auth, email)
    expect((await service.get('/user', auth)).body).toMatchObject({ id: userId, email })
    expect((await signIn(service, email, STRANGERS)).status).toBe(400)
    expect((await service.get(linkPath(registrants.text))).headers.location).toContain('otp_expired')
    const { body: registrant } = await service.get(`/admin/users/${registered.id}`, service.admin)
    expect(registrant.error_code).toBe('user_not_found')
    const { body: entries } = await service.get('/admin/audit?query=action:user_deleted', service.admin)
    expect(entries[0].payload).toMatchObject({ actor_id: userId, traits: { user_email: email } })
    await service.close()
  })

  test('leaves an account that has a number of its own, without the address', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
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

  test('stays theirs if they confirm it first; confirmed, invited and admin-made accounts are never taken', async ({
    service: shared,
  }) => {
    const service = await shared.with({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
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
    // A request for a mail to the address makes no sign-up of it.
    await service.post('/resend', { type: 'signup', email: 'made@example.com' })
    await service.mailbox.waitFor('made@example.com')
    for (const email of ['faster@example.com', 'guest@example.com', 'made@example.com']) {
      const refused = await service.put('/user', { email }, auth)
      expect(refused).toMatchObject({ status: 422, body: { error_code: 'email_exists' } })
    }
    await service.close()
  })

  test('is not taken where a change needs no proof', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_SMS_AUTOCONFIRM: 'true' })
    const phone = '4915100000032'
    await service.post('/admin/users', { phone }, service.admin)
    const asked = { confirmation_sent_at: service.clock.now(), phone_vouched: false }
    await service.deps.db.updateTable('users').set(asked).where('phone', '=', phone).execute()
    const { auth } = await service.signedIn('unproven@example.com')
    const refused = await service.put('/user', { phone }, auth)
    expect(refused).toMatchObject({ status: 422, body: { error_code: 'phone_exists' } })
    await service.close()
  })

  test('can be a number', async ({ texting }) => {
    const { gateways, service } = texting
    const phone = '4915100000033'
    await service.post('/signup', { phone, password: STRANGERS })
    await gateways.waitFor(phone)
    const { auth } = await service.signedIn('numbers@example.com')
    expect((await service.put('/user', { phone }, auth)).status).toBe(200)
    const received = () => gateways.messages.filter(({ to }) => to === phone)
    await expect.poll(() => received().length).toBe(2)
    const token = /\d{6}/.exec(received()[1]?.text ?? '')?.[0]
    expect((await service.post('/verify', { type: 'phone_change', phone, token })).status).toBe(200)
    expect((await service.get('/user', auth)).body.phone).toBe(phone)
  })
})

test.for(['unconfirmed', 'confirmed'])(
  'a sign-up that confirms by itself takes no %s account that is there',
  async (state, { service }) => {
    const careless = await service.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
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

test('a stranger who signs up with a number does not end the code its owner waits for', async ({ texting }) => {
  const { gateways, service } = texting
  const phone = '4915100000021'
  const made = await service.post('/admin/users', { phone, phone_confirm: true, password: OWNERS }, service.admin)
  expect(made.status).toBe(200)
  await service.post('/otp', { phone })
  const token = /\d{6}/.exec((await gateways.waitFor(phone)).text)?.[0]
  service.clock.advance({ seconds: 61 })
  expect((await service.post('/signup', { phone, password: STRANGERS })).status).toBe(200)
  expect((await service.post('/verify', { type: 'sms', phone, token })).status).toBe(200)
})

describe('data that another person put on an address does not survive its proof', () => {
  const REFUSED = /^(invalid_credentials|email_not_confirmed)$/
  const EVIL = { tenant: 'evil-corp', role: 'owner', locale: 'de' }
  const userOf = async (service: TestService, email: string) =>
    (await service.get(`/admin/users?filter=${email}`, service.admin)).body.users[0]

  /** Nothing of the stranger's: neither password nor data, in the user, the identity and the token. */
  const expectNothingOfStrangers = async (service: TestService, email: string) => {
    // Which refusal it is depends on the sign-ups for the address alone.
    expect((await signIn(service, email, STRANGERS)).body.error_code).toMatch(REFUSED)
    const user = await userOf(service, email)
    for (const data of [user.user_metadata, ...user.identities.map(dataOf)]) {
      expect(data).not.toHaveProperty('tenant')
      expect(data).not.toHaveProperty('role')
    }
    return user
  }
  const dataOf = ({ identity_data }: { identity_data: object }) => identity_data

  const doors: Record<string, (service: TestService, email: string) => Promise<unknown>> = {
    signup: (service, email) => service.post('/signup', { email, password: OWNERS, data: { name: 'Victoria' } }),
    otp: (service, email) => service.post('/otp', { email }),
    'otp that makes no account': (service, email) => service.post('/otp', { email, create_user: false }),
    magiclink: (service, email) => service.post('/magiclink', { email }),
    recover: (service, email) => service.post('/recover', { email }),
  }

  test.for(Object.keys(doors))(
    'when the owner comes by /%s within the gap and follows the first mail there is',
    async (door, { service }) => {
      const email = `${door.replaceAll(' ', '-')}-at-once@example.com`
      await service.post('/signup', { email, password: STRANGERS, data: EVIL })
      const first = await service.mailbox.waitFor(email)
      await doors[door]?.(service, email)
      // The mail of a sign-in replaces the first link; a refused sign-up and a recovery leave it as it is.
      const isFirstGood = ['signup', 'recover'].includes(door)
      const { text } = isFirstGood ? first : await service.mailbox.waitFor(email, { after: first })
      await service.settled()
      expect((await service.get(linkPath(text))).headers.location).toContain('access_token')
      const user = await expectNothingOfStrangers(service, email)
      expect(user).toMatchObject({ has_password: false, user_metadata: { sub: user.id, email, email_verified: true } })
    },
  )

  test('as found: a sign-up that is refused within the gap voids the password of the pending one', async ({
    service,
  }) => {
    const email = 'as-found@example.com'
    await service.post('/signup', { email, password: STRANGERS, data: EVIL })
    const { text } = await service.mailbox.waitFor(email)
    service.clock.advance({ seconds: 300 })
    expect((await service.post('/signup', { email, password: OWNERS })).status).toBe(429)
    const { body } = await service.post('/verify', { type: 'signup', token_hash: tokenIn(text) })
    expect(body.user.has_password).toBe(false)
    await expectNothingOfStrangers(service, email)
    expect((await signIn(service, email, OWNERS)).status).toBe(400)
    const auth = { authorization: `Bearer ${body.access_token}` }
    expect((await service.put('/user', { password: OWNERS }, auth)).body.has_password).toBe(true)
    expect((await signIn(service, email, OWNERS)).status).toBe(200)
  })

  test('nor when any person repeats it every gap', async ({ service }) => {
    const email = 'kept-open@example.com'
    const stranger = () => service.post('/signup', { email, password: STRANGERS, data: EVIL })
    await stranger()
    const first = await service.mailbox.waitFor(email)
    await service.post('/signup', { email, password: OWNERS })
    service.clock.advance({ seconds: 901 })
    expect((await stranger()).status).toBe(200)
    const second = await service.mailbox.waitFor(email, { after: first })
    await service.get(linkPath(second.text))
    await expectNothingOfStrangers(service, email)
  })

  test('nor when a cap or the budget of all refuses the owner', async ({ service }) => {
    const capped = await service.with({ AUTH_RATE_LIMIT_EMAIL_SENT: '0' })
    const email = 'no-mail-left@example.com'
    await service.post('/signup', { email, password: STRANGERS, data: EVIL })
    const { text } = await service.mailbox.waitFor(email)
    service.clock.advance({ seconds: 901 })
    expect((await capped.post('/signup', { email, password: OWNERS })).status).toBe(429)
    await service.get(linkPath(text))
    await expectNothingOfStrangers(service, email)
    await capped.close()
  })

  test('nor when the stranger comes second, while the owner waits for a mail that was refused', async ({ service }) => {
    const email = 'waits-for-a-mail@example.com'
    await service.post('/otp', { email, create_user: false })
    expect((await service.post('/otp', { email })).status).toBe(429)
    await service.post('/signup', { email, password: STRANGERS, data: EVIL })
    const { text } = await service.mailbox.waitFor(email)
    await service.get(linkPath(text))
    await expectNothingOfStrangers(service, email)
  })

  test('nor of two sign-ups at once at two replicas, whichever of them sends the mail', async ({ service }) => {
    const other = await service.with({})
    for (const index of [1, 2, 3, 4]) {
      const email = `at-once-${index}@example.com`
      const owner = () => service.post('/signup', { email, password: OWNERS, data: { name: 'Victoria' } })
      const stranger = () => other.post('/signup', { email, password: STRANGERS, data: EVIL })
      const answers = await Promise.all(index % 2 ? [owner(), stranger()] : [stranger(), owner()])
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 429])
      const { text } = await service.mailbox.waitFor(email)
      await service.get(linkPath(text))
      await expectNothingOfStrangers(service, email)
    }
    await other.close()
  })

  test('nor by an invitation, whose data the account gets', async ({ service }) => {
    const email = 'invited-late@example.com'
    await service.post('/signup', { email, password: STRANGERS, data: EVIL })
    const first = await service.mailbox.waitFor(email)
    const { body } = await service.post('/invite', { email, data: { team: 1 } }, service.admin)
    expect(body.user_metadata).toEqual({ team: 1 })
    const { text } = await service.mailbox.waitFor(email, { after: first })
    await service.post('/signup', { email, password: STRANGERS, data: EVIL })
    await service.get(linkPath(text))
    const user = await expectNothingOfStrangers(service, email)
    expect(user.user_metadata).toEqual({ team: 1, email_verified: true })
  })

  test('nor by a link that an admin generates', async ({ service }) => {
    for (const type of ['magiclink', 'recovery', 'signup', 'invite']) {
      const email = `admin-${type}@example.com`
      await service.post('/signup', { email, password: STRANGERS, data: EVIL })
      const link = await generate(service, { type, email, ...(type === 'signup' ? { password: OWNERS } : {}) })
      await service.post('/signup', { email, password: STRANGERS, data: EVIL })
      await followLink(service, link)
      await expectNothingOfStrangers(service, email)
    }
  })

  test('nor by an admin who confirms the account', async ({ service }) => {
    const email = 'confirmed-by-hand@example.com'
    await service.post('/signup', { email, password: STRANGERS, data: EVIL })
    await service.post('/signup', { email, password: OWNERS })
    const { id } = await userOf(service, email)
    await service.put(`/admin/users/${id}`, { email_confirm: true }, service.admin)
    await expectNothingOfStrangers(service, email)
  })

  test('nor after a link expired and the owner has another one sent', async ({ service }) => {
    const email = 'much-later@example.com'
    await service.post('/signup', { email, password: STRANGERS, data: EVIL })
    const first = await service.mailbox.waitFor(email)
    await service.post('/signup', { email, password: OWNERS })
    service.clock.advance({ seconds: 3 * 86_400 })
    await deleteExpired(service.deps, service.deps.log)
    await service.post('/resend', { type: 'signup', email })
    const { text } = await service.mailbox.waitFor(email, { after: first })
    await service.get(linkPath(text))
    await expectNothingOfStrangers(service, email)
  })

  test('nor where a number is proven, and the code has arrived already', async ({ texting }) => {
    const { gateways, service } = texting
    const phone = '4915100000041'
    await service.post('/signup', { phone, password: STRANGERS, data: EVIL })
    const token = /\d{6}/.exec((await gateways.waitFor(phone)).text)?.[0]
    expect((await service.post('/signup', { phone, password: OWNERS })).status).toBe(429)
    const { body } = await service.post('/verify', { type: 'sms', phone, token })
    expect(body.user).toMatchObject({ has_password: false, user_metadata: { sub: body.user.id, phone } })
    expect(body.user.user_metadata).not.toHaveProperty('tenant')
    const stranger = await service.post('/token?grant_type=password', { phone, password: STRANGERS })
    expect(stranger.body.error_code).toBe('invalid_credentials')
  })

  test('nor is it shown to the owner: in answers, or in the words and language of the mail', async () => {
    const service = await startTestService({ AUTH_MAILER_SUBJECTS_CONFIRMATION: 'Confirm {{ .Data.tenant }}.' })
    const email = 'sees-nothing@example.com'
    await service.post('/signup', { email, password: STRANGERS, data: EVIL })
    const first = await service.mailbox.waitFor(email)
    service.clock.advance({ seconds: 901 })
    const { body } = await service.post('/signup', { email, password: OWNERS, data: { name: 'Victoria' } })
    expect(JSON.stringify(body)).not.toContain('evil-corp')
    const second = await service.mailbox.waitFor(email, { after: first })
    expect([first.subject, second.subject]).toEqual(['Confirm evil-corp.', 'Confirm .'])
    expect(first.text).toContain('Passwort')
    expect(second.text).toContain('More than one password was given')
    await service.close()
  })
})

describe("an owner's own password", () => {
  test.for(['once', 'twice at once', 'twice, a link apart'])(
    'signed up %s is kept, with the data',
    async (how, { service }) => {
      const email = `${how.replaceAll(/[ ,]+/g, '-')}@example.com`
      const ask = () => service.post('/signup', { email, password: OWNERS, data: { name: 'Victoria' } })
      await Promise.all(how === 'twice at once' ? [ask(), ask()] : [ask()])
      const first = await service.mailbox.waitFor(email)
      expect(first.text).toContain('registered with a password')
      let { text } = first
      if (how.endsWith('apart')) {
        service.clock.advance({ seconds: 3601 })
        await ask()
        text = (await service.mailbox.waitFor(email, { after: first })).text
      }
      const { body } = await service.post('/verify', { type: 'signup', token_hash: tokenIn(text) })
      expect(body.user).toMatchObject({ has_password: true, user_metadata: { name: 'Victoria' } })
      expect((await signIn(service, email, OWNERS)).status).toBe(200)
    },
  )

  test('survives an earlier link, once that can no longer be followed', async ({ service }) => {
    const email = 'link-not-followed@example.com'
    await service.post('/otp', { email })
    const first = await service.mailbox.waitFor(email)
    await service.settled()
    service.clock.advance({ seconds: 3601 })
    await service.post('/signup', { email, password: OWNERS, data: { name: 'Victoria' } })
    const { text } = await service.mailbox.waitFor(email, { after: first })
    await service.get(linkPath(text))
    expect((await signIn(service, email, OWNERS)).body.user).toMatchObject({ user_metadata: { name: 'Victoria' } })
  })

  test('is dropped beside such a link, as mail and answer say', async ({ service }) => {
    const email = 'link-still-good@example.com'
    await service.post('/otp', { email })
    const first = await service.mailbox.waitFor(email)
    await service.post('/signup', { email, password: OWNERS })
    const { text } = await service.mailbox.waitFor(email, { after: first })
    expect(text).toContain('so none is set: choose one after confirming')
    const { body } = await service.post('/verify', { type: 'signup', token_hash: tokenIn(text) })
    expect(body.user.has_password).toBe(false)
  })

  test.for(['created with', 'given later'])(
    'that an admin %s survives a magic link and sign-ups of others',
    async (how, { service }) => {
      const email = `${how.replace(' ', '-')}@example.com`
      const data = { user_metadata: { team: 1 } }
      let before = {}
      if (how === 'created with')
        await service.post('/admin/users', { email, password: OWNERS, ...data }, service.admin)
      else {
        const { body } = await service.post('/signup', { email, password: STRANGERS })
        before = { after: await service.mailbox.waitFor(email) }
        await service.put(`/admin/users/${body.id}`, { password: OWNERS, ...data }, service.admin)
        service.clock.advance({ seconds: 901 })
      }
      await service.post('/signup', { email, password: STRANGERS, data: { team: 2 } })
      const signUp = await service.mailbox.waitFor(email, before)
      await service.post('/otp', { email })
      const { text } = await service.mailbox.waitFor(email, { after: signUp })
      await service.get(linkPath(text))
      expect((await signIn(service, email, STRANGERS)).status).toBe(400)
      expect((await signIn(service, email, OWNERS)).body.user).toMatchObject({ user_metadata: { team: 1 } })
    },
  )
})

test('a sign-up that is refused writes the same, whether the address is pending, confirmed or unknown', async ({
  service,
}) => {
  await service.signedIn('refused-confirmed@example.com')
  await service.post('/signup', { email: 'refused-pending@example.com', password: STRANGERS })
  const claims = async () =>
    (await service.deps.pool.query('select array_agg(xmin::text) as rows from address_claims')).rows[0].rows ?? []
  for (const name of ['pending', 'confirmed', 'unknown']) {
    const email = `refused-${name}@example.com`
    await service.post('/resend', { type: 'signup', email })
    const before = await claims()
    expect((await service.post('/signup', { email, password: OWNERS })).status).toBe(429)
    expect((await claims()).filter((row: string) => !before.includes(row))).toHaveLength(1)
  }
})

test('a claim counts as long as the link that was sent again: a stranger who comes last puts nothing on it', async ({
  service,
}) => {
  const email = 'sent-again@example.com'
  await service.post('/signup', { email, password: OWNERS, data: { of: 'owner' } })
  const first = await service.mailbox.waitFor(email)
  await service.settled()
  service.clock.advance({ seconds: 3500 })
  await service.post('/resend', { type: 'signup', email })
  const again = await service.mailbox.waitFor(email, { after: first })
  await service.settled()
  service.clock.advance({ seconds: 200 })
  expect((await service.post('/signup', { email, password: STRANGERS, data: { of: 'stranger' } })).status).toBe(429)
  await service.get(linkPath(again.text))
  expect((await signIn(service, email, STRANGERS)).status).toBe(400)
})
