import { PAGE_POLICY } from '@services/common/pages/document'
import { perFile } from '@services/common/testing/per-file'
import { test as base, describe, expect, onTestFinished } from 'vitest'
import { codeIn, fragmentOf, startTestService, type TestService } from '../../../test/service.ts'
import { openPage, send } from './testing/pages.ts'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({ AUTH_HOSTED_PAGES_ENABLED: 'true', AUTH_URI_ALLOW_LIST: 'https://app.example/**,myapp://**' }),
  ),
})

const PASSWORD = 'correct horse'
const APP = 'https://app.example/done'
const TOO_DEEP = { way: 'sign-in', credential: '['.repeat(5_000) + ']'.repeat(5_000) }
const SIGN_IN = `/ui/sign-in?${new URLSearchParams({ redirect_to: APP })}`

async function typePassword(browser: Parameters<typeof openPage>[0], email: string, password = PASSWORD) {
  const asked = await send(browser, await openPage(browser, SIGN_IN), { address: email })
  return send(browser, asked, { password })
}

test('the address, then the password, lead to the application with a session in the fragment', async ({ service }) => {
  const { userId } = await service.signedIn('ada@example.com', PASSWORD)
  const browser = service.otherBrowser()
  const page = await typePassword(browser, 'ada@example.com')
  expect(page.location).toMatch(/^https:\/\/app\.example\/done#access_token=/)
  expect(page.title).toBe('One moment')
  const session = await service.post('/token?grant_type=refresh_token', {
    refresh_token: fragmentOf(page).refresh_token,
  })
  expect(session.body.user.id).toBe(userId)
})

describe('a stranger', () => {
  test('sees the same for an address with an account and for one without', async ({ service }) => {
    await service.signedIn('known@example.com', PASSWORD)
    const steps = async (email: string) => {
      const browser = service.otherBrowser()
      const address = await openPage(browser, SIGN_IN)
      const password = await send(browser, address, { address: email })
      const wrong = await send(browser, password, { password: 'wrong password' })
      const code = await send(browser, password, {}, { press: 'Send me a code instead' })
      const wrongCode = await send(browser, code, { code: '000000' })
      return [address, password, wrong, code, wrongCode].map(({ status, text }) => [
        status,
        text.replaceAll(email, '(address)').replaceAll(/name="(proof|c)" value="[^"]*"/g, '$1'),
      ])
    }
    const [known, unknown] = [await steps('known@example.com'), await steps('nobody@example.com')]
    expect(known).toEqual(unknown)
    expect(known.map(([status]) => status)).toEqual([200, 200, 200, 200, 200])
    expect(known[2]?.[1]).toContain('The address or the password is wrong.')
    expect(known[4]?.[1]).toContain('This code is wrong or has expired.')
  })
})

test('a code by mail signs in, and no address of a person is in a URL', async ({ service }) => {
  await service.signedIn('grace@example.com')
  const browser = service.otherBrowser()
  const asked = await send(browser, await openPage(browser, SIGN_IN), { address: 'grace@example.com' })
  const code = await send(browser, asked, {}, { press: 'Send me a code instead' })
  expect(code.title).toBe('Enter the code')
  expect(code.text).toContain('grace@example.com')
  const mail = await service.mailbox.waitFor('grace@example.com')
  const page = await send(browser, code, { code: codeIn(mail.text) })
  expect(page.location).toMatch(/^https:\/\/app\.example\/done#access_token=/)
})

test('the link of that mail signs in the browser in which its button is pressed', async ({ service }) => {
  await service.signedIn('link@example.com')
  const browser = service.otherBrowser()
  const asked = await send(browser, await openPage(browser, SIGN_IN), { address: 'link@example.com' })
  await send(browser, asked, {}, { press: 'Send me a code instead' })
  const mail = await service.mailbox.waitFor('link@example.com')
  const [, link = ''] = /https:\/\/auth\.example(\/ui\/confirm\?\S+)/.exec(mail.text) ?? []
  const phone = service.otherBrowser()
  const page = await send(phone, await openPage(phone, link))
  expect(page.location).toMatch(/^https:\/\/app\.example\/done#access_token=/)
  expect((await openPage(browser, '/ui/sign-out')).title).toBe('Sign in')
  expect((await openPage(phone, '/ui/sign-out')).text).toContain('link@example.com')
})

test('an application with PKCE gets a code, whose exchange gives the session of the page', async ({ service }) => {
  await service.signedIn('pkce@example.com', PASSWORD)
  const browser = service.otherBrowser()
  const verifier = 'a'.repeat(43)
  const flow = { redirect_to: APP, code_challenge: verifier, code_challenge_method: 'plain' }
  const asked = await send(browser, await openPage(browser, `/ui/sign-in?${new URLSearchParams(flow)}`), {
    address: 'pkce@example.com',
  })
  const page = await send(browser, asked, { password: PASSWORD })
  const { searchParams, hash } = new URL(page.location ?? '')
  expect(hash).toBe('')
  const exchange = () =>
    service.post('/token?grant_type=pkce', { auth_code: searchParams.get('code'), code_verifier: verifier })
  const answer = await exchange()
  expect(answer.body.user.email).toBe('pkce@example.com')
  expect(await exchange()).toMatchObject({ status: 404, body: { error_code: 'flow_state_not_found' } })
  const auth = { authorization: `Bearer ${answer.body.access_token}` }
  const sessions = await service.get('/user/sessions', auth)
  // That of `signedIn`, and one for the page and the application together.
  expect(sessions.body).toHaveLength(2)
})

test.for<[string, string, string]>([
  ['an address that is not listed', 'https://evil.example/', 'https://site.example'],
  ['a script', 'javascript:alert(1)', 'https://site.example'],
  ['none', '', 'https://site.example'],
  ['an application of its own scheme', 'myapp://home', 'myapp://home'],
])('the target is judged by the rules of redirects: %s', async ([, target, end], { service }) => {
  const email = `target-${Buffer.from(target).toString('hex').slice(0, 12)}@example.com`
  await service.signedIn(email, PASSWORD)
  const browser = service.otherBrowser()
  const start = await openPage(browser, `/ui/sign-in?${new URLSearchParams({ redirect_to: target })}`)
  const page = await send(browser, await send(browser, start, { address: email }), { password: PASSWORD })
  expect(page.location?.split('#')[0]).toBe(end)
})

describe('a form', () => {
  test('of another browser, or without its proof, changes nothing and gets the page again', async ({ service }) => {
    await service.signedIn('forged@example.com', PASSWORD)
    const browser = service.otherBrowser()
    const asked = await send(browser, await openPage(browser, SIGN_IN), { address: 'forged@example.com' })
    for (const [door, changes, reason] of [
      [service.otherBrowser(), {}, 'allow cookies'],
      [browser, { proof: '' }, 'You have signed in or out'],
      [browser, { proof: 'x'.repeat(43) }, 'You have signed in or out'],
    ] as const) {
      const page = await send(door, asked, { ...changes, password: PASSWORD })
      expect(page).toMatchObject({ status: 403, title: 'Sign in', location: undefined })
      expect(page.problem).toContain(reason)
      await send(door, asked, changes, { press: 'Send me a code instead' })
    }
    await service.settled()
    expect(service.mailbox.messages({ to: 'forged@example.com' })).toEqual([])
  })

  test('from another site is refused although it has the proof', async ({ service }) => {
    const browser = service.otherBrowser()
    const page = await openPage(browser, SIGN_IN)
    const headers = { 'sec-fetch-site': 'same-site' }
    expect(await send(browser, page, { address: 'ada@example.com' }, { headers })).toMatchObject({ status: 403 })
  })

  test('pressed twice leads to the page of the present state', async ({ service }) => {
    await service.signedIn('twice@example.com')
    const browser = service.otherBrowser()
    const asked = await send(browser, await openPage(browser, SIGN_IN), { address: 'twice@example.com' })
    await send(browser, asked, {}, { press: 'Send me a code instead' })
    const again = await send(browser, asked, {}, { press: 'Send me a code instead' })
    expect(again).toMatchObject({ status: 200, title: 'Enter the code' })
    expect([again.problem, again.news]).toEqual([undefined, expect.stringContaining('no new one was sent')])
  })
})

test('every page has the strict policy, is not stored, and holds nothing inline', async ({ service }) => {
  const browser = service.otherBrowser()
  const address = await openPage(browser, SIGN_IN)
  const hostile = await send(browser, address, { address: '"><img/src=x/onerror=alert(1)>@example.com' })
  expect(hostile.text).toContain('&quot;&gt;&lt;img/src=x/')
  const password = await send(browser, address, { address: 'ada@example.com' })
  const code = await send(browser, password, {}, { press: 'Send me a code instead' })
  for (const page of [address, hostile, password, code]) {
    expect(page.headers).toMatchObject({
      'content-security-policy': PAGE_POLICY,
      'referrer-policy': 'same-origin',
      'cache-control': 'no-store',
    })
    expect(page.text).not.toMatch(/<style|<script(?! type="module" src="\/ui\/)| style=| <img/)
  }
})

test('limits and sessions see the browser, not this process', async ({ service: shared }) => {
  const service = await shared.onAnotherDay({ AUTH_RATE_LIMIT_HEADER: 'x-real-address', AUTH_RATE_LIMIT_OTP: '1' })
  onTestFinished(service.close)
  const email = 'limited@example.com'
  const { auth } = await service.signedIn(email, PASSWORD)
  const from = (address: string) => ({ headers: { 'x-real-address': address, 'user-agent': 'Browser/1' } })
  const askCode = async (address: string, to: string) => {
    const browser = service.otherBrowser()
    const asked = await send(browser, await openPage(browser, SIGN_IN), { address: to })
    return send(browser, asked, {}, { press: 'Send me a code instead', ...from(address) })
  }
  expect(await askCode('192.0.2.1', 'one@example.com')).toMatchObject({ title: 'Enter the code' })
  const limited = await askCode('192.0.2.1', 'two@example.com')
  expect(limited.title).toBe('Sign in')
  expect(limited.text).toContain('Too many attempts.')
  expect(await askCode('192.0.2.2', 'three@example.com')).toMatchObject({ title: 'Enter the code' })

  const browser = service.otherBrowser()
  const asked = await send(browser, await openPage(browser, SIGN_IN), { address: email })
  await send(browser, asked, { password: PASSWORD }, from('192.0.2.3'))
  const { body } = await service.get('/user/sessions', auth)
  expect(body).toContainEqual(expect.objectContaining({ ip: '192.0.2.3', user_agent: 'Browser/1' }))
})

test('the language is the reader’s', async ({ service }) => {
  const page = await openPage(service.otherBrowser(), SIGN_IN, { 'accept-language': 'de-AT,en;q=0.5' })
  expect(page.title).toBe('Anmelden')
  expect(page.text).toContain('<html lang="de">')
})

test('a malformed challenge is refused before it costs a sign-in', async ({ service }) => {
  await service.signedIn('malformed@example.com', PASSWORD)
  const browser = service.otherBrowser()
  const opened = await openPage(browser, `${SIGN_IN}&code_challenge=short&code_challenge_method=s256`)
  expect(opened).toMatchObject({ status: 400, problem: 'Please check what you have entered.', forms: [] })
  const asked = await send(browser, await openPage(browser, SIGN_IN), { address: 'malformed@example.com' })
  expect(await send(browser, asked, { password: PASSWORD, code_challenge: 'short' })).toMatchObject({ status: 400 })
  expect((await openPage(browser, '/ui/sign-out')).title).toBe('Sign in')
})

test('a sign-out that fails says so, and may be pressed again', async ({ service }) => {
  const { userId } = await service.signedIn('stays@example.com', PASSWORD)
  const browser = service.otherBrowser()
  await typePassword(browser, 'stays@example.com')
  const { pool } = service.deps
  await pool.query(`create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
    create trigger refuse before delete on sessions for each row when (old.user_id = '${userId}')
      execute function refuse()`)
  const failed = await send(browser, await openPage(browser, '/ui/sign-out'))
  await pool.query('drop function refuse cascade')
  expect(failed).toMatchObject({ title: 'Sign out', news: undefined })
  expect(failed.problem).toContain('went wrong')
  const pressed = await send(browser, failed)
  expect(pressed.news).toBe('You are signed out.')
  // The second press.
  expect((await send(browser, failed)).news).toBe('You are signed out.')
})

test('signing out here ends the session in the application too', async ({ service }) => {
  await service.signedIn('out@example.com', PASSWORD)
  const browser = service.otherBrowser()
  const page = await typePassword(browser, 'out@example.com')
  const { access_token: token, refresh_token } = fragmentOf(page)
  const confirm = await openPage(browser, '/ui/sign-out')
  expect(confirm.text).toContain('out@example.com')
  expect(await send(browser, confirm)).toMatchObject({ title: 'Sign in', news: 'You are signed out.' })
  expect(await service.post('/token?grant_type=refresh_token', { refresh_token })).toMatchObject({ status: 400 })
  expect(await service.post('/logout', {}, { authorization: `Bearer ${token}` })).toMatchObject({ status: 403 })
})

test('neither HEAD nor a prefetch uses up a link that arrives, and other addresses do not exist', async ({
  service,
}) => {
  const arrival = '/ui/arrive?code=x&attempt=y'
  const { statusCode } = await service.app.inject({ method: 'HEAD', url: arrival })
  expect(statusCode).toBe(204)
  expect(await service.get(arrival, { purpose: 'prefetch' })).toMatchObject({ status: 204 })
  expect(await openPage(service, '/ui/nowhere')).toMatchObject({ status: 404, problem: 'This page does not exist.' })
  expect(await service.submit('/ui/arrive', {})).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
  expect((await openPage(service.otherBrowser(), '/ui/sign-in/')).title).toBe('Sign in')
})

test.for<[string, string, Record<string, string>, { status: number; sentence: string }]>([
  [
    'a text of 60 kB as an address',
    SIGN_IN,
    { address: 'a'.repeat(60_000) },
    { status: 200, sentence: 'enter an email address' },
  ],
  ['a form above 64 KiB', SIGN_IN, { address: 'a'.repeat(70_000) }, { status: 413, sentence: 'This is too long.' }],
  ['a passkey of 5,000 levels', '/ui/passkey', TOO_DEEP, { status: 200, sentence: 'This is disabled here.' }],
])('%s is refused in words, and leads to no long address', async ([, path, fields, refusal], { service }) => {
  const browser = service.otherBrowser()
  const [form] = (await openPage(browser, SIGN_IN)).forms
  const answer = await browser.submit(path, { ...form?.fields, ...fields })
  const { location = '' } = answer.headers
  expect(String(location).length).toBeLessThan(3_000)
  const page = location ? await openPage(browser, String(location)) : answer
  expect(page.status).toBe(refusal.status)
  expect(page.text).toContain(refusal.sentence)
})

test('where hosted pages are disabled their addresses do not exist', async ({ service }) => {
  const off = await service.with({ AUTH_HOSTED_PAGES_ENABLED: 'false' })
  expect(await off.get('/ui/sign-in')).toMatchObject({ status: 404, body: { error_code: 'not_found' } })
  await off.close()
})
