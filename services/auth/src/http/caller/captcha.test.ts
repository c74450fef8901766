import { SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { SECRET, startTestService, type TestService } from '../../../test/service.ts'
import { FAILURES, json, startUpstream, type Upstream } from '../../../test/upstream.ts'

const person = { email: 'person@example.com', password: 'correct horse' }
const FAILED = { status: 400, body: { error_code: 'captcha_failed' } }
let provider: Upstream
let service: TestService
/** Waits a second for the provider. */
let impatient: TestService

beforeAll(async () => {
  provider = await startUpstream(json({ success: true }))
  const settings = {
    AUTH_SECURITY_CAPTCHA_ENABLED: 'true',
    AUTH_SECURITY_CAPTCHA_SECRET: ' shared secret ',
    AUTH_SECURITY_CAPTCHA_URL: `${provider.url}/siteverify`,
    AUTH_RATE_LIMIT_HEADER: 'x-real-address',
    AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
  }
  service = await startTestService(settings)
  impatient = await service.with({ AUTH_SECURITY_CAPTCHA_TIMEOUT: '1' })
})

beforeEach(() => {
  provider.requests.length = 0
  provider.answer(json({ success: true }))
})

afterAll(async () => {
  await impatient.close()
  await service.close()
  await provider.close()
})

const asked = () => provider.requests.map(({ body }) => Object.fromEntries(new URLSearchParams(body)))

test.for<[string, object]>([
  ['at the top level', { captcha_token: 'proof' }],
  ['nested, as the public client sends it', { gotrue_meta_security: { captcha_token: 'proof' } }],
  ['nested beside a blank one', { captcha_token: ' ', gotrue_meta_security: { captcha_token: 'proof' } }],
])('a proof %s is put to the provider with the secret, and the body is still read', async ([, proof]) => {
  const answer = await service.post('/signup', { ...person, email: `${Math.random()}@example.com`, ...proof })
  expect(answer.status).toBe(200)
  expect(asked()).toEqual([{ secret: 'shared secret', response: 'proof' }])
  expect(provider.requests[0]).toMatchObject({ method: 'POST', path: '/siteverify' })
  expect(provider.requests[0]?.headers['content-type']).toMatch('application/x-www-form-urlencoded')
})

test.for<[string, unknown]>([
  ['no proof', {}],
  ['null', { captcha_token: null }],
  ['a blank one', { captcha_token: '  ', gotrue_meta_security: { captcha_token: '' } }],
  ['a number', { captcha_token: 1, gotrue_meta_security: 'proof' }],
  ['an object', { captcha_token: { captcha_token: 'proof' } }],
  ['an oversized one', { captcha_token: 'x'.repeat(20_000) }],
])('%s is refused without asking the provider', async ([, proof]) => {
  expect(await service.post('/signup', { ...person, ...(proof as object) })).toMatchObject(FAILED)
  expect(provider.requests).toEqual([])
})

test('the reasons of the provider are in the text, as far as they look like reasons', async () => {
  const codes = ['timeout-or-duplicate', '<script>', 7, 'x'.repeat(100), 'invalid-input-response']
  provider.answer(json({ success: false, 'error-codes': codes }, 400))
  const answer = await service.post('/signup', { ...person, captcha_token: 'used' })
  expect(answer).toMatchObject(FAILED)
  expect(answer.body.msg).toContain('(timeout-or-duplicate, invalid-input-response)')
})

describe('a provider that', () => {
  const failures = {
    ...FAILURES,
    'answers without a verdict': json({ success: 'true' }),
    'answers null': json(null),
    'answers 100 KiB': json({ success: true, padding: 'x'.repeat(100_000) }),
  }
  test.for(Object.entries(failures))("%s is our failure, not the visitor's", async ([how, respond]) => {
    provider.answer(respond)
    const answer = await (how.startsWith('hangs') ? impatient : service).post('/signup', {
      ...person,
      captcha_token: 'proof',
    })
    expect(answer).toMatchObject({ status: 503, body: { error_code: 'service_unavailable' } })
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
    // Asked once, without following the redirect: the request carries the secret.
    expect(provider.requests).toHaveLength(1)
  })
})

test.for<[string, object]>([
  ['/signup', person],
  ['/signup', {}],
  ['/otp', {}],
  ['/magiclink', {}],
  ['/recover', {}],
  ['/resend', {}],
  ['/token?grant_type=password', person],
  ['/token?grant_type=web3', {}],
  ['/token', {}],
])('%s with %j wants a captcha before anything else', async ([url, body]) => {
  expect(await service.post(url, body)).toMatchObject(FAILED)
})

test.for(['refresh_token', 'pkce', 'id_token'])('the grant %s wants none', async (grant) => {
  const answer = await service.post(`/token?grant_type=${grant}`, { refresh_token: 'abcdefghijkl' })
  expect([answer.status, answer.body.error_code]).not.toEqual([400, 'captcha_failed'])
  expect(provider.requests).toEqual([])
})

test('a grant named twice does not get past the captcha', async () => {
  expect(await service.post('/token?grant_type=refresh_token&grant_type=password', person)).toMatchObject(FAILED)
})

test('an admin is not asked; any other token is', async () => {
  const token = (role: string, secret = SECRET) =>
    new SignJWT({ role }).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(secret))
  const signIn = async (bearer: string) =>
    service.post('/token?grant_type=password', person, { authorization: `Bearer ${bearer}` })
  expect((await signIn(await token('service_role'))).body.error_code).toBe('invalid_credentials')
  for (const bearer of [await token('authenticated'), await token('service_role', 'another secret of 32 bytes!!')]) {
    expect(await signIn(bearer)).toMatchObject(FAILED)
  }
})

test('a user who has lost the admin role since the token was issued is asked', async () => {
  for (const end of [{ role: 'authenticated' }, { ban_duration: '1h' }]) {
    const email = `${Object.keys(end)[0]}@example.com`
    const user = { email, password: person.password, email_confirm: true, role: 'service_role' }
    const { body: made } = await service.post('/admin/users', user, service.admin)
    const signIn = (headers = {}, proof: object = {}) =>
      service.post('/token?grant_type=password', { email, password: person.password, ...proof }, headers)
    const { body } = await signIn({}, { captcha_token: 'proof' })
    const auth = { authorization: `Bearer ${body.access_token}` }
    expect((await signIn(auth)).status).toBe(200)
    await service.put(`/admin/users/${made.id}`, end, service.admin)
    expect(await signIn(auth)).toMatchObject(FAILED)
  }
})

test("an admin's token whose session has ended is asked", async () => {
  const user = { email: 'left@example.com', password: person.password, email_confirm: true, role: 'service_role' }
  const { body: made } = await service.post('/admin/users', user, service.admin)
  const signIn = (headers = {}, proof: object = {}) =>
    service.post('/token?grant_type=password', { email: user.email, password: user.password, ...proof }, headers)
  const { body } = await signIn({}, { captcha_token: 'proof' })
  const auth = { authorization: `Bearer ${body.access_token}` }
  expect((await signIn(auth)).status).toBe(200)
  await service.delete(`/admin/users/${made.id}/sessions`, service.admin)
  expect(await signIn(auth)).toMatchObject(FAILED)
})

test.for<[string, Record<string, string>, string | undefined]>([
  ['the trusted header', { 'x-real-address': '10.0.0.1, 192.0.2.7:443' }, '192.0.2.7'],
  ['a header anybody can write', { 'x-forwarded-for': '192.0.2.8' }, undefined],
  ['the trusted header without an address', { 'x-real-address': 'not an address' }, undefined],
])("the visitor's address is told from %s", async ([, headers, address]) => {
  await service.post('/token?grant_type=password', { ...person, captcha_token: 'proof' }, headers)
  expect(asked()[0]?.remoteip).toBe(address)
})

test('each provider is asked at its own address unless another is set', async () => {
  for (const [name, host] of [
    ['hcaptcha', 'https://hcaptcha.com/siteverify'],
    ['turnstile', 'https://challenges.cloudflare.com/turnstile/v0/siteverify'],
  ]) {
    const calls: string[] = []
    const real = globalThis.fetch
    globalThis.fetch = (url) => {
      calls.push(String(url))
      return Promise.resolve(Response.json({ success: true }))
    }
    const own = await startTestService({
      AUTH_SECURITY_CAPTCHA_ENABLED: 'true',
      AUTH_SECURITY_CAPTCHA_SECRET: 'secret',
      AUTH_SECURITY_CAPTCHA_PROVIDER: name as string,
    })
    await own.post('/signup', { ...person, captcha_token: 'proof' })
    globalThis.fetch = real
    await own.close()
    expect(calls).toEqual([host])
  }
})

test('while captchas are disabled no request is asked', async () => {
  const open = await service.with({ AUTH_SECURITY_CAPTCHA_ENABLED: 'false' })
  const one = { ...person, email: 'unasked@example.com' }
  expect((await open.post('/signup', one)).status).toBe(200)
  expect(provider.requests).toEqual([])
  await open.close()
})
