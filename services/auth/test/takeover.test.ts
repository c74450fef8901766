// Ways into another user's account, or of keeping its owner out, by mixing flows. Each was found by reading or
// attacking.
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest'
import { type Answer, codeIn, linkPath, queryOf, startTestService, type TestService, test, tokenIn } from './service.ts'
import { startSmsGateways } from './upstreams/sms-gateways.ts'

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

test('asking whose addresses are taken is limited for each user, in all replicas together', async ({
  service: one,
}) => {
  const two = await one.with({})
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
    // A code that is replaced before it left would not leave.
    await service.settled()
    service.clock.advance({ seconds: 901 })
    await service.post('/resend', { type: 'phone_change', email: 'pumper@example.com' })
  }
  await service.settled()
  expect(gateways.messages).toHaveLength(2)
  await service.close()
  await gateways.close()
})

test('the code of a PKCE link no longer works once its user is deleted, hard or soft', async ({ service }) => {
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

test('failed attempts are not reset by a sign-in to an account of the same name in another audience', async ({
  service,
}) => {
  const email = 'guessed@example.com'
  await service.signedIn(email, OWNERS)
  const elsewhere = { 'x-jwt-aud': 'other' }
  service.clock.advance({ seconds: 901 })
  await service.post('/signup', { email, password: STRANGERS }, elsewhere)
  const statuses = []
  for (let i = 0; i < 12; i++) {
    statuses.push((await signIn(service, email, `guess ${i}`)).status)
    await service.post('/token?grant_type=password', { email, password: STRANGERS }, elsewhere)
  }
  expect(statuses).toContain(429)
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

  test.for(Object.keys(ways))('does not get into metadata by %s', async (way, { service: shared }) => {
    const service = await shared.with({ AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' })
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
  // A token's row is written as well when its message leaves.
  await service.settled()
  /** Which rows a guess leaves written: of codes, and in their place. */
  const written = async (address: string) => {
    const { rows } = await service.deps.pool.query(
      `select (select array_agg(xmin::text order by ctid) from one_time_tokens) as codes,
              (select array_agg(xmin::text order by ctid) from decoy_rows) as others`,
    )
    await service.post('/verify', { type: 'signup', email: address, token: '000000' })
    const { rows: after } = await service.deps.pool.query(
      `select (select array_agg(xmin::text order by ctid) from one_time_tokens) as codes,
              (select array_agg(xmin::text order by ctid) from decoy_rows) as others`,
    )
    const count = (column: 'codes' | 'others') =>
      after[0][column].filter((xmin: string) => !rows[0][column].includes(xmin)).length
    return { codes: count('codes'), others: count('others') }
  }
  expect(await written(email)).toEqual({ codes: 1, others: 0 })
  expect(await written('nobody-there@example.com')).toEqual({ codes: 0, others: 1 })
  // The same row again, so that guesses at one address do not fill the table.
  const { rows } = await service.deps.pool.query('select count(*) from decoy_rows')
  expect(await written('nobody-there@example.com')).toEqual({ codes: 0, others: 1 })
  expect((await service.deps.pool.query('select count(*) from decoy_rows')).rows).toEqual(rows)
})

test('a guess at a long code writes in the place of those at none', async ({ service }) => {
  const email = 'guessed-twice@example.com'
  await service.signedIn(email)
  const guess = () => service.post('/verify', { type: 'email', email, token: '000000' })
  const ask = async () => {
    service.mailbox.clear()
    service.clock.advance({ seconds: 61 })
    await service.post('/otp', { email })
    return codeIn((await service.mailbox.waitFor(email)).text)
  }
  for (let i = 0; i < 2; i++) {
    await ask()
    for (let tries = 0; tries < 5; tries++) await guess()
  }
  const token = await ask()
  expect(token).toHaveLength(12)
  await service.settled()
  const codes = async () => (await service.deps.pool.query('select xmin, * from one_time_tokens')).rows
  const before = await codes()
  expect((await guess()).status).toBe(403)
  expect(await codes()).toEqual(before)
  expect((await service.post('/verify', { type: 'email', email, token })).status).toBe(200)
})

describe('a mailbox that has had its share of mails with codes', () => {
  const settings = { AUTH_MAILER_MAX_PER_ADDRESS: '3/24h', AUTH_MAILER_SIGN_IN_LINK_MAX_FREQUENCY: '0' }
  let service: TestService
  beforeAll(async () => {
    service = await startTestService(settings)
  })
  afterAll(() => service.close())

  beforeEach(async () => {
    await service.settled()
    service.mailbox.clear()
    service.clock.advance({ seconds: 86_401 })
  })

  /** Asks as often as the cap allows, and some more. */
  const useUp = async (email: string) => {
    for (let i = 0; i < 5; i++) {
      service.clock.advance({ seconds: 61 })
      await service.post('/otp', { email, create_user: false })
    }
    await service.settled()
    service.mailbox.clear()
    service.clock.advance({ seconds: 61 })
  }

  test('as found: after twenty requests of a stranger the owner recovers, signs in and changes the account', async ({
    service,
  }) => {
    const email = 'loved@example.com'
    const { auth } = await service.signedIn(email)
    for (let i = 0; i < 25; i++) {
      service.clock.advance({ seconds: 61 })
      expect((await service.post('/otp', { email })).status).toBe(200)
    }
    await service.settled()
    service.mailbox.clear()
    service.clock.advance({ seconds: 61 })
    expect((await service.post('/recover', { email })).status).toBe(200)
    const recovery = await service.mailbox.waitFor(email)
    expect((await service.get(linkPath(recovery.text))).headers.location).toContain('type=recovery')
    expect((await service.get('/reauthenticate', auth)).status).toBe(200)
    expect((await service.put('/user', { email: 'loved-elsewhere@example.com' }, auth)).status).toBe(200)
    service.clock.advance({ seconds: 61 })
    await service.settled()
    service.mailbox.clear()
    expect((await service.post('/otp', { email })).status).toBe(200)
    const token = codeIn((await service.mailbox.waitFor(email)).text)
    expect((await service.post('/verify', { type: 'email', email, token })).status).toBe(200)
  })

  test('gets longer codes, whatever the replica', async () => {
    const email = 'guessed-at@example.com'
    await service.signedIn(email)
    const other = await service.with({})
    await useUp(email)
    await other.post('/recover', { email })
    expect(codeIn((await service.mailbox.waitFor(email)).text)).toHaveLength(10)
    await other.close()
  })

  test('gets one mail a minute at most, under whatever label, and none to an address that is not proven', async () => {
    await service.signedIn('box@example.com')
    await service.signedIn('box+shop@example.com')
    await service.post('/signup', { email: 'box+pending@example.com', password: OWNERS })
    await useUp('box+first@example.com')
    const ask = async (email: string) => (await service.post('/otp', { email })).status
    expect(await ask('box@example.com')).toBe(200)
    // The worker may begin with either of two at once.
    await service.settled()
    // Answered alike, and no second mail leaves.
    expect(await ask('box+shop@example.com')).toBe(200)
    await service.settled()
    service.clock.advance({ seconds: 61 })
    expect(await ask('box+shop@example.com')).toBe(200)
    for (const label of ['pending', 'unknown']) {
      service.clock.advance({ seconds: 61 })
      expect(await ask(`box+${label}@example.com`)).toBe(200)
    }
    await service.settled()
    const got = service.mailbox.messages().map(({ to }) => to)
    expect(got.flat().map(String).toSorted()).toEqual(['box+shop@example.com', 'box@example.com'])
  })

  test('is not kept from its owner by a stranger who names unused labels', async () => {
    const email = 'labelled@example.com'
    await service.signedIn(email)
    for (let label = 0; label < 5; label++) {
      await service.post('/otp', { email: `labelled+${label}@example.com`, create_user: false })
    }
    for (let minute = 5; minute < 8; minute++) {
      service.clock.advance({ seconds: 61 })
      await service.post('/otp', { email: `labelled+${minute}@example.com`, create_user: false })
      await service.settled()
      service.mailbox.clear()
      expect((await service.post('/recover', { email })).status).toBe(200)
      expect((await service.mailbox.waitFor(email)).text).toContain('reset the password')
    }
  })

  test('is asked alike when it is known and unknown, and refuses registrations alike', async () => {
    await service.signedIn('known@example.com')
    for (const name of ['known', 'unknown']) {
      const email = `${name}@example.com`
      await useUp(email)
      expect((await service.post('/recover', { email })).status).toBe(200)
      expect((await service.post('/otp', { email })).status).toBe(429)
      service.clock.advance({ seconds: 901 })
      const signUp = await service.post('/signup', { email, password: OWNERS })
      expect(signUp).toMatchObject({ status: 429, body: { error_code: 'over_email_send_rate_limit' } })
    }
  })

  test('is invited all the same', async () => {
    await useUp('guest@example.com')
    expect((await service.post('/invite', { email: 'guest@example.com' }, service.admin)).status).toBe(200)
  })

  test('of a live session keeps a share of its own, which is capped too', async () => {
    const { auth } = await service.signedIn('own-share@example.com')
    await useUp('own-share@example.com')
    const statuses = []
    for (let i = 0; i < 4; i++) {
      statuses.push((await service.get('/reauthenticate', auth)).status)
      service.clock.advance({ seconds: 61 })
    }
    expect(statuses).toEqual([200, 200, 200, 429])
  })

  test('counts against the budget of all with whatever is sent', async () => {
    // A quarter of it, one, is kept for owners.
    const own = await service.with({ AUTH_RATE_LIMIT_EMAIL_SENT: '6' })
    const statuses = []
    for (let i = 0; i < 6; i++) {
      service.clock.advance({ seconds: 61 })
      statuses.push((await own.post('/recover', { email: 'loud@example.com' })).status)
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
    await own.close()
  })
})
