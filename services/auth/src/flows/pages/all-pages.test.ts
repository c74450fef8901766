// Guarantees of every hosted page: each walk goes over the list of pages, so that a new one is in it.
import { PAGE_POLICY } from '@services/common/pages/document'
import { perFile } from '@services/common/testing/per-file'
import { test as base, expect, onTestFinished } from 'vitest'
import { startTestService, type TestService } from '../../../test/service.ts'
import { json, startUpstream } from '../../../test/upstream.ts'
import { PASSKEYS } from '../../../test/webauthn/passkeys.ts'
import { accountPages } from './account/account-pages.ts'
import { allPages } from './all-pages.http.ts'
import { openPage, type SeenPage, send } from './testing/pages.ts'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({
      ...PASSKEYS,
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_OAUTH_SERVER_ENABLED: 'true',
      AUTH_SELF_DELETION_ENABLED: 'true',
      AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
      AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
    }),
  ),
})

const PASSWORD = 'correct horse'
const INLINE = /<style|<script(?! type="module" src="\/ui\/)|<\w+(?: [\w-]+(?:="[^"]*")?)* (?:style|on\w+)=|<img src=x/
const HOSTILE = '<img src=x onerror=alert(1)>'

/** A browser that is signed in as a user with a hostile name. */
async function signedIn(service: TestService, email: string) {
  const user = await service.signedIn(email, PASSWORD)
  await service.put('/user', { data: { full_name: HOSTILE } }, user.auth)
  const browser = service.otherBrowser()
  const asked = await send(browser, await openPage(browser, '/ui/account'), { address: email })
  expect((await send(browser, asked, { password: PASSWORD })).title).toBe('Your account')
  return { ...user, browser }
}

test('the page at each address has the strict policy, is not stored, holds nothing inline, and shows a name as text', async ({
  service,
}) => {
  const { browser } = await signedIn(service, 'policy@example.com')
  const leaving = new Set<string>()
  for (const door of [browser, service.otherBrowser()]) {
    for (const { path } of allPages) {
      const page = await openPage(door, path)
      if (page.location !== undefined) {
        leaving.add(path)
        continue
      }
      const { 'content-security-policy': policy, 'referrer-policy': referrer, 'cache-control': cache } = page.headers
      expect([path, policy, referrer, cache]).toEqual([path, PAGE_POLICY, 'same-origin', 'no-store'])
      expect(page.text).not.toMatch(INLINE)
    }
  }
  expect([...leaving]).toEqual(['/ui/provider'])
})

test('each page and each form of the account leads to the sign-in once the session has ended elsewhere', async ({
  service,
}) => {
  const { browser, auth } = await signedIn(service, 'ended@example.com')
  await service.post('/token?grant_type=password', { email: 'ended@example.com', password: PASSWORD })
  const open: SeenPage[] = []
  for (const { path } of accountPages) open.push(await openPage(browser, path))
  await service.post('/logout', {}, auth)
  for (const page of open) {
    for (const form of page.forms) {
      const { title } = await send(browser, { ...page, forms: [form] }, { name: 'Late', password: 'another horse' })
      expect([page.title, form.button, title]).toEqual([page.title, form.button, 'Sign in'])
    }
  }
  for (const { path } of accountPages) expect([path, (await openPage(browser, path)).title]).toEqual([path, 'Sign in'])
})

test('a captcha is demanded as by the API, and a solved one that comes with a form counts', async ({ service }) => {
  const provider = await startUpstream(json({ success: true }))
  const guarded = await service.with({
    AUTH_SECURITY_CAPTCHA_ENABLED: 'true',
    AUTH_SECURITY_CAPTCHA_SECRET: 'secret',
    AUTH_SECURITY_CAPTCHA_URL: provider.url,
  })
  onTestFinished(async () => {
    await guarded.close()
    await provider.close()
  })
  await service.signedIn('captcha@example.com', PASSWORD)
  const browser = guarded.otherBrowser()
  const asked = await send(browser, await openPage(browser, '/ui/sign-in'), { address: 'captcha@example.com' })
  const refused = await send(browser, asked, { password: PASSWORD })
  expect(refused.problem).toContain('The check that you are a person has failed.')
  expect(provider.requests).toEqual([])
  const solved = { password: PASSWORD, 'cf-turnstile-response': 'solved' }
  expect((await send(browser, asked, solved)).location).toContain('#access_token=')
  expect(provider.requests[0]?.body).toContain('solved')
})
