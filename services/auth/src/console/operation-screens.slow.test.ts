// Screens about the service itself in a real browser: providers and their test, webhooks, clients, hooks, mails,
// settings, keys.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OpenIdProvider, startOpenIdProvider } from '../../test/openid-provider.ts'
import { SECRET, type TestService } from '../../test/service.ts'
import { type ConsoleBrowser, type OpenConsole, startConsoleBrowser } from './testing/console-browser.ts'

const HOSTILE = '<img src=x onerror=alert(1)>'

describe('in a browser', { tags: 'chromium' }, () => {
  /** Stands in for the proxy that terminates TLS. */
  let front: Server
  let corp: OpenIdProvider
  let receiver: Receiver
  let browser: ConsoleBrowser
  let service: TestService
  let console_: OpenConsole
  beforeAll(async () => {
    front = createFarServer(({ url }, response) => {
      response.writeHead(302, { location: `${browser.url}${url}` }).end()
    }).listen(0, '127.0.0.1')
    await once(front, 'listening')
    const external = `http://localhost:${(front.address() as AddressInfo).port}`
    ;[corp, receiver, browser] = await Promise.all([
      startOpenIdProvider({}, `${external}/callback`),
      startReceiver(),
      startConsoleBrowser({
        ...{ AUTH_CUSTOM_OAUTH_EXTERNAL_URL: external, EGRESS_ALLOW_CIDRS: '127.0.0.0/8' },
        AUTH_OAUTH_SERVER_ENABLED: 'true',
      }),
    ])
    service = browser.service
    console_ = await browser.openConsole()
  })
  afterAll(async () => {
    await browser?.close()
    await corp?.close()
    receiver?.close()
    front?.close()
  })

  /** Presses a button as a keyboard does. */
  const press = (name: string) => console_.page.getByRole('button', { name, exact: true }).press('Enter')
  const fill = (label: string, text: string) => console_.page.getByLabel(label, { exact: true }).fill(text)
  const says = (text: string) => console_.page.getByText(text).first().waitFor()

  test('a provider is added, tested by a sign-in that creates no user, and deleted, by keys alone', async () => {
    const { page, open } = console_
    await open('/providers')
    await press('Add a provider')
    await press('Next')
    await fill('Name for your application', 'custom:corp')
    await fill('Name for people', HOSTILE)
    await fill('Issuer', corp.issuer)
    await fill('Client id', 'our-client')
    await fill('Client secret', 'a-secret-of-the-client')
    await press('Add')
    await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor()
    const { rows: before } = await service.deps.pool.query('select count(*) from users')
    corp.next({ sub: 'ada', email: 'ada@corp.example', email_verified: true, name: HOSTILE })
    await press('Test the sign-in')
    const opened = page.context().waitForEvent('page')
    await page.getByRole('link', { name: 'Open the sign-in in a new window' }).press('Enter')
    const other = await opened
    await other.getByRole('heading', { name: 'The test is complete' }).waitFor()
    await other.close()
    await says('ada@corp.example')
    const { rows: after } = await service.deps.pool.query('select count(*) from users')
    expect(after).toEqual(before)
    await press('Disable')
    await says('The provider must be enabled and complete first.')
    await press('Delete')
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Providers' }).waitFor()
    expect(await page.getByRole('row', { name: HOSTILE }).count()).toBe(0)
  })

  test('a webhook is added with a secret that is shown once, tested, paused, and its events sent again', async () => {
    const { page, open } = console_
    await open('/webhooks')
    await press('Add a webhook')
    await fill('Address', receiver.url)
    await fill('Description', HOSTILE)
    await press('Add')
    const secrets = page.getByRole('dialog', { name: 'Secret of the webhook' })
    const first = await secrets.locator('code').textContent()
    expect(first).toMatch(/^whsec_/)
    await press('I have stored it')
    await says(HOSTILE)
    await press('Send a test')
    await service.settled()
    await expect.poll(() => receiver.received.length).toBe(1)
    // The receiver has the event before the service has its answer, and the page does not load again by itself.
    const [, path] = /#(\/webhooks\/[\w-]+)/.exec(page.url()) ?? []
    const states = async () => (await service.get(`/admin${path}/deliveries`, service.admin)).body.deliveries
    await expect.poll(states).toMatchObject([{ state: 'delivered' }])
    await open('/webhooks')
    await page.getByRole('link', { name: receiver.url }).press('Enter')
    const delivered = page.getByRole('row', { name: /webhook\.test.*delivered/ })
    await delivered.waitFor()
    await delivered.getByRole('button', { name: 'Send again' }).press('Enter')
    await expect.poll(() => receiver.received.length).toBe(2)
    await press('Rotate the secret')
    await press('Rotate')
    expect(await secrets.locator('code').textContent()).not.toBe(first)
    await press('I have stored it')
    await page.locator('dialog').waitFor({ state: 'detached' })
    expect(await page.content()).not.toContain('whsec_')
    await press('Disable')
    await page.getByRole('button', { name: 'Enable', exact: true }).waitFor()
  })

  test('a client gets a scope that was added, and a secret that is shown once and ends the earlier one', async () => {
    const { page, open } = console_
    const dialog = page.getByRole('dialog')
    await open('/scopes')
    await press('Add a scope')
    await fill('Name', 'reports:read')
    await fill('Description', HOSTILE)
    await press('Add')
    await page.getByRole('row', { name: HOSTILE }).waitFor()
    await page.getByRole('link', { name: 'Clients', exact: true }).press('Enter')
    await press('Add a client')
    await press('Next')
    await fill('Name', HOSTILE)
    await fill('Addresses after a sign-in', 'https://app.example/callback\n\n myapp://callback ')
    await press('Add')
    const secrets = page.getByRole('dialog', { name: 'Secret of the client' })
    const first = await secrets.locator('code').textContent()
    await press('I have stored it')
    await page.getByRole('heading', { level: 1, name: HOSTILE }).waitFor()
    await press('Change the rights')
    await dialog.getByLabel('Sign-in by a device code').press('Space')
    await fill('Scopes at most', 'openid reports:read')
    await press('Save')
    await says('openid reports:read')
    await press('Rotate the secret')
    await says('The present secret ends at once')
    await press('Rotate')
    expect(await secrets.locator('code').textContent()).not.toBe(first)
    await press('I have stored it')
    await page.locator('dialog').waitFor({ state: 'detached' })
    expect(await page.content()).not.toContain(first)
    const [, path] = /#\/(clients\/[\w-]+)/.exec(page.url()) ?? []
    expect((await service.get(`/admin/oauth/${path}`, service.admin)).body).toMatchObject({
      client_type: 'confidential',
      redirect_uris: ['https://app.example/callback', 'myapp://callback'],
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      scope: 'openid reports:read',
    })
    await press('Delete')
    await dialog.getByRole('button', { name: 'Delete' }).press('Enter')
    await says('There are no clients yet.')
  })

  test('a mail is shown in each language, and a sample comes to the administrator', async () => {
    const { page, open } = console_
    await open('/mail-templates')
    await page.getByRole('link', { name: 'invite', exact: true }).press('Enter')
    await says("You've been invited")
    await page.getByRole('link', { name: 'de', exact: true }).press('Enter')
    await says('Du bist eingeladen')
    await press('Send to myself')
    await says('Sample queued to your own address')
    expect((await service.mailbox.waitFor(console_.admin.email)).subject).toBe('Du bist eingeladen')
    // A stranger's link reaches no endpoint beside those of its screen.
    await open('/mail-templates/..%2Fusers', 'Not found')
  })

  test('settings, keys and hooks show their state and no secret', async () => {
    const { page, open } = console_
    await open('/settings?name=JWT_SECRET')
    await page.getByRole('row', { name: /AUTH_JWT_SECRET.*secret, set/ }).waitFor()
    expect(await page.content()).not.toContain(SECRET)
    await open('/settings?name=EGRESS_ALLOW')
    await page.getByRole('row', { name: /AUTH_EGRESS_ALLOW_CIDRS.*environment as EGRESS_ALLOW_CIDRS/ }).waitFor()
    await open('/keys')
    await page.getByRole('row', { name: /AUTH_JWT_SECRET HS256 signs/ }).waitFor()
    service.deps.hookFailures.record('send-email', { questionId: 'q', result: 'hook_timeout', reason: HOSTILE })
    await service.deps.hookFailures.written()
    await open('/hooks')
    await page.getByRole('row', { name: HOSTILE }).waitFor()
  })

  test('nothing went wrong in the browser, and no other host was asked', () => {
    expect(console_.complaints).toEqual([])
  })
})
