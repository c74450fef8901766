import { statementsOf } from '@services/common/testing/database/statements'
import { perFile } from '@services/common/testing/per-file'
import { test as base, expect } from 'vitest'
import { fragmentOf, startTestService, type TestService } from '../../../test/service.ts'
import { allPages } from './all-pages.http.ts'
import { openPage, type SeenPage, send } from './testing/pages.ts'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_SESSIONS_TIMEBOX: '1h',
      AUTH_URI_ALLOW_LIST: 'https://app.example/**',
    }),
  ),
})

const SIGN_IN = '/ui/sign-in?redirect_to=https%3A%2F%2Fapp.example%2F'

/** A browser that has signed in by a page, and where that led. */
async function signedInBrowser(service: TestService) {
  const email = `browser-${crypto.randomUUID()}@example.com`
  const { userId } = await service.signedIn(email)
  const browser = service.otherBrowser()
  const asked = await send(browser, await openPage(browser, SIGN_IN), { address: email })
  const page = await send(browser, asked, { password: 'correct horse' })
  return { email, userId, browser, page }
}

const tokenOf = (page: SeenPage) => fragmentOf(page).access_token ?? ''
const sessionOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
const bearer = (page: SeenPage) => ({ authorization: `Bearer ${tokenOf(page)}` })

test('the cookie is one of this host, unreadable for scripts, and names no secret', async ({ service }) => {
  const { page } = await signedInBrowser(service)
  const [cookie = ''] = [page.headers['set-cookie']].flat().filter((each) => String(each).includes('auth-session'))
  expect(cookie).toMatch(/^__Host-auth-session=[\w.-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/)
  expect(cookie).not.toContain(fragmentOf(page).refresh_token)
})

test('a further application gets a session of its own with one press; the first goes on', async ({ service }) => {
  const { email, browser, page } = await signedInBrowser(service)
  const shown = await openPage(browser, SIGN_IN)
  expect(shown.text).toContain(`You are signed in as ${email}.`)
  const second = await send(browser, shown)
  const [one, other] = [sessionOf(tokenOf(page)), sessionOf(tokenOf(second))]
  expect(other.session_id).not.toBe(one.session_id)
  // Nothing was proven anew.
  expect(other).toMatchObject({ aal: one.aal, amr: one.amr, sub: one.sub })
  for (const each of [page, second]) {
    const { refresh_token } = fragmentOf(each)
    expect(await service.post('/token?grant_type=refresh_token', { refresh_token })).toMatchObject({ status: 200 })
  }
})

test('no address hands a session over without a press, whatever the page', async ({ service }) => {
  const { browser } = await signedInBrowser(service)
  for (const { path } of allPages) {
    const { location = '' } = await openPage(browser, `${path}?redirect_to=https%3A%2F%2Fapp.example%2F`)
    expect([path, location]).toEqual([path, expect.not.stringMatching(/^https:\/\/app\./)])
  }
})

test('sessions of further applications end with the time of the sign-in, and so does the browser', async ({
  service,
}) => {
  const { browser } = await signedInBrowser(service)
  const goOn = async () => send(browser, await openPage(browser, SIGN_IN))
  service.clock.advance({ seconds: 30 * 60 })
  await goOn()
  service.clock.advance({ seconds: 29 * 60 })
  // A copy of a copy, which the browser has now.
  const { refresh_token } = fragmentOf(await goOn())
  const refresh = () => service.post('/token?grant_type=refresh_token', { refresh_token })
  expect(await refresh()).toMatchObject({ status: 200 })
  service.clock.advance({ seconds: 60 })
  expect(await refresh()).toMatchObject({ status: 400, body: { error_code: 'session_expired' } })
  expect((await openPage(browser, SIGN_IN)).forms[0]?.fields).toHaveProperty('address')
})

test('an application may ask for a sign-in of now, and the user for another account', async ({ service }) => {
  const { browser } = await signedInBrowser(service)
  const shown = await openPage(browser, SIGN_IN)
  const anew = await openPage(browser, shown.links['Sign in as another user'] ?? '')
  expect(anew.forms[0]?.fields).toHaveProperty('address')
})

test.for<[string, (service: TestService, given: Awaited<ReturnType<typeof signedInBrowser>>) => Promise<unknown>]>([
  ['signed out in the application', (service, { page }) => service.post('/logout?scope=local', {}, bearer(page))],
  ['signed out everywhere', (service, { page }) => service.post('/logout', {}, bearer(page))],
  ['banned', (service, { userId }) => service.put(`/admin/users/${userId}`, { ban_duration: '1h' }, service.admin)],
  ['deleted', (service, { userId }) => service.delete(`/admin/users/${userId}`, service.admin)],
])('a user who was %s is signed out here', async ([, end], { service }) => {
  const given = await signedInBrowser(service)
  const shown = await openPage(given.browser, SIGN_IN)
  await end(service, given)
  expect((await openPage(given.browser, SIGN_IN)).forms[0]?.fields).toHaveProperty('address')
  // A page that was open before.
  expect(await send(given.browser, shown)).toMatchObject({ title: 'Sign in', location: undefined })
})

test('no other value than one of ours signs in', async ({ service }) => {
  const { browser, page } = await signedInBrowser(service)
  const other = await signedInBrowser(service)
  const [, value = ''] = /__Host-auth-session=([^;]+)/.exec(String(page.headers['set-cookie'])) ?? []
  const [userId, sessionId, ...rest] = value.split('.')
  const [, foreign = ''] = /__Host-auth-session=([^;]+)/.exec(String(other.page.headers['set-cookie'])) ?? []
  const forged = [
    value.slice(0, -2),
    [other.userId, sessionId, ...rest].join('.'),
    [userId, foreign.split('.')[1], ...rest].join('.'),
    `${value}.`,
    '....',
    '',
  ]
  for (const each of forged) {
    const cookie = `__Host-auth-session=${each}`
    const shown = await openPage(browser, SIGN_IN, { cookie })
    expect([each, Object.keys(shown.forms[0]?.fields ?? {})]).toEqual([each, expect.arrayContaining(['address'])])
  }
  // A cookie that was set without https is another one.
  const plain = await openPage(browser, SIGN_IN, { cookie: `auth-session=${value}` })
  expect(plain.forms[0]?.fields).toHaveProperty('address')
})

test('a page without a session needs no statement', async ({ service }) => {
  const browser = service.otherBrowser()
  expect(await statementsOf(() => openPage(browser, SIGN_IN))).toEqual([])
})
