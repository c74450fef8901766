// All hosted pages in Chromium: by keyboard alone, on a narrow screen, light and dark, without scripts. They break no
// rule of axe-core and none of the policy. A new page is an entry of PAGES; those of the account: account/.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findFreePort } from '@services/common/dev/dev-ports'
import { accessibilityFaults, keyboardFaults } from '@services/common/testing/http/accessibility'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { createFarServer } from '@services/common/testing/http/far-server'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type SecondUser, totpCode, withTotp } from '../../../test/second-factors.ts'
import { codeIn, startTestService, type TestService } from '../../../test/service.ts'
import { beginDevice } from '../../core/oauth-server/devices/begin-device.ts'
import { begun, newVerifier, oauthSettings, registered } from '../oauth-server/testing/applications.ts'
import { accountPages } from './account/account-pages.ts'
import { allPages } from './all-pages.http.ts'

const PASSWORD = 'correct horse'
const ADA = 'ada@example.com'
const NARROW = { width: 320, height: 640 }

describe('in a browser', { tags: 'chromium' }, () => {
  let browser: Browser
  let service: TestService
  let application: Server
  let auth: string
  let target: string
  let second: SecondUser
  let clientId: string

  beforeAll(async () => {
    application = createFarServer((_request, response) => {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>Application</title><h1>Welcome</h1>')
    }).listen(0, '127.0.0.1')
    await once(application, 'listening')
    target = `http://127.0.0.1:${(application.address() as AddressInfo).port}/done`
    // Another site to a browser than the application. Browsers take this machine for as safe as TLS.
    auth = `http://localhost:${await findFreePort()}`
    service = await startTestService({
      ...(await oauthSettings()),
      AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '',
      AUTH_SITE_URL: target,
      AUTH_API_EXTERNAL_URL: auth.replace('http:', 'https:'),
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
      AUTH_PAGES_SUPPORT_URL: 'https://help.example/',
    })
    await service.signedIn(ADA, PASSWORD)
    second = await withTotp(service)
    const frames = { token_endpoint_auth_method: 'none', frontchannel_logout_uri: target.replace('/done', '/out') }
    clientId = (await registered(service, { redirect_uris: [target], client_name: 'Films', ...frames })).clientId
    await service.app.listen({ port: Number(new URL(auth).port), host: '127.0.0.1' })
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
    application?.close()
  })

  /** A new browser, and all that it complains of. */
  async function open(options: Parameters<Browser['newContext']>[0] = {}) {
    const context = await browser.newContext({ locale: 'en-GB', ...options })
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
    page.on('requestfailed', (request) => complaints.push(request.url()))
    page.on('request', (request) => {
      const { origin } = new URL(request.url())
      if (origin !== auth && origin !== new URL(target).origin) complaints.push(request.url())
    })
    return { page, complaints }
  }

  const start = (page: Page) => page.goto(`${auth}/ui/sign-in?${new URLSearchParams({ redirect_to: target })}`)
  const press = (page: Page, label: string) => page.getByRole('button', { name: label, exact: true }).click()

  async function toPassword(page: Page, email = ADA) {
    await start(page)
    await answerAddress(page, email)
  }

  async function answerAddress(page: Page, email: string) {
    await page.getByLabel('Email address').fill(email)
    await press(page, 'Continue')
    await page.getByLabel('Password').waitFor()
  }

  async function signIn(page: Page, email = ADA) {
    await start(page)
    await answerSignIn(page, email)
  }

  async function answerSignIn(page: Page, email = ADA) {
    await answerAddress(page, email)
    await page.getByLabel('Password').fill(PASSWORD)
    await press(page, 'Sign in')
  }

  let users = 0
  const freshEmail = () => `user-${users++}@example.com`

  /** Address of the link in the mail to a user, and its code. */
  async function mailTo(email: string) {
    const { text } = await service.mailbox.waitFor(email)
    const [, path = ''] = /https:\/\/localhost:\d+(\/ui\/confirm\S+)/.exec(text) ?? []
    return { link: auth + path, code: codeIn(text) }
  }

  async function signUp(page: Page, password = PASSWORD) {
    const email = freshEmail()
    await page.goto(`${auth}/ui/sign-up?${new URLSearchParams({ redirect_to: target })}`)
    await page.getByLabel('Email address').fill(email)
    await page.getByLabel('Password').fill(password)
    await press(page, 'Create account')
    return email
  }

  async function toNewPassword(page: Page) {
    const email = freshEmail()
    await service.signedIn(email, PASSWORD)
    await toPassword(page, email)
    await press(page, 'Forgot your password?')
    await press(page, 'Send the code')
    await page.getByLabel('Code').fill((await mailTo(email)).code)
    await press(page, 'Continue')
  }

  /** Comes to the page of an application's request, through the sign-in. */
  async function toConsent(page: Page, more: Record<string, string> = {}) {
    const id = await begun(service, clientId, { redirect_uri: target, prompt: 'consent', ...more })
    await page.goto(`${auth}/ui/consent?authorization_id=${id}`)
    await answerSignIn(page)
    await page.getByRole('heading', { name: 'Allow access?' }).waitFor()
  }

  /** Comes to the page of a device that waits, through the sign-in. */
  async function toDevice(page: Page) {
    const device = { scopes: ['email', 'offline_access'], resources: [] }
    const { user_code } = await beginDevice(service.deps, { id: clientId }, device, {
      ip: '192.0.2.1',
      userAgent: 'TV',
    })
    await page.goto(`${auth}/ui/device`)
    await answerSignIn(page)
    await page.getByLabel('Code').fill(user_code.toLowerCase())
    await press(page, 'Continue')
    await page.getByText(user_code).waitFor()
  }

  const arrived = (page: Page) => page.getByRole('heading', { name: 'Welcome' }).waitFor()

  /** Each page by its path and heading, and how a browser comes there. */
  const PAGES: [name: string, path: string, heading: string, open: (page: Page) => Promise<unknown>][] = [
    ['address', '/ui/sign-in', 'Sign in', start],
    [
      'refused address',
      '/ui/sign-in',
      'Sign in',
      async (page) => {
        await start(page)
        await page.getByLabel('Email address').fill('a@b c')
        await page.evaluate("document.querySelector('form').noValidate = true")
        await press(page, 'Continue')
        await page.getByText('Please enter an email address').waitFor()
      },
    ],
    ['password', '/ui/sign-in', 'Sign in', (page) => toPassword(page)],
    [
      'wrong password',
      '/ui/sign-in',
      'Sign in',
      async (page) => {
        await toPassword(page)
        await page.getByLabel('Password').fill('wrong')
        await press(page, 'Sign in')
        await page.getByRole('alert').waitFor()
      },
    ],
    [
      'code',
      '/ui/code',
      'Enter the code',
      async (page) => {
        await toPassword(page, 'nobody@example.com')
        await press(page, 'Send me a code instead')
      },
    ],
    ['second factor', '/ui/factor', 'Second factor', (page) => signIn(page, second.email)],
    [
      'recovery code',
      '/ui/factor',
      'Second factor',
      async (page) => {
        await signIn(page, second.email)
        await page.getByRole('link', { name: 'Use a recovery code' }).click()
        await page.getByLabel('Recovery code').waitFor()
      },
    ],
    [
      'signed in',
      '/ui/sign-in',
      'Sign in',
      async (page) => {
        await signIn(page)
        await arrived(page)
        await start(page)
      },
    ],
    [
      'sign out',
      '/ui/sign-out',
      'Sign out',
      async (page) => {
        await signIn(page)
        await arrived(page)
        await page.goto(`${auth}/ui/sign-out`)
      },
    ],
    ['sign-up', '/ui/sign-up', 'Create an account', (page) => page.goto(`${auth}/ui/sign-up`)],
    ['refused password', '/ui/sign-up', 'Create an account', (page) => signUp(page, '12345678')],
    ['recovery', '/ui/recover', 'Forgot your password?', (page) => page.goto(`${auth}/ui/recover`)],
    ['new password', '/ui/new-password', 'Choose a new password', toNewPassword],
    [
      'link of a mail',
      '/ui/confirm',
      'Confirm your email address',
      async (page) => {
        const email = await signUp(page)
        await page.getByLabel('Code').waitFor()
        await page.goto((await mailTo(email)).link)
      },
    ],
    ['consent', '/ui/consent', 'Allow access?', (page) => toConsent(page)],
    [
      'sign-out for an application',
      '/ui/logout',
      'Sign out',
      async (page) => {
        await signIn(page)
        await arrived(page)
        await page.goto(`${auth}/ui/logout?client_id=${clientId}`)
      },
    ],
    ['device', '/ui/device', 'Connect a device', toDevice],
    ['failure', '/ui/arrive', 'That did not work', (page) => page.goto(`${auth}/ui/arrive?code=x`)],
  ]

  /** Pages without a row here: one has tests of its own, the other leads away at once. */
  const OTHERS: Record<string, string> = {
    '/ui/passkey': 'passkey-browser.slow.test.ts',
    '/ui/provider': 'leads to the provider',
  }

  test('every page has a row below', () => {
    const rows = [...PAGES.map(([, path]) => path), ...Object.keys(OTHERS), ...accountPages.map(({ path }) => path)]
    expect(allPages.map(({ path }) => path).filter((path) => !rows.includes(path))).toEqual([])
  })

  test.for(PAGES)('the page “%s” fits 320 px, and is accessible by keys, in light and dark', async (row) => {
    const [, path, heading, come] = row
    const { page, complaints } = await open({ viewport: NARROW })
    await come(page)
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
    expect(new URL(page.url()).pathname).toBe(path)
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(NARROW.width)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect([colorScheme, await accessibilityFaults(page)]).toEqual([colorScheme, []])
    }
    expect(await keyboardFaults(page)).toEqual([])
    expect(complaints.filter((text) => !/status of 400/.test(text))).toEqual([])
  })

  test.each([true, false])('the keyboard alone leads to the application (scripts: %s)', async (javaScriptEnabled) => {
    const { page, complaints } = await open({ javaScriptEnabled })
    await start(page)
    await page.locator('input[name=address]:focus').waitFor()
    await page.keyboard.type(ADA)
    await page.keyboard.press('Enter')
    await page.locator('input[name=password]:focus').waitFor()
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press('Enter')
    await arrived(page)
    expect(new URL(page.url()).hash).toMatch(/access_token=.*refresh_token=/)
    // The page in between has replaced itself, and no form is sent again: going back shows the present state.
    await page.goBack()
    await page.getByText(`You are signed in as ${ADA}.`).waitFor()
    expect(complaints).toEqual([])
  })

  test.each([true, false])('an account is made by the keyboard alone (scripts: %s)', async (javaScriptEnabled) => {
    const { page, complaints } = await open({ javaScriptEnabled })
    const email = freshEmail()
    await page.goto(`${auth}/ui/sign-up?${new URLSearchParams({ redirect_to: target })}`)
    await page.locator('input[name=address]:focus').waitFor()
    await page.keyboard.type(email)
    await page.keyboard.press('Tab')
    await page.keyboard.type(PASSWORD)
    await page.keyboard.press('Enter')
    await page.locator('input[name=code]:focus').waitFor()
    await page.keyboard.type((await mailTo(email)).code)
    await page.keyboard.press('Enter')
    await arrived(page)
    expect(complaints).toEqual([])
  })

  test.each([true, false])(
    'a forgotten password is replaced by the mail of it (scripts: %s)',
    async (javaScriptEnabled) => {
      const { page, complaints } = await open({ javaScriptEnabled })
      await toNewPassword(page)
      await page.getByLabel('New password').fill('quite another horse')
      await press(page, 'Save the password')
      await arrived(page)
      expect(complaints).toEqual([])
    },
  )

  test('the link of a mail signs in another browser, by its button', async () => {
    const { link } = await mailTo(await signUp((await open()).page))
    const { page, complaints } = await open()
    await page.goto(link)
    await page.locator('button:enabled', { hasText: 'Confirm email address' }).click()
    await arrived(page)
    expect(complaints).toEqual([])
  })

  test('a second factor and the trust of the device need no scripts, and the browser is known afterwards', async () => {
    const { page, complaints } = await open({ javaScriptEnabled: false })
    await signIn(page, second.email)
    service.clock.advance({ seconds: 30 })
    await page.getByLabel('Code').fill(totpCode(second.totp.secret, service.clock.now()))
    await page.getByLabel('Do not ask again on this device').check()
    await press(page, 'Continue')
    await arrived(page)
    await page.goto(`${auth}/ui/sign-out`)
    await press(page, 'Sign out')
    await page.getByText('You are signed out.').waitFor()
    await signIn(page, second.email)
    await arrived(page)
    expect(complaints).toEqual([])
  })

  test('without scripts an answer leads to the application, a sign-out notifies it, and a device has its answer', async () => {
    const { page, complaints } = await open({ javaScriptEnabled: false })
    const { verifier, challenge } = newVerifier()
    await toConsent(page, { code_challenge: challenge })
    await press(page, 'Allow')
    await arrived(page)
    expect(page.url()).toMatch(/\/done\?code=[\w-]+&state=st&iss=https/)
    const code = new URL(page.url()).searchParams.get('code') ?? ''
    const form = { grant_type: 'authorization_code', client_id: clientId, code, code_verifier: verifier }
    expect((await service.submit('/oauth/token', form)).status).toBe(200)
    await page.goto(`${auth}/ui/sign-out`)
    const notified = page.waitForResponse((response) => response.url().includes('/out?iss=https'))
    await press(page, 'Sign out')
    expect((await notified).status()).toBe(200)
    await page.context().clearCookies()
    await toDevice(page)
    await press(page, 'Allow')
    await page.getByText('The device is connected.').waitFor()
    expect(complaints).toEqual([])
  })

  test('a double click on a form leads to the page of the present state', async () => {
    const { page } = await open()
    await toPassword(page)
    await page.getByRole('button', { name: 'Send me a code instead' }).dblclick()
    await page.getByRole('heading', { name: 'Enter the code' }).waitFor()
  })
})
