import { countLockWaits } from '@services/common/testing/database/lock-waits'
import type { FastifyRequest } from 'fastify'
import { expect } from 'vitest'
import { variables } from '../src/config.ts'
import type { LimitReached } from '../src/core/limits/limiter.ts'
import { createMailGuards } from '../src/core/limits/mail-guards.ts'
import type { Rate } from '../src/core/limits/rate.ts'
import { createSmsGuards } from '../src/core/limits/sms-guards.ts'
import { type AddressLimit, createLimits } from '../src/http/limits/rate-limit.ts'
import { test } from './service.ts'

const password = 'correct horse'
const HEADER = { AUTH_RATE_LIMIT_HEADER: 'X-Real-Address' }

test('replicas count together, per trusted address', async ({ service }) => {
  const settings = { ...HEADER, AUTH_RATE_LIMIT_TOKEN_REFRESH: '5' }
  const [one, two] = await Promise.all([service.with(settings), service.with(settings)])
  const call = (index: number, address: string) =>
    (index % 2 ? one : two).post(
      '/token?grant_type=password',
      { email: `${index}@example.com`, password },
      { 'x-real-address': address },
    )
  const statuses: number[] = []
  for (let i = 0; i < 7; i++) statuses.push((await call(i, `10.0.0.${i}, 192.0.2.1`)).status)
  expect(statuses).toEqual([400, 400, 400, 400, 400, 429, 429])
  const refused = await call(0, '192.0.2.1')
  expect(refused.body.error_code).toBe('over_request_rate_limit')
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  expect((await call(0, '192.0.2.2')).status).toBe(400)
  await Promise.all([one.close(), two.close()])
})

test('X-Forwarded-For never counts; Sb-Forwarded-For does where it is trusted, before the trusted header', async ({
  service: shared,
}) => {
  const service = await shared.onAnotherDay({
    ...HEADER,
    AUTH_SECURITY_SB_FORWARDED_FOR_ENABLED: 'true',
    AUTH_RATE_LIMIT_VERIFY: '2',
  })
  const verify = (headers: Record<string, string>) =>
    service.post('/verify', { type: 'signup', token_hash: 'x' }, headers)
  for (let i = 0; i < 4; i++) expect((await verify({ 'x-forwarded-for': '192.0.2.1' })).status).toBe(403)
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await verify({ 'sb-forwarded-for': '192.0.2.1, 10.0.0.1' })).status)
  expect(statuses).toEqual([403, 403, 429])
  const both = (forwarded: string, address: string) =>
    verify({ 'sb-forwarded-for': forwarded, 'x-real-address': address })
  expect((await both('192.0.2.1', '192.0.2.7')).status).toBe(429)
  expect((await both('192.0.2.2', '192.0.2.7')).status).toBe(403)
  // A value that is no address gives none, and the header counts; without it all such requests are one client.
  for (const status of [403, 403, 429]) expect((await both('nonsense', '192.0.2.8')).status).toBe(status)
  const nonsense = []
  for (let i = 0; i < 3; i++) nonsense.push((await verify({ 'sb-forwarded-for': `nonsense ${i}` })).status)
  expect(nonsense).toEqual([403, 403, 429])
  await service.close()
})

test('the hourly mail budget holds for all users together', async ({ service: shared }) => {
  const service = await shared.onAnotherDay({ AUTH_RATE_LIMIT_EMAIL_SENT: '3' })
  const signUp = (name: string) => service.post('/signup', { email: `${name}@example.com`, password })
  for (const name of ['a', 'b', 'c']) expect((await signUp(name)).status).toBe(200)
  const refused = await signUp('d')
  expect(refused).toMatchObject({ status: 429, body: { error_code: 'over_email_send_rate_limit' } })
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(3000)
  await service.close()
})

test('repeating one address does not use up the budget of all', async ({ service: shared }) => {
  const service = await shared.onAnotherDay({ AUTH_RATE_LIMIT_EMAIL_SENT: '3' })
  const signUp = (name: string) => service.post('/signup', { email: `${name}@example.com`, password })
  const statuses = []
  for (let i = 0; i < 5; i++) statuses.push((await signUp('same')).status)
  expect(statuses).toEqual([200, 429, 429, 429, 429])
  expect((await signUp('other')).status).toBe(200)
  await service.close()
})

test('asking many times at once for one message uses up one message of the budget of all', async ({
  service: shared,
}) => {
  const service = await shared.onAnotherDay({ AUTH_RATE_LIMIT_EMAIL_SENT: '8', AUTH_DISABLE_SIGNUP: 'false' })
  const { auth } = await service.signedUp('asks@example.com') // the first
  const atOnce = async (ask: (index: number) => Promise<{ status: number }>) => {
    const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => ask(index)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(429)])
  }
  await atOnce(() => service.post('/signup', { email: 'one@example.com', password }))
  await atOnce(() => service.post('/otp', { email: 'two@example.com' }))
  await atOnce(() => service.post('/recover', { email: 'three@example.com' }))
  // Two mails: the current address has to agree as well.
  await atOnce((index) => service.put('/user', { email: `four-${index}@example.com` }, auth))
  await atOnce(() => service.get('/reauthenticate', auth))
  expect((await service.post('/recover', { email: 'last@example.com' })).status).toBe(200)
  expect((await service.post('/recover', { email: 'over@example.com' })).status).toBe(429)
  await service.close()
})

test('a message that was not sent does not delay the next', async ({ service: shared }) => {
  const service = await shared.onAnotherDay({ AUTH_RATE_LIMIT_EMAIL_SENT: '2' })
  const { auth } = await service.signedUp('kept@example.com')
  expect((await service.post('/recover', { email: 'spends@example.com' })).status).toBe(200)
  const asks = [
    () => service.post('/signup', { email: 'fresh@example.com', password }),
    () => service.put('/user', { email: 'fresh@example.com' }, auth),
  ]
  for (const ask of [...asks, ...asks]) {
    const refused = await ask()
    expect(refused.status).toBe(429)
    // The budget's hour, not the quarter of one between two mails.
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(1000)
  }
  await service.close()
})

test('each kind of request has a bucket of its own, although one setting feeds several', async ({
  service: shared,
}) => {
  const service = await shared.onAnotherDay({ ...HEADER, AUTH_RATE_LIMIT_OTP: '1' })
  const request = { headers: { 'x-real-address': '192.0.2.9' } } as unknown as FastifyRequest
  for (const limit of ['signup', 'user', 'otp', 'magiclink', 'recover', 'resend'] as const) {
    await service.deps.limits.byAddress(request, limit)
    await expect(service.deps.limits.byAddress(request, limit)).rejects.toMatchObject({
      status: 429,
      code: 'over_request_rate_limit',
      retryAfterSeconds: expect.any(Number),
    })
  }
  await service.close()
})

test.for<[string, string[], number[]]>([
  ['entries that a client wrote before the last', ['8.8.8.1, 192.0.2.5', '8.8.8.2, 192.0.2.5'], [403, 429]],
  ['ports', ['192.0.2.6:40001', '192.0.2.6:40002', '[::ffff:192.0.2.6]:40003'], [403, 429, 429]],
  ['ports of IPv6', ['[2001:db8:9::1]:40001', '[2001:db8:9::1]:40002', '"[2001:db8:9::2]:1"'], [403, 429, 429]],
  ['what is no address', ['unknown', '_hidden', 'nonsense:1', '192.0.2.7, '], [403, 429, 429, 429]],
  ['a blank header', ['', ' ', ''], [403, 403, 403]],
])('in the trusted header %s make no other client', async ([, values, expected], { service: shared }) => {
  const service = await shared.onAnotherDay({ ...HEADER, AUTH_RATE_LIMIT_VERIFY: '1' })
  const statuses = []
  for (const value of values) {
    const headers: Record<string, string> = { 'x-real-address': value }
    statuses.push((await service.post('/verify', { type: 'signup', token_hash: 'x' }, headers)).status)
  }
  expect(statuses).toEqual(expected)
  await service.close()
})

test('requests without the trusted header did not come by way of the proxy and are not limited', async ({
  service: shared,
}) => {
  const service = await shared.onAnotherDay({ ...HEADER, AUTH_RATE_LIMIT_VERIFY: '1' })
  for (let i = 0; i < 3; i++) {
    expect((await service.post('/verify', { type: 'signup', token_hash: 'x' })).status).toBe(403)
  }
  await service.close()
})

test('an IPv6 customer has one counter, whatever address of theirs they use and however it is written', async ({
  service: shared,
}) => {
  const service = await shared.onAnotherDay({ ...HEADER, AUTH_RATE_LIMIT_VERIFY: '2' })
  const verify = async (address: string) =>
    (await service.post('/verify', { type: 'signup', token_hash: 'x' }, { 'x-real-address': address })).status
  const groups = [
    ['2001:db8:1:2::1', '2001:DB8:1:2:ffff::', '2001:0db8:0001:0002:0:0:0.0.0.9'],
    ['2001:db8:1:3::1', '2001:db8:1:3:0:0:0:1', '2001:db8:1:3::2'],
    ['::1', '0:0:0:0:1::', '::2:0:0:1'],
    ['2001:db8::', '2001:db8::1:0:0:1', '2001:db8:0:0:9::%eth0'],
    ['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:c000:201'],
    ['192.0.2.2', '::ffff:192.0.2.2', '192.0.2.2'],
    ['unknown', 'unknown', 'unknown'],
  ]
  for (const group of groups) {
    const statuses = []
    for (const address of group) statuses.push(await verify(address))
    expect([group, statuses]).toEqual([group, [403, 403, 429]])
  }
  await service.close()
})

test('wrong passwords through a proxy that writes ports count together', async ({ service: shared }) => {
  const service = await shared.onAnotherDay({ ...HEADER, AUTH_RATE_LIMIT_FAILED_SIGN_INS: '5' })
  const guess = async (port: number) => {
    const headers = { 'x-real-address': `10.0.0.2:${port}` }
    return (await service.post('/token?grant_type=password', { email: 'g@example.com', password: 'no' }, headers))
      .status
  }
  const statuses = []
  for (let i = 0; i < 8; i++) statuses.push(await guess(40_001 + i))
  expect(statuses).toEqual([...Array(5).fill(400), 429, 429, 429])
  await service.close()
})

test('wrong passwords from one IPv6 customer count together', async ({ service: shared }) => {
  const service = await shared.onAnotherDay({ ...HEADER, AUTH_RATE_LIMIT_FAILED_SIGN_INS: '2' })
  const email = 'guessed@example.com'
  const guess = async (address: string) =>
    (await service.post('/token?grant_type=password', { email, password: 'wrong' }, { 'x-real-address': address }))
      .status
  const statuses = []
  for (let i = 1; i <= 4; i++) statuses.push(await guess(`2001:db8:1:2::${i}`))
  expect(statuses).toEqual([400, 400, 429, 429])
  expect(await guess('2001:db8:1:3::1')).toBe(400)
  await service.close()
})

test('of concurrent requests at the end of a window, refused ones get the whole new window as Retry-After', async ({
  service: shared,
}) => {
  const service = await shared.onAnotherDay({
    ...HEADER,
    AUTH_RATE_LIMIT_ANONYMOUS_USERS: '1',
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
  })
  const signUp = () => service.post('/signup', {}, { 'x-real-address': '192.0.2.1' })
  expect((await signUp()).status).toBe(200)
  service.clock.advance({ seconds: 3601 })
  const [holder, watcher] = [await service.deps.pool.connect(), await service.deps.pool.connect()]
  await holder.query(`begin; select from rate_limits where key like 'anonymous:%' for update`)
  const asked = [signUp(), signUp()]
  await expect.poll(() => countLockWaits(watcher)).toBe(2)
  await holder.query('rollback')
  holder.release()
  watcher.release()
  const answers = await Promise.all(asked)
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 429])
  expect(answers.find(({ status }) => status === 429)?.headers['retry-after']).toBe('3600')
  await service.close()
})

test('a message that was refused after its window gives back nothing of the next one', async ({ service: shared }) => {
  const service = await shared.onAnotherDay({ AUTH_RATE_LIMIT_EMAIL_SENT: '2', AUTH_MAILER_MAX_PER_ADDRESS: '1/1h' })
  const signUp = () => service.post('/signup', { email: 'late@example.com', password })
  const { status } = await service.post('/recover', { email: 'one@example.com' })
  expect([status, (await service.post('/recover', { email: 'two@example.com' })).status]).toEqual([200, 200])
  const [holder, watcher] = [await service.deps.pool.connect(), await service.deps.pool.connect()]
  await holder.query(`begin; select from rate_limits where key = 'mails-open:all' for update`)
  const late = signUp()
  await expect.poll(() => countLockWaits(watcher)).toBe(1)
  service.clock.advance({ seconds: 3601 })
  const next = signUp()
  await expect.poll(() => countLockWaits(watcher)).toBe(2)
  await holder.query('rollback')
  holder.release()
  watcher.release()
  expect([(await late).status, (await next).status]).toEqual([429, 200])
  service.clock.advance({ seconds: 1800 })
  expect((await signUp()).status).toBe(429)
  await service.close()
})

test('a refusal names the setting of its limit, or none where no setting changes it', async ({ service }) => {
  const { deps } = service
  const [none, many] = [0, 1000].map((points) => ({ points, seconds: 60 })) as [Rate, Rate]
  const { limits, mail, sms } = deps.config
  const mails = (mailsSent: Rate, maxPerAddress: Rate) =>
    createMailGuards(deps, {
      limits: { ...limits, mailsSent, changesResent: mailsSent },
      mail: { ...mail, maxPerAddress: [maxPerAddress] },
    })
  const numbers = (guards: object) =>
    createSmsGuards(deps, {
      sms: { guards: { ...sms.guards, maxPerNumber: [many], maxPerPrefix: many, sent: many, ...guards } },
    })
  const requests = createLimits(deps, {
    ...deps.config,
    limits: {
      ...{ ...limits, header: 'x-real-address', tokenPer5Minutes: 0, verifyPer5Minutes: 0 },
      ...{ otpPer5Minutes: 0, anonymousPerHour: 0 },
    },
    mfa: { ...deps.config.mfa, attemptsPerMinute: 0 },
  })
  const request = { headers: { 'x-real-address': '192.0.2.9' }, raw: {} } as unknown as FastifyRequest
  const byAddress = (limit: AddressLimit) => () => requests.byAddress(request, limit)
  const byAddresses = (names: AddressLimit[], setting: string): Ended[] =>
    names.map((name) => [byAddress(name), setting])
  const [phone, owner] = ['4915100000099', { userId: 'someone' }]
  const of = { network: 'n' }
  const ends: Ended[] = [
    [() => mails(many, none).mailSent('a@example.com', 'strangers'), 'AUTH_MAILER_MAX_PER_ADDRESS'],
    [() => mails(many, none).mailSent('a@example.com', owner), 'AUTH_MAILER_MAX_PER_ADDRESS'],
    [() => mails(none, many).mailSent('a@example.com', 'strangers'), 'AUTH_RATE_LIMIT_EMAIL_SENT'],
    [() => mails(none, many).mailSent('a@example.com', owner), 'AUTH_RATE_LIMIT_EMAIL_SENT'],
    [() => mails(none, many).mailSent('a@example.com', 'admins'), 'AUTH_RATE_LIMIT_EMAIL_SENT'],
    [() => mails(none, many).changeResent(), 'AUTH_RATE_LIMIT_EMAIL_SENT'],
    [() => numbers({ maxPerNumber: [none] }).allow(phone), 'AUTH_SMS_MAX_PER_NUMBER'],
    [() => numbers({ maxPerNumber: [none] }).allow(phone, { share: owner }), 'AUTH_SMS_MAX_PER_NUMBER'],
    [() => numbers({ maxPerPrefix: none }).allow(phone), 'AUTH_SMS_MAX_PER_PREFIX'],
    [() => numbers({ maxPerPrefix: none }).allow(phone, of), 'AUTH_SMS_MAX_PER_PREFIX'],
    [() => numbers({ maxPerPrefix: none }).allow(phone, { share: owner }), 'AUTH_SMS_MAX_PER_PREFIX'],
    [() => numbers({ dailyBudget: 0 }).allow(phone), 'AUTH_SMS_DAILY_BUDGET'],
    [() => numbers({ sent: none }).allow(phone), 'AUTH_RATE_LIMIT_SMS_SENT'],
    ...byAddresses(['token', 'authorize', 'callback'], 'AUTH_RATE_LIMIT_TOKEN_REFRESH'),
    ...byAddresses(['signup', 'user', 'otp', 'magiclink', 'recover', 'resend'], 'AUTH_RATE_LIMIT_OTP'),
    [byAddress('anonymous'), 'AUTH_RATE_LIMIT_ANONYMOUS_USERS'],
    [byAddress('verify'), 'AUTH_RATE_LIMIT_VERIFY'],
    [byAddress('factors'), 'AUTH_MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY'],
    [() => requests.countFactorAttempt('factor', 'session'), 'AUTH_MFA_RATE_LIMIT_CHALLENGE_AND_VERIFY'],
    [() => repeated(11, () => requests.addressChange('someone')), null],
    [() => repeated(21, () => requests.countProviderRequest(request)), null],
  ]
  const named = await Promise.all(ends.map(([refused]) => refused().catch((refusal: LimitReached) => refusal.setting)))
  expect(named).toEqual(ends.map(([, setting]) => setting))
  for (const [, setting] of ends) if (setting) expect(variables).toHaveProperty(setting.replace('AUTH_', ''))
})

type Ended = [() => Promise<unknown>, string | null]

async function repeated(times: number, work: () => Promise<unknown>) {
  for (let time = 0; time < times; time++) await work()
}
