import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, startTestService, type TestService } from '../../../test/service.ts'

const password = 'correct horse'
const HOME = '192.0.2.1'
let one: TestService
let two: TestService
let plain: TestService
let phones: TestService

beforeAll(async () => {
  const settings = { AUTH_MAILER_AUTOCONFIRM: 'true' }
  const behindProxy = { AUTH_RATE_LIMIT_HEADER: 'x-real-address', AUTH_RATE_LIMIT_TOKEN_REFRESH: '100000' }
  one = await startTestService({ ...settings, ...behindProxy })
  const replica = { ...settings, AUTH_DATABASE_URL: one.deps.config.database.url }
  ;[two, plain, phones] = await Promise.all([
    startTestService({ ...replica, ...behindProxy }, one.clock),
    startTestService(replica, one.clock),
    startTestService({
      ...settings,
      ...behindProxy,
      AUTH_EXTERNAL_PHONE_ENABLED: 'true',
      AUTH_SMS_AUTOCONFIRM: 'true',
    }),
  ])
})

afterAll(() => Promise.all([one.close(), two.close(), plain.close(), phones.close()]))

const wait = (seconds: number) => one.clock.advance({ seconds })
let names = 0
const newName = () => `someone-${names++}@example.com`
async function newAccount() {
  const email = newName()
  await one.post('/signup', { email, password })
  return email
}
const signIn = (on: TestService, email: string, typed: string, address?: string): Promise<Answer> =>
  on.post('/token?grant_type=password', { email, password: typed }, address ? { 'x-real-address': address } : {})
const statusOf = async (...parts: Parameters<typeof signIn>) => (await signIn(...parts)).status
async function miss(email: string, times: number, address?: string, on = one) {
  for (let i = 0; i < times; i++) expect(await statusOf(on, email, 'wrong', address)).toBe(400)
}
const waitOf = (answer: Answer) => [answer.status, Number(answer.headers['retry-after'])]

describe.each([
  ['with a trusted address', HOME],
  ['without one', undefined],
])('%s', (_name, address) => {
  test('five failed attempts are free, then each doubles the wait up to a quarter of an hour, for known and unknown accounts', async () => {
    for (const email of [await newAccount(), newName()]) {
      await miss(email, 5, address)
      for (const seconds of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]) {
        const refused = await signIn(one, email, 'wrong', address)
        expect(waitOf(refused)).toEqual([429, seconds])
        expect(refused.body.error_code).toBe('over_request_rate_limit')
        wait(seconds)
        await miss(email, 1, address)
      }
    }
  })

  test('the right password is refused while an attempt has to wait, and ends the waits after that', async () => {
    const email = await newAccount()
    await miss(email, 5, address)
    expect(await statusOf(one, email, password, address)).toBe(429)
    wait(1)
    expect(await statusOf(one, email, password, address)).toBe(200)
    await miss(email, 5, address)
    expect(await statusOf(one, email, 'wrong', address)).toBe(429)
  })

  test('a refused attempt does not prolong the wait', async () => {
    const email = await newAccount()
    await miss(email, 5, address)
    for (let i = 0; i < 10; i++) expect(await statusOf(one, email, 'wrong', address)).toBe(429)
    wait(1)
    expect(await statusOf(one, email, password, address)).toBe(200)
  })

  test('failed attempts expire after an hour without another', async () => {
    const email = newName()
    await miss(email, 5, address)
    wait(3600)
    await miss(email, 5, address)
    expect(waitOf(await signIn(one, email, 'wrong', address))).toEqual([429, 1])
  })

  test('replicas count together', async () => {
    const email = newName()
    await miss(email, 3, address, one)
    await miss(email, 2, address, two)
    for (const replica of [one, two]) expect(await statusOf(replica, email, 'wrong', address)).toBe(429)
  })

  test('of parallel guesses only the free ones are checked, and after each wait one', async () => {
    const email = await newAccount()
    const guess = (on: TestService, count: number) =>
      Promise.all(Array.from({ length: count }, (_, index) => statusOf(on, email, `guess ${index}`, address)))
    const tried = (statuses: number[]) => statuses.filter((status) => status === 400).length
    const first = await guess(one, 60)
    expect(tried(first)).toBe(5)
    expect(first.filter((status) => status === 429)).toHaveLength(55)
    for (const seconds of [1, 2, 4]) {
      wait(seconds)
      const both = await Promise.all([guess(one, 15), guess(two, 15)])
      expect(tried(both.flat())).toBe(1)
    }
  })

  test('right passwords never wait, sequential or parallel', async () => {
    const email = await newAccount()
    for (let i = 0; i < 12; i++) expect(await statusOf(one, email, password, address)).toBe(200)
    const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf(one, email, password, address)))
    expect(new Set(statuses)).toEqual(new Set([200]))
  })
})

describe('a guesser from elsewhere', () => {
  test('does not keep the owner waiting', async () => {
    const email = await newAccount()
    await miss(email, 5, '198.51.100.1')
    expect(await statusOf(one, email, 'wrong', '198.51.100.1')).toBe(429)
    expect(await statusOf(one, email, password, HOME)).toBe(200)
  })

  test('at many addresses waits after four times as many failed attempts, the owner at a known address does not', async () => {
    const email = await newAccount()
    expect(await statusOf(one, email, password, HOME)).toBe(200)
    for (let i = 1; i <= 20; i++) await miss(email, 1, `198.51.100.${i}`)
    expect(waitOf(await signIn(one, email, 'wrong', '203.0.113.1'))).toEqual([429, 1])
    expect(waitOf(await signIn(one, email, password, '203.0.113.2'))).toEqual([429, 1])
    wait(20 * 86_400)
    for (let i = 1; i <= 20; i++) await miss(email, 1, `198.51.100.${i}`)
    expect(await statusOf(two, email, password, HOME)).toBe(200)
  })

  test('at many addresses in parallel gets no more attempts than sequentially, on any replica', async () => {
    const email = await newAccount()
    expect(await statusOf(one, email, password, HOME)).toBe(200)
    const guess = () =>
      Promise.all(
        Array.from({ length: 150 }, (_, index) =>
          statusOf(index % 2 ? one : two, email, `guess ${index}`, `198.51.100.${index}`),
        ),
      )
    const tried = (statuses: number[]) => statuses.filter((status) => status === 400).length
    expect(tried(await guess())).toBe(20)
    for (const seconds of [1, 2, 4]) {
      wait(seconds)
      expect(tried(await guess())).toBe(1)
    }
    expect(await statusOf(two, email, password, HOME)).toBe(200)
  })

  test('at one address and two replicas in parallel gets no more attempts than sequentially', async () => {
    const email = newName()
    const guesses = Array.from({ length: 50 }, (_, index) => statusOf(index % 2 ? one : two, email, 'guess', HOME))
    const statuses = await Promise.all(guesses)
    expect(statuses.filter((status) => status === 400)).toHaveLength(5)
  })

  test('at an address that the owner used long ago is a stranger again', async () => {
    const email = await newAccount()
    expect(await statusOf(one, email, password, HOME)).toBe(200)
    wait(31 * 86_400)
    for (let i = 1; i <= 20; i++) await miss(email, 1, `198.51.100.${i}`)
    expect(await statusOf(one, email, password, HOME)).toBe(429)
  })

  test("at the owner's own address has to wait too", async () => {
    const email = await newAccount()
    expect(await statusOf(one, email, password, HOME)).toBe(200)
    await miss(email, 5, HOME)
    expect(await statusOf(one, email, 'wrong', HOME)).toBe(429)
  })
})

test('other accounts at one address are counted apart', async () => {
  const [first, second] = [newName(), newName()]
  await miss(first, 5, HOME)
  expect(await statusOf(one, first, 'wrong', HOME)).toBe(429)
  await miss(second, 5, HOME)
})

test('the counters reveal neither account nor address', async () => {
  await miss('readable@example.com', 1, '198.51.100.77')
  const { rows } = await one.deps.pool.query('select key from rate_limits')
  // Counters of wrong passwords, and of requests from an address.
  for (const counter of ['password-pair:', 'token:']) expect(rows.some(({ key }) => key.startsWith(counter))).toBe(true)
  expect(JSON.stringify(rows)).not.toMatch(/readable|198\.51/)
})

test('an untrusted header changes nothing', async () => {
  const email = newName()
  for (let i = 0; i < 5; i++) await miss(email, 1, `198.51.100.${i}`, plain)
  expect(await statusOf(plain, email, 'wrong', '198.51.100.99')).toBe(429)
})

test('an attempt whose password was not checked leaves the wait unchanged', async () => {
  const subject = { identifier: newName(), address: HOME }
  const attemptOnce = (isRight: () => Promise<boolean>) => one.deps.passwordAttempts.run(subject, isRight)
  const refused = () =>
    attemptOnce(async () => true).then(
      () => 0,
      ({ retryAfterSeconds }) => retryAfterSeconds,
    )
  for (const seconds of [0, 0, 0, 0, 0, 1, 2, 4]) {
    wait(seconds)
    await attemptOnce(async () => false)
  }
  wait(8)
  for (let i = 0; i < 3; i++) {
    await expect(attemptOnce(() => Promise.reject(new Error('over capacity')))).rejects.toThrow('over capacity')
  }
  await attemptOnce(async () => false)
  expect(await refused()).toBe(16)
})

test("failed attempts at an account's address reveal nothing about its number", async () => {
  for (const address of [HOME, undefined]) {
    const [email, phone] = [newName(), `49151${String(names++).padStart(8, '0')}`]
    const made = { email, phone, email_confirm: true, phone_confirm: true, password }
    expect((await phones.post('/admin/users', made, phones.admin)).status).toBe(200)
    const byPhone = (typed: string) =>
      phones.post(
        '/token?grant_type=password',
        { phone, password: typed },
        address ? { 'x-real-address': address } : {},
      )
    await miss(email, 5, address, phones)
    expect(await statusOf(phones, email, password, address)).toBe(429)
    expect((await byPhone('wrong')).status).toBe(400)
    // The count of all client addresses together does not either.
    for (let i = 1; address && i <= 15; i++) await miss(email, 1, `198.51.100.${i}`, phones)
    if (address) expect(await statusOf(phones, email, password, '203.0.113.1')).toBe(429)
    expect((await byPhone(password)).status).toBe(200)
  }
})
