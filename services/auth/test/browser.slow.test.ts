import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findFreePort } from '@services/common/dev/dev-ports'
import { type Browser, launchBrowser } from '@services/common/testing/browser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OpenIdProvider, startOpenIdProvider } from './openid-provider.ts'
import { startTestService, type TestService } from './service.ts'

/** A site as simple as can be: a link to sign in by, and who is signed in once the browser is back. */
const page = (auth: string) => `<!doctype html><title>Site</title>
<a href="${auth}/authorize?provider=google&redirect_to=${encodeURIComponent('/')}">Sign in</a><p id="who">nobody</p>
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

  beforeAll(async () => {
    const auth = `http://127.0.0.1:${await findFreePort()}`
    site = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html').end(page(auth))
    }).listen(0, '127.0.0.1')
    await once(site, 'listening')
    siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`
    provider = await startOpenIdProvider({}, `${auth}/callback`)
    service = await startTestService({
      ...provider.settings('GOOGLE'),
      AUTH_SITE_URL: siteUrl,
      AUTH_API_EXTERNAL_URL: auth,
    })
    await service.app.listen({ port: Number(new URL(auth).port), host: '127.0.0.1' })
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
    await provider?.close()
    site?.close()
  })

  test('somebody signs in: from the site to the login page of the provider and back with a session', async () => {
    provider.next({ sub: 'b-1', email: 'browser@example.com', email_verified: true }, 'sesame')
    const tab = await (await browser.newContext()).newPage()
    await tab.goto(siteUrl)
    await tab.getByRole('link', { name: 'Sign in' }).click()
    await tab.getByLabel('Password').fill('wrong')
    await tab.getByRole('button', { name: 'Sign in' }).click()
    await tab.getByLabel('Password').fill('sesame')
    await tab.getByRole('button', { name: 'Sign in' }).click()
    await expect.poll(() => tab.textContent('#who')).toBe('browser@example.com')
    expect(tab.url()).toBe(siteUrl)
  })
})
