import { perFile } from '@services/common/testing/per-file'
import { test as base, expect } from 'vitest'
import { totpCode, withTotp } from '../../../test/second-factors.ts'
import { fragmentOf, startTestService, type TestService } from '../../../test/service.ts'
import { openPage, send } from './testing/pages.ts'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_URI_ALLOW_LIST: 'https://app.example/**',
      AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
    }),
  ),
})

type Browser = ReturnType<TestService['otherBrowser']>

const FLOW = { redirect_to: 'https://app.example/done' }
const signInAddress = (flow: Record<string, string> = FLOW) => `/ui/sign-in?${new URLSearchParams(flow)}`

async function typePassword(browser: Browser, email: string, flow?: Record<string, string>) {
  const asked = await send(browser, await openPage(browser, signInAddress(flow)), { address: email })
  return send(browser, asked, { password: 'correct horse' })
}

/** Code of the next step of the app: each works once. */
function nextCode(service: TestService, secret: string) {
  service.clock.advance({ seconds: 30 })
  return totpCode(secret, service.clock.now())
}

const claimsOf = (token = '') => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

test('a user with a factor proves it before the application gets a session, which is aal2', async ({ service }) => {
  const { email, totp } = await withTotp(service)
  const browser = service.otherBrowser()
  const asked = await typePassword(browser, email)
  expect(asked).toMatchObject({ status: 200, title: 'Second factor', location: undefined })
  const wrong = await send(browser, asked, { code: '000000' })
  expect(wrong).toMatchObject({ status: 200, title: 'Second factor' })
  expect(wrong.text).toContain('This code is wrong.')
  const page = await send(browser, wrong, { code: nextCode(service, totp.secret) })
  expect(page.location).toMatch(/^https:\/\/app\.example\/done#/)
  expect(claimsOf(fragmentOf(page).access_token)).toMatchObject({ aal: 'aal2' })
})

test('with PKCE too the exchange gives the session of aal2', async ({ service }) => {
  const { email, totp } = await withTotp(service)
  const browser = service.otherBrowser()
  const verifier = 'b'.repeat(43)
  const flow = { ...FLOW, code_challenge: verifier, code_challenge_method: 'plain' }
  const page = await send(browser, await typePassword(browser, email, flow), { code: nextCode(service, totp.secret) })
  const auth_code = new URL(page.location ?? '').searchParams.get('code')
  const { body } = await service.post('/token?grant_type=pkce', { auth_code, code_verifier: verifier })
  expect(claimsOf(body.access_token)).toMatchObject({ aal: 'aal2' })
})

test('a recovery code replaces the factor', async ({ service }) => {
  const { email, recoveryCodes } = await withTotp(service)
  const browser = service.otherBrowser()
  const asked = await typePassword(browser, email)
  const recovery = await openPage(browser, asked.links['Use a recovery code'] ?? '')
  expect(recovery.text).not.toContain('name="trust"')
  expect((await send(browser, recovery, { code: 'abcd-efgh' })).text).toContain('class="error"')
  const page = await send(browser, recovery, { code: recoveryCodes[0] as string })
  expect(claimsOf(fragmentOf(page).access_token)).toMatchObject({ aal: 'aal2' })
})

test('a trusted browser is not asked again, and another one is', async ({ service }) => {
  const { email, totp } = await withTotp(service)
  const browser = service.otherBrowser()
  const asked = await typePassword(browser, email)
  await send(browser, asked, { code: nextCode(service, totp.secret), trust: 'yes' })
  await send(browser, await openPage(browser, '/ui/sign-out'))
  const page = await typePassword(browser, email)
  expect(claimsOf(fragmentOf(page).access_token)).toMatchObject({
    aal: 'aal2',
    amr: expect.arrayContaining([expect.objectContaining({ method: 'trusted_device' })]),
  })
  // Pages that want a proven factor get one.
  expect((await openPage(browser, '/ui/factor?next=/ui/account')).forms[0]?.fields).toHaveProperty('code')
  // The token was replaced by that use, and the browser keeps the next one.
  await send(browser, await openPage(browser, '/ui/sign-out'))
  service.clock.advance({ seconds: 3_600 })
  expect(fragmentOf(await typePassword(browser, email)).access_token).toBeDefined()
  expect((await typePassword(service.otherBrowser(), email)).title).toBe('Second factor')
})

test('a session that waits for its factor continues there, and opens nothing else', async ({ service }) => {
  const { email } = await withTotp(service)
  const browser = service.otherBrowser()
  await typePassword(browser, email)
  const again = await openPage(browser, signInAddress())
  expect(again.text).toContain(`You are signed in as ${email}.`)
  expect(await send(browser, again)).toMatchObject({ title: 'Second factor', location: undefined })
  expect(await openPage(browser, '/ui/sign-in?next=/ui/account')).toMatchObject({ title: 'Second factor' })
})
