import { createHash } from 'node:crypto'
import { PATIENCE_MS } from '@services/common/testing/patience'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { FAILURES, startUpstream, text, type Upstream } from '../../../test/upstream.ts'
import { createLeakedPasswords } from './leaked-passwords.ts'

const password = 'correct horse'
const SUFFIX = createHash('sha1').update(password).digest('hex').toUpperCase().slice(5)
const OTHERS = ['0018A45C4D1DEF81644B54AB7F969B88D65:3', '00D4F6E8FA6EECAD2A3AA415EEC418D38EC:21']
const rows = (...lines: string[]) => text([...OTHERS, ...lines].join('\r\n'))
const LEAKED = rows(`${SUFFIX}:4711`)
const UNKNOWN = rows()
let list: Upstream
let service: TestService
let strict: TestService

beforeAll(async () => {
  list = await startUpstream(UNKNOWN)
  const settings = { AUTH_PASSWORD_HIBP_ENABLED: 'true', AUTH_PASSWORD_HIBP_URL: list.url }
  service = await startTestService(settings)
  strict = await service.with({ AUTH_PASSWORD_HIBP_FAIL_CLOSED: 'true' })
})

beforeEach(() => {
  list.requests.length = 0
  list.answer(UNKNOWN)
  for (const on of [service, strict]) waitForList(on, PATIENCE_MS)
})

/** Patience with a list that hangs; on a busy machine any other list may be as slow. */
const IMPATIENCE_MS = 500

function waitForList({ deps }: TestService, ms: number) {
  deps.leakedPasswords = createLeakedPasswords(deps.config.passwords.leaks, deps.log, { timeoutMs: ms, atOnceMs: ms })
}

afterAll(async () => {
  await strict.close()
  await service.close()
  await list.close()
})

const signUp = (on: TestService, typed = password) =>
  on.post('/signup', { email: `${Math.random().toString(36).slice(2)}@example.com`, password: typed })

test('a leaked password is refused as pwned, and only five digits of its hash are sent', async () => {
  list.answer(LEAKED)
  expect(await signUp(service)).toMatchObject({
    status: 422,
    body: { error_code: 'weak_password', weak_password: { reasons: ['pwned'] } },
  })
  expect(list.requests).toHaveLength(1)
  expect(list.requests[0]).toMatchObject({
    path: expect.stringMatching(/^\/range\/[0-9A-F]{5}$/),
    headers: { 'add-padding': 'true' },
  })
  expect(JSON.stringify(list.requests)).not.toContain(SUFFIX)
})

test.for<[string, ReturnType<typeof text>]>([
  ['on no list', UNKNOWN],
  ['only in the padding', rows(`${SUFFIX}:0`)],
  ['on an empty list', text('')],
])('a password %s is accepted', async ([, answer]) => {
  list.answer(answer)
  expect((await signUp(service)).status).toBe(200)
})

test('lower-case digits mean the same', async () => {
  list.answer(rows(`${SUFFIX.toLowerCase()}:1`))
  expect((await signUp(service)).status).toBe(422)
})

test('all weaknesses of a password are reported together, leaks last', async () => {
  list.answer(text(`${createHash('sha1').update('12345').digest('hex').toUpperCase().slice(5)}:9`))
  service.deps.config.passwords.requiredCharacters = ['abc']
  const { body } = await signUp(service, '12345')
  service.deps.config.passwords.requiredCharacters = []
  expect(body.weak_password.reasons).toEqual(['length', 'characters', 'pwned'])
})

describe('while the list', () => {
  const failures = { ...FAILURES, 'answers 503 with rows': text(`${SUFFIX}:9`, 503) }
  test.for(Object.entries(failures))(
    '%s, new passwords pass, or are refused if so configured',
    async ([failure, respond]) => {
      list.answer(respond)
      if (failure.startsWith('hangs')) for (const on of [service, strict]) waitForList(on, IMPATIENCE_MS)
      const [open, closed] = await Promise.all([signUp(service), signUp(strict)])
      expect(open.status).toBe(200)
      expect(closed).toMatchObject({ status: 503, body: { error_code: 'service_unavailable' } })
      expect(Number(closed.headers['retry-after'])).toBeGreaterThan(0)
    },
  )
})

test('a new password of a user is looked up too', async () => {
  const { auth } = await service.signedIn()
  list.answer(LEAKED)
  const answer = await service.put('/user', { password }, auth)
  expect(answer).toMatchObject({ status: 422, body: { weak_password: { reasons: ['pwned'] } } })
})

describe('signing in', () => {
  test('with a leaked password works and reports it', async () => {
    await service.signedIn('leaked@example.com')
    list.answer(LEAKED)
    const { status, body } = await service.post('/token?grant_type=password', { email: 'leaked@example.com', password })
    expect([status, body.weak_password.reasons]).toEqual([200, ['pwned']])
  })

  test.for(Object.entries(FAILURES))(
    'works while the list %s, even where new passwords are refused',
    async ([failure, fail]) => {
      const email = `${Math.random().toString(36).slice(2)}@example.com`
      await strict.signedIn(email)
      list.answer(fail)
      if (failure.startsWith('hangs')) waitForList(strict, IMPATIENCE_MS)
      const { status, body } = await strict.post('/token?grant_type=password', { email, password })
      expect([status, body.weak_password]).toEqual([200, undefined])
    },
  )

  test('with a wrong password looks nothing up', async () => {
    await service.signedIn('typo@example.com')
    list.requests.length = 0
    await service.post('/token?grant_type=password', { email: 'typo@example.com', password: 'correct hrose' })
    expect(list.requests).toEqual([])
  })
})

test('nothing is looked up unless enabled', async () => {
  list.answer(LEAKED)
  const off = await service.with({ AUTH_PASSWORD_HIBP_ENABLED: 'false' })
  expect((await signUp(off)).status).toBe(200)
  expect(list.requests).toEqual([])
  await off.close()
})
