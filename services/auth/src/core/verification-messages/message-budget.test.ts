import { describe, expect } from 'vitest'
import {
  codeIn,
  linkPath,
  queryOf,
  startImpatient,
  startTestService,
  type TestService,
  test,
} from '../../../test/service.ts'
import { SMS_GATEWAY } from '../../../test/sms-config.ts'
import { startSmsGateways } from '../../../test/upstreams/sms-gateways.ts'

const password = 'correct horse'
const LARGE = { large: 'x'.repeat(20_000) }
const newAddress = () => `${crypto.randomUUID()}@example.com`
const autoconfirmed = { AUTH_MAILER_AUTOCONFIRM: 'true' }

async function newUserOf(service: TestService) {
  const { body } = await service.post('/signup', { email: newAddress(), password })
  return { authorization: `Bearer ${body.access_token}` }
}

/** The service with these settings on another day; `messages` counts those since. */
async function open(shared: TestService, settings: Record<string, string>) {
  const service = await shared.onAnotherDay({ ...autoconfirmed, ...settings })
  const count = async () => (await service.deps.pool.query('select from messages')).rowCount ?? 0
  const before = await count()
  const newUser = () => newUserOf(service)
  const messages = async () => (await count()) - before
  return { service, newUser, messages }
}

describe('a PUT /user that sends nothing uses up nothing:', () => {
  test.for<[string, object]>([
    ['metadata that is too large', { data: LARGE }],
    ['a number in a country that gets no messages', { phone: '18765550100' }],
    ['the password in use', { password }],
  ])('mails, for %s', async ([, refused], { service: shared }) => {
    const settings = { ...SMS_GATEWAY, AUTH_RATE_LIMIT_EMAIL_SENT: '2', AUTH_SMS_COUNTRIES: '+49' }
    const { service, newUser, messages } = await open(shared, settings)
    const auth = await newUser()
    for (let i = 0; i < 3; i++) {
      const { status } = await service.put('/user', { email: `new-${i}@example.com`, ...refused }, auth)
      expect([400, 422]).toContain(status)
    }
    expect(await messages()).toBe(0)
    for (let i = 0; i < 2; i++) {
      expect((await service.put('/user', { email: `sent-${i}@example.com` }, await newUser())).status).toBe(200)
    }
    expect((await service.put('/user', { email: 'over@example.com' }, await newUser())).status).toBe(429)
    await service.close()
  })

  test('messages to a number', async () => {
    const service = await startTestService({ ...autoconfirmed, ...SMS_GATEWAY, AUTH_SMS_MAX_PER_NUMBER: '1' })
    const newUser = () => newUserOf(service)
    const thief = await newUser()
    for (const refused of [{ data: LARGE }, { password }]) {
      expect((await service.put('/user', { phone: '4915100000001', ...refused }, thief)).status).toBe(422)
    }
    expect((await service.put('/user', { phone: '4915100000001' }, await newUser())).status).toBe(200)
    await service.close()
  })
})

describe('both mails of a secured change of address count:', () => {
  const begin = async (shared: TestService, settings: Record<string, string>) => {
    const { service, messages } = await open(shared, { AUTH_MAILER_AUTOCONFIRM: 'false', ...settings })
    const current = newAddress()
    const { auth } = await service.signedUp(current)
    const change = () => service.put('/user', { email: newAddress() }, auth)
    return { service, messages, current, change }
  }
  const refused = { status: 429, body: { error_code: 'over_email_send_rate_limit' } }

  test('with one mail left for all users neither leaves, and it stays for another user', async ({
    service: shared,
  }) => {
    const { service, messages, change } = await begin(shared, { AUTH_RATE_LIMIT_EMAIL_SENT: '2' })
    expect(await change()).toMatchObject(refused)
    expect(await messages()).toBe(1)
    expect((await service.post('/signup', { email: newAddress(), password })).status).toBe(200)
    await service.close()
  })

  test('with two left both leave, and then none is left', async ({ service: shared }) => {
    const { service, messages, change } = await begin(shared, { AUTH_RATE_LIMIT_EMAIL_SENT: '3' })
    expect((await change()).status).toBe(200)
    expect(await messages()).toBe(3)
    expect(await service.post('/signup', { email: newAddress(), password })).toMatchObject(refused)
    await service.close()
  })

  test('the cap of the current address holds too', async ({ service: shared }) => {
    const { service, messages, change } = await begin(shared, { AUTH_MAILER_MAX_PER_ADDRESS: '2/24h' })
    for (let changes = 0; changes < 2; changes++) {
      expect((await change()).status).toBe(200)
      service.clock.advance({ seconds: 901 })
    }
    expect(await change()).toMatchObject(refused)
    expect(await messages()).toBe(5)
    await service.close()
  })

  test('they count again when they are sent again', async ({ service: shared }) => {
    const { service, messages, current, change } = await begin(shared, { AUTH_RATE_LIMIT_EMAIL_SENT: '6' })
    expect((await change()).status).toBe(200)
    service.clock.advance({ seconds: 901 })
    const again = { type: 'email_change', email: current }
    expect((await service.post('/resend', again)).status).toBe(200)
    await expect.poll(messages).toBe(5)
    expect((await service.post('/signup', { email: newAddress(), password })).status).toBe(200)
    expect(await service.post('/signup', { email: newAddress(), password })).toMatchObject(refused)
    await service.close()
  })
})

describe('a budget that strangers have used up', () => {
  const HOME = { 'x-real-address': '192.0.2.1' }
  const ELSEWHERE = { 'x-real-address': '198.51.100.1' }
  const refused = { status: 429, body: { error_code: 'over_email_send_rate_limit' } }

  /** Signs an owner in by a code at home; then strangers send requests until they are refused. */
  async function usedUp(shared: TestService, settings: Record<string, string>) {
    const service = await shared.onAnotherDay({ AUTH_RATE_LIMIT_HEADER: 'x-real-address', ...settings })
    const signInByCode = async () => {
      const email = newAddress()
      await service.post('/admin/users', { email, email_confirm: true }, service.admin)
      await service.post('/otp', { email }, HOME)
      const token = codeIn((await service.mailbox.waitFor(email)).text)
      const { body } = await service.post('/verify', { type: 'email', email, token }, HOME)
      service.clock.advance({ seconds: 61 })
      return { email, auth: { authorization: `Bearer ${body.access_token}` } }
    }
    const owner = await signInByCode()
    const { auth: other } = await signInByCode()
    const stranger = () => service.post('/signup', { email: newAddress(), password })
    let asked = 0
    while ((await stranger()).status === 200) asked++
    return { service, owner, other, stranger, asked }
  }

  test('keeps a quarter for users with a session, for clients they signed in from, and for admins', async ({
    service: shared,
  }) => {
    const { service, owner, stranger, asked } = await usedUp(shared, { AUTH_RATE_LIMIT_EMAIL_SENT: '16' })
    expect(asked).toBe(10)
    expect(await stranger()).toMatchObject(refused)
    expect(await service.post('/recover', { email: owner.email }, ELSEWHERE)).toMatchObject(refused)
    expect((await service.post('/recover', { email: owner.email }, HOME)).status).toBe(200)
    expect((await service.get('/reauthenticate', owner.auth)).status).toBe(200)
    expect((await service.post('/invite', { email: 'guest@example.com' }, service.admin)).status).toBe(200)
    expect(await stranger()).toMatchObject(refused)
    await service.close()
  })

  test('gives one user three messages and leaves the rest to others', async ({ service: shared }) => {
    const { service, owner, other } = await usedUp(shared, { AUTH_RATE_LIMIT_EMAIL_SENT: '24' })
    const nonce = async (auth: { authorization: string }) => {
      service.clock.advance({ seconds: 61 })
      return (await service.get('/reauthenticate', auth)).status
    }
    const statuses = []
    for (let i = 0; i < 5; i++) statuses.push(await nonce(owner.auth))
    expect(statuses).toEqual([200, 200, 200, 429, 429])
    expect(await nonce(other)).toBe(200)
    await service.close()
  })

  test('gives no more to a user who signed in from many clients', async ({ service: shared }) => {
    const { service, owner, other } = await usedUp(shared, { AUTH_RATE_LIMIT_EMAIL_SENT: '24' })
    await service.put('/user', { password }, owner.auth)
    const statuses = []
    for (let client = 1; client <= 5; client++) {
      const from = { 'x-real-address': `203.0.113.${client}` }
      await service.post('/token?grant_type=password', { email: owner.email, password }, from)
      service.clock.advance({ seconds: 61 })
      statuses.push((await service.post('/recover', { email: owner.email }, from)).status)
    }
    expect(statuses).toEqual([200, 200, 200, 429, 429])
    expect((await service.get('/reauthenticate', other)).status).toBe(200)
    await service.close()
  })
})

describe('no client address becomes an owner of messages', () => {
  const at = (address: string) => ({ 'x-real-address': address })
  const refused = { status: 429, body: { error_code: 'over_email_send_rate_limit' } }

  async function begin(shared: TestService) {
    const service = await shared.onAnotherDay({
      AUTH_RATE_LIMIT_HEADER: 'x-real-address',
      AUTH_RATE_LIMIT_EMAIL_SENT: '24',
    })
    const signIn = (email: string, address: string) =>
      service.post('/token?grant_type=password', { email, password }, at(address))
    const confirmed = (email: string) =>
      service.post('/admin/users', { email, password, email_confirm: true }, service.admin)
    const useUp = async () => {
      const ask = () => service.post('/recover', { email: newAddress() })
      while ((await ask()).status === 200);
      service.clock.advance({ seconds: 61 })
    }
    const recover = (email: string, address: string) => service.post('/recover', { email }, at(address))
    return { service, signIn, confirmed, useUp, recover }
  }

  test('by a right password without a sign-in, or at an address that only a setting confirmed', async ({
    service: shared,
  }) => {
    const { service, signIn, confirmed, useUp, recover } = await begin(shared)
    await service.post('/signup', { email: 'pending@example.com', password })
    expect(await signIn('pending@example.com', '198.51.100.1')).toMatchObject({
      status: 400,
      body: { error_code: 'email_not_confirmed' },
    })
    const autoconfirming = await service.with(autoconfirmed)
    await autoconfirming.post('/signup', { email: 'assumed@example.com', password })
    expect((await signIn('assumed@example.com', '198.51.100.1')).status).toBe(200)
    const { body } = await confirmed('banned@example.com')
    await service.put(`/admin/users/${body.id}`, { ban_duration: '1h' }, service.admin)
    expect((await signIn('banned@example.com', '198.51.100.1')).body.error_code).toBe('user_banned')
    await confirmed('owner@example.com')
    expect((await signIn('owner@example.com', '192.0.2.1')).status).toBe(200)
    await useUp()
    for (const email of ['pending@example.com', 'assumed@example.com', 'banned@example.com']) {
      expect(await recover(email, '198.51.100.1')).toMatchObject(refused)
    }
    expect((await recover('owner@example.com', '192.0.2.1')).status).toBe(200)
    await autoconfirming.close()
    await service.close()
  })

  test('by following a PKCE link: only the exchange of its code is a sign-in', async ({ service: shared }) => {
    const { service, confirmed, useUp, recover } = await begin(shared)
    const [email, verifier] = [newAddress(), 'v'.repeat(43)]
    await confirmed(email)
    await service.post('/recover', { email, code_challenge: verifier, code_challenge_method: 'plain' })
    const link = linkPath((await service.mailbox.waitFor(email)).text)
    const { code } = queryOf(await service.get(link, at('198.51.100.1')))
    await useUp()
    expect(await recover(email, '198.51.100.1')).toMatchObject(refused)
    const exchange = { auth_code: code, code_verifier: verifier }
    expect((await service.post('/token?grant_type=pkce', exchange, at('192.0.2.1'))).status).toBe(200)
    expect((await recover(email, '192.0.2.1')).status).toBe(200)
    await service.close()
  })
})

test('strangers who request all codes to a number do not lock out an owner at a known client address', async () => {
  const gateways = await startSmsGateways()
  const service = await startTestService({
    ...gateways.settings('twilio'),
    AUTH_RATE_LIMIT_HEADER: 'x-real-address',
    AUTH_SMS_MAX_PER_NUMBER: '3/24h',
  })
  const phone = '4915100000001'
  const ask = async (address: string) => {
    service.clock.advance({ seconds: 61 })
    return (await service.post('/otp', { phone }, { 'x-real-address': address })).status
  }
  const signIn = async (address: string) => {
    const token = /\d{6,}/.exec((await gateways.waitFor(phone)).text)?.[0]
    return (await service.post('/verify', { type: 'sms', phone, token }, { 'x-real-address': address })).status
  }
  expect([await ask('192.0.2.1'), await signIn('192.0.2.1')]).toEqual([200, 200])
  const strangers = []
  for (let i = 0; i < 4; i++) strangers.push(await ask(`198.51.100.${i}`))
  // The third is the one message an hour of a proven number over its cap.
  expect(strangers).toEqual([200, 200, 200, 429])
  await service.settled()
  gateways.messages.length = 0
  expect([await ask('192.0.2.1'), await signIn('192.0.2.1')]).toEqual([200, 200])
  // The owner's quota is no larger than the number's.
  const own = []
  for (let i = 0; i < 3; i++) own.push(await ask('192.0.2.1'))
  expect(own).toEqual([200, 200, 429])
  await service.close()
  await gateways.close()
})

test('addresses of one mailbox count together: labels, and the dots and both names of Gmail', async ({
  service: shared,
}) => {
  const service = await shared.onAnotherDay({ AUTH_MAILER_MAX_PER_ADDRESS: '2/24h' })
  const signUp = async (email: string) => (await service.post('/signup', { email, password })).status
  const gmail = ['ada.lovelace@gmail.com', 'adalovelace@googlemail.com', 'a.d.a.lovelace+1@gmail.com']
  const others = ['ada.lovelace@site.example', 'adalovelace@site.example', 'ada.love.lace@site.example']
  expect([await signUp(gmail[0] as string), await signUp(gmail[1] as string)]).toEqual([200, 200])
  expect(await signUp(gmail[2] as string)).toBe(429)
  for (const email of others) expect(await signUp(email)).toBe(200)
  // They remain different addresses, which only the count takes for one.
  const { rows } = await service.deps.pool.query('select email from users where email = any($1)', [gmail])
  expect(rows.map(({ email }) => email).toSorted()).toEqual(gmail.slice(0, 2))
  await service.close()
})

describe('strangers who use up the SMS of', () => {
  const [proven, unknown] = ['4915100000001', '4915100000002']

  async function start(settings: Record<string, string>) {
    const gateways = await startSmsGateways()
    const service = await startTestService({
      ...gateways.settings('twilio'),
      AUTH_RATE_LIMIT_HEADER: 'x-real-address',
      ...settings,
    })
    await service.post('/admin/users', { phone: proven, phone_confirm: true }, service.admin)
    const ask = async (phone: string, address: string, seconds = 61) => {
      service.clock.advance({ seconds })
      const { status, headers } = await service.post('/otp', { phone }, { 'x-real-address': address })
      await service.settled()
      return { status, retryAfter: headers['retry-after'] }
    }
    const sentTo = (phone: string) => gateways.messages.filter(({ to }) => to.endsWith(phone))
    const close = async () => {
      await service.close()
      await gateways.close()
    }
    return { service, gateways, ask, sentTo, close }
  }

  test('a number leave a proven one a message an hour, with a longer code, and answer alike for all', async () => {
    const { service, gateways, ask, sentTo, close } = await start({ AUTH_SMS_MAX_PER_NUMBER: '2/24h' })
    const answers: Record<string, unknown[]> = {}
    for (const phone of [proven, unknown]) {
      answers[phone] = []
      for (let n = 0; n < 4; n++) answers[phone].push(await ask(phone, `198.51.100.${n}`))
      answers[phone].push(await ask(phone, '198.51.100.9', 3_600))
    }
    expect(answers[proven]?.map((answer) => (answer as { status: number }).status)).toEqual([200, 200, 200, 429, 200])
    expect(answers[unknown]).toEqual(answers[proven])
    expect([sentTo(proven).length, sentTo(unknown).length]).toEqual([4, 2])
    const codes = sentTo(proven).map(({ text }) => /\d{6,}/.exec(text)?.[0] ?? '')
    expect(codes.map(({ length }) => length)).toEqual([6, 6, 10, 10])
    gateways.messages.length = 0
    await ask(proven, '198.51.100.9', 3_601)
    const token = /\d{6,}/.exec(sentTo(proven)[0]?.text ?? '')?.[0]
    expect((await service.post('/verify', { type: 'sms', phone: proven, token })).status).toBe(200)
    await close()
  })

  test('a block from one network leave the rest of it to others, and proven numbers their message', async () => {
    const { ask, sentTo, gateways, close } = await start({ AUTH_SMS_MAX_PER_PREFIX: '8' })
    const numbers = Array.from({ length: 5 }, (_, i) => `491510000${String(10 + i).padStart(4, '0')}`)
    for (const phone of numbers) expect((await ask(phone, '198.51.100.1', 1)).status).toBe(200)
    expect(gateways.messages).toHaveLength(2)
    expect((await ask(proven, '198.51.100.1', 1)).status).toBe(200)
    expect(sentTo(proven)).toHaveLength(1)
    expect((await ask('4915100000099', '192.0.2.1', 1)).status).toBe(200)
    expect(sentTo('4915100000099')).toHaveLength(1)
    await close()
  })

  test('a block do not shut it for proven numbers, where no address is trusted', async () => {
    const { ask, sentTo, gateways, close } = await start({ AUTH_SMS_MAX_PER_PREFIX: '2', AUTH_RATE_LIMIT_HEADER: '' })
    for (const phone of ['4915100000011', '4915100000012', '4915100000013']) await ask(phone, '198.51.100.1', 1)
    expect(gateways.messages).toHaveLength(2)
    expect((await ask(proven, '198.51.100.1', 1)).status).toBe(200)
    expect(sentTo(proven)).toHaveLength(1)
    await close()
  })

  test('a number refuse registrations alike', async () => {
    const { service, ask, close } = await start({ AUTH_SMS_MAX_PER_NUMBER: '1/24h' })
    for (const phone of [proven, unknown]) {
      await ask(phone, '198.51.100.1')
      service.clock.advance({ seconds: 61 })
      const { status, body } = await service.post('/signup', { phone, password })
      expect([status, body.error_code]).toEqual([429, 'over_sms_send_rate_limit'])
    }
    await close()
  })
})

test('an owner at many clients leaves the other owners of the block their messages', async () => {
  const service = await startTestService({
    ...SMS_GATEWAY,
    AUTH_RATE_LIMIT_HEADER: 'x-real-address',
    AUTH_SMS_MAX_PER_PREFIX: '4',
  })
  const [greedy, other] = ['4915100000001', '4915100000002']
  for (const phone of [greedy, other]) {
    await service.post('/admin/users', { phone, password, phone_confirm: true }, service.admin)
  }
  const askAs = async (phone: string, address: string) => {
    const from = { 'x-real-address': address }
    await service.post('/token?grant_type=password', { phone, password }, from)
    service.clock.advance({ seconds: 61 })
    return (await service.post('/otp', { phone }, from)).status
  }
  const statuses = []
  for (let client = 1; client <= 7; client++) statuses.push(await askAs(greedy, `192.0.2.${client}`))
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 429])
  expect(await askAs(other, '198.51.100.1')).toBe(200)
  await service.close()
})

test('a refused invitation uses up no mail', async ({ service: shared }) => {
  const { service, newUser } = await open(shared, { AUTH_RATE_LIMIT_EMAIL_SENT: '1' })
  const { body } = await service.get('/user', await newUser())
  const invite = async (email: string) => (await service.post('/invite', { email }, service.admin)).status
  for (let i = 0; i < 3; i++) expect(await invite(body.email)).toBe(422)
  expect(await invite('invited@example.com')).toBe(200)
  expect(await invite('over@example.com')).toBe(429)
  await service.close()
})

test('a message whose request took too long uses up nothing', async () => {
  const settings = { AUTH_RATE_LIMIT_EMAIL_SENT: '1' }
  const service = await startTestService({ ...autoconfirmed, ...settings, AUTH_WORKERS_ENABLED: 'false' })
  const impatient = await startImpatient(service, { ...autoconfirmed, ...settings })
  const auth = await newUserOf(service)
  const holder = await service.deps.pool.connect()
  await holder.query('begin; lock table messages in exclusive mode')
  expect((await impatient.put('/user', { email: 'late@example.com' }, auth)).status).toBe(504)
  await holder.query('rollback')
  holder.release()
  const spent = async () =>
    (await service.deps.pool.query(`select points from rate_limits where key = 'mails:all'`)).rows[0]?.points ?? 0
  const gaps = async () => (await service.deps.pool.query('select from send_gaps')).rowCount
  await expect.poll(async () => [await spent(), await gaps()]).toEqual([0, 0])
  expect(await service.put('/user', { email: 'in-time@example.com' }, auth)).toMatchObject({ status: 200 })
  await impatient.close()
  await service.close()
})

describe('where there is no mail server', () => {
  const settings = { AUTH_EXTERNAL_EMAIL_ENABLED: 'false', AUTH_SMTP_HOST: '' }

  /** A user with an address and a session, made without a mail. */
  async function mailedUser(service: TestService) {
    const email = newAddress()
    await service.post('/admin/users', { email, email_confirm: true, password }, service.admin)
    const link = await service.post('/admin/generate_link', { type: 'recovery', email }, service.admin)
    const { body } = await service.post('/verify', { type: 'recovery', token_hash: link.body.hashed_token })
    return { authorization: `Bearer ${body.access_token}` }
  }

  test('requests that need a mail are refused, and nothing is written', async ({ service: shared }) => {
    const { service, messages } = await open(shared, settings)
    const auth = await mailedUser(service)
    const stored = async () => [
      await service.deps.db.selectFrom('users').selectAll().orderBy('id').execute(),
      await service.deps.db.selectFrom('send_gaps').selectAll().orderBy('key').execute(),
    ]
    const before = await stored()
    const answers = [
      await service.put('/user', { email: 'elsewhere@example.com' }, auth),
      await service.get('/reauthenticate', auth),
      await service.post('/invite', { email: 'invited@example.com' }, service.admin),
    ]
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 400, body: { error_code: 'email_provider_disabled' } })
    }
    expect(await stored()).toEqual(before)
    expect(await messages()).toBe(0)
    await service.close()
  })

  test('notifications are omitted, and the change is made', async ({ service: shared }) => {
    const { service, messages } = await open(shared, {
      ...settings,
      AUTH_MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true',
    })
    const auth = await mailedUser(service)
    expect((await service.put('/user', { password: 'a new horse' }, auth)).status).toBe(200)
    expect(await messages()).toBe(0)
    await service.close()
  })
})
