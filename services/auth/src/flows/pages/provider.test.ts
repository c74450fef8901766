import { statementsOf } from '@services/common/testing/database/statements'
import { expect, onTestFinished, test } from 'vitest'
import { startProviderSignIns } from '../../../test/provider-sign-in.ts'
import { fragmentOf } from '../../../test/service.ts'
import { ORIGIN, openPage } from './testing/pages.ts'

test('a sign-in at a provider comes back to the pages, and ends at the application', async () => {
  const { far, service, newAccount, close } = await startProviderSignIns({
    AUTH_HOSTED_PAGES_ENABLED: 'true',
    AUTH_HOSTED_PAGES_WAYS: 'github,google',
    AUTH_URI_ALLOW_LIST: 'https://app.example/**',
  })
  onTestFinished(close)
  const browser = service.otherBrowser()
  const page = await openPage(browser, '/ui/sign-in?redirect_to=https%3A%2F%2Fapp.example%2Fdone')
  expect(Object.keys(page.links)).toEqual(['Continue with GitHub', 'Continue with Google'])
  // A form would end at another host, which the policy forbids.
  expect(page.forms).toEqual([])
  const begun = await browser.get(page.links['Continue with Google'] ?? '')
  const authorize = await browser.get(String(begun.headers.location).replace(ORIGIN, ''))
  const account = newAccount('google')
  const callback = far.visit('google', new URL(String(authorize.headers.location)), account)
  const back = await browser.get(`/callback?${new URLSearchParams(callback)}`)
  const arrival = String(back.headers.location).replace(ORIGIN, '')
  expect(arrival).toMatch(/^\/ui\/arrive\?/)
  // Another browser cannot use the address; this one is signed in.
  expect((await openPage(service.otherBrowser(), arrival)).problem).toContain('only in the browser')
  // A stranger's cookies cost no further exchange.
  const forged = (count: number) =>
    Array.from({ length: count }, (_, index) => `__Host-auth-page=${`${index}`.padStart(43, 'x')}`).join('; ')
  const costOf = async (cookie: string) =>
    (await statementsOf(() => openPage(service.otherBrowser(), arrival, { cookie }))).length
  const costOfOne = await costOf(forged(1))
  expect(costOfOne).toBeGreaterThan(await costOf(''))
  expect(await costOf(forged(20))).toBe(costOfOne)
  const end = await openPage(browser, arrival)
  expect(end.location).toMatch(/^https:\/\/app\.example\/done#/)
  expect(fragmentOf(end).provider_token).toBeDefined()
  const user = await service.get('/user', { authorization: `Bearer ${fragmentOf(end).access_token}` })
  expect(user.body.email).toBe(account.email)
})
