import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findFreePort } from '@services/common/dev/dev-ports'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { createFarServer } from '@services/common/testing/http/far-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OpenIdProvider, startOpenIdProvider } from './openid-provider.ts'
import { linkPath, startTestService, type TestService } from './service.ts'
import { PROVIDER_EXAMPLES } from './upstreams/provider-examples.ts'
import { type SignInProviders, startSignInProviders } from './upstreams/sign-in-providers.ts'

/** A minimal site: a link to sign in, and the signed-in user once the browser returns. */
const page = (auth: string) => `<!doctype html><title>Site</title>
<a href="${auth}/authorize?provider=google&redirect_to=${encodeURIComponent('/')}">Sign in</a>
<a href="${auth}/authorize?provider=apple&redirect_to=${encodeURIComponent('/')}">Sign in with Apple</a><p id="who">nobody</p>
<script type="module">
const token = new URLSearchParams(location.hash.slice(1)).get('access_token')
if (token) {
  history.replaceState(null, '', '/')
  const answer = await fetch('${auth}/user', { headers: { authorization: 'Bearer ' + token } })
  document.querySelector('#who').textContent = (await answer.json()).email
}
</script>`

describe('in a browser', { tags: 'chromium' }, () => {
  let browser: Browser
  let provider: OpenIdProvider
  let service: TestService
  let site: Server
  let siteUrl: string
  let auth: string
  let far: SignInProviders

  beforeAll(async () => {
    // Another site to a browser than the provider and the application.
    auth = `http://localhost:${await findFreePort()}`
    site = createFarServer((_request, response) => {
      response.setHeader('content-type', 'text/html').end(page(auth))
    }).listen(0, '127.0.0.1')
    await once(site, 'listening')
    siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`
    provider = await startOpenIdProvider({}, `${auth}/callback`)
    far = await startSignInProviders(PROVIDER_EXAMPLES)
    service = await startTestService({
      ...provider.settings('GOOGLE'),
      ...far.settings('apple'),
      AUTH_EXTERNAL_APPLE_REDIRECT_URI: `${auth}/callback`,
      AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
      AUTH_SITE_URL: siteUrl,
      // Browsers take this machine for as safe as TLS: its cookies are those of production, `__Host-` and Secure.
      AUTH_API_EXTERNAL_URL: auth.replace('http:', 'https:'),
    })
    await service.app.listen({ port: Number(new URL(auth).port), host: '127.0.0.1' })
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
    await provider?.close()
    await far?.close()
    site?.close()
  })

  test('/docs fits a phone, complains of nothing, begins with sign-up, and its example can be sent', async () => {
    const phone = await (await browser.newContext({ viewport: { width: 390, height: 844 } })).newPage()
    const complaints: string[] = []
    phone.on('console', (message) => complaints.push(message.text()))
    phone.on('requestfailed', (request) => complaints.push(request.url()))
    await phone.goto(`${auth}/docs`)
    const first = phone.locator('.opblock').first()
    await first.locator('.opblock-summary-control').press('Enter')
    expect(await first.locator('[data-path]').getAttribute('data-path')).toBe('/signup')
    expect([await phone.title(), await phone.locator('header').textContent()]).toEqual([
      'Auth API',
      expect.stringContaining('Auth'),
    ])
    await first.locator('.try-out__btn').click()
    expect(await phone.evaluate('document.documentElement.scrollWidth')).toBe(390)
    await first.locator('.execute').click()
    const status = first.locator('.live-responses-table tbody .response-col_status').first()
    await expect.poll(() => status.textContent()).toContain('200')
    expect(complaints).toEqual([])
  })

  const open = async () => {
    const tab = await (await browser.newContext()).newPage()
    await tab.goto(siteUrl)
    return tab
  }
  const toProvider = async (tab: Page) => {
    await tab.goto(siteUrl)
    await tab.getByRole('link', { name: 'Sign in', exact: true }).click()
    await tab.getByLabel('Password').fill('sesame')
  }
  const signedIn = (tab: Page) => expect.poll(() => tab.textContent('#who'))

  test('a user signs in: from the site to the login page of the provider and back with a session', async () => {
    provider.next({ sub: 'b-1', email: 'browser@example.com', email_verified: true }, 'sesame')
    const tab = await open()
    await tab.getByRole('link', { name: 'Sign in', exact: true }).click()
    await tab.getByLabel('Password').fill('wrong')
    await tab.getByRole('button', { name: 'Sign in' }).click()
    await tab.getByLabel('Password').fill('sesame')
    await tab.getByRole('button', { name: 'Sign in' }).click()
    await expect.poll(() => tab.textContent('#who')).toBe('browser@example.com')
    expect(tab.url()).toBe(siteUrl)
  })

  test.each(['with scripts', 'without scripts'])('a link of a user with large metadata signs in %s', async (how) => {
    const email = `large-${how.length}@example.com`
    const user_metadata = { text: 'x'.repeat(16_000) }
    await service.post('/admin/users', { email, email_confirm: true, user_metadata }, service.admin)
    const { body } = await service.post('/admin/generate_link', { type: 'magiclink', email }, service.admin)
    const javaScriptEnabled = how === 'with scripts'
    const tab = await (await browser.newContext({ javaScriptEnabled })).newPage()
    await tab.goto(auth + linkPath(body.action_link))
    if (javaScriptEnabled) {
      await signedIn(tab).toBe(email)
      expect(await tab.evaluate('history.length')).toBe(2)
      return
    }
    await expect.poll(() => tab.url()).toContain(`${siteUrl}#access_token=`)
  })

  test('a sign-in begun by an attacker signs no user in elsewhere, and ends in the attacker’s browser', async () => {
    const account = { sub: 'b-2', email: 'attacker@example.com', email_verified: true }
    provider.next(account, 'sesame')
    const attacker = await open()
    const asked = attacker.waitForRequest((request) => request.url().startsWith(`${provider.issuer}/auth?`))
    await toProvider(attacker)
    // All that is theirs is the address the provider sends them to.
    provider.next(account)
    const callback = (await provider.visit((await asked).url())).href

    const victim = await open()
    await victim.goto(callback)
    expect(new URL(victim.url()).searchParams.get('error_code')).toBe('bad_oauth_state')
    expect(await victim.textContent('#who')).toBe('nobody')
    await attacker.goto(callback)
    await signedIn(attacker).toBe('attacker@example.com')
    expect(await attacker.context().cookies(auth)).toEqual([])
  })

  test('two tabs sign in at once, each to its end', async () => {
    provider.next({ sub: 'b-3', email: 'tabs@example.com', email_verified: true }, 'sesame')
    const one = await open()
    const other = await one.context().newPage()
    for (const tab of [one, other]) await toProvider(tab)
    for (const tab of [one, other]) {
      await tab.getByRole('button', { name: 'Sign in' }).click()
      await signedIn(tab).toBe('tabs@example.com')
    }
  })

  test("an answer that the provider's page posts from its own site is as good, in the browser that began alone", async () => {
    far.showPage('apple', { id: 'b-4', email: 'posted@example.com' })
    const tab = await open()
    const asked = tab.waitForRequest((request) => request.url().startsWith(`${far.base('apple')}/auth/authorize`))
    await tab.getByRole('link', { name: 'Sign in with Apple' }).click()
    // The same page, with the same answer, in another browser.
    const victim = await open()
    await victim.goto((await asked).url())
    await victim.getByRole('button', { name: 'Go on' }).click()
    await victim.waitForURL(/error_code=bad_oauth_state/)
    await tab.getByRole('button', { name: 'Go on' }).click()
    await signedIn(tab).toBe('posted@example.com')
  })

  describe('where an account at a provider is linked', () => {
    const providersOf = async (userId: string) =>
      (await service.get(`/admin/users/${userId}`, service.admin)).body.app_metadata.providers

    async function askToLink(person: string) {
      const { auth: authorization, userId } = await service.signedIn()
      const { body } = await service.get(
        '/user/identities/authorize?provider=google&skip_http_redirect=true',
        authorization,
      )
      provider.next({ sub: person, email: `${person}@example.com`, email_verified: true }, 'sesame')
      return { userId, address: body.url as string }
    }
    const press = (tab: Page) => tab.getByRole('button', { name: 'Link my account' }).click()

    test.each([true, false])(
      'the button of the page links it, with scripts or without: %s',
      async (javaScriptEnabled) => {
        const { userId, address } = await askToLink(`b-linked-${javaScriptEnabled}`)
        const tab = await (await browser.newContext({ javaScriptEnabled })).newPage()
        // The page is opened from another site, as applications are.
        await tab.goto(siteUrl)
        await tab.goto(address, { referer: siteUrl })
        await press(tab)
        await tab.getByLabel('Password').fill('sesame')
        expect(await providersOf(userId)).toEqual(['email'])
        await tab.getByRole('button', { name: 'Sign in' }).click()
        await expect.poll(() => providersOf(userId)).toEqual(['email', 'google'])
      },
    )

    test('a reader who only sees the page gives nothing to its maker, who has pressed the button', async () => {
      const { userId, address } = await askToLink('b-reader')
      const maker = await open()
      await maker.goto(address)
      const asked = maker.waitForRequest((request) => request.url().startsWith(`${provider.issuer}/auth?`))
      await press(maker)
      const victim = await open()
      await victim.goto(address)
      await victim.goto((await asked).url())
      await victim.getByLabel('Password').fill('sesame')
      await victim.getByRole('button', { name: 'Sign in' }).click()
      await victim.waitForURL(/error_code=bad_oauth_state/)
      expect(await providersOf(userId)).toEqual(['email'])
    })
  })
})
