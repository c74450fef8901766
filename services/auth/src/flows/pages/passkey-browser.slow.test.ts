// Passkeys on the hosted pages, with the virtual authenticator of Chromium.
import { findFreePort } from '@services/common/dev/dev-ports'
import { accessibilityFaults } from '@services/common/testing/http/accessibility'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type SignedIn, startTestService, type TestService } from '../../../test/service.ts'

const PASSWORD = 'correct horse'
const WELCOME = '<!doctype html><title>Application</title><h1>Welcome</h1>'
const NARROW = { width: 320, height: 640 }

describe('in a browser', { tags: 'chromium' }, () => {
  let browser: Browser
  let service: TestService
  let auth: string

  beforeAll(async () => {
    auth = `http://localhost:${await findFreePort()}`
    const settings = {
      ...{ AUTH_API_EXTERNAL_URL: auth, AUTH_SITE_URL: `${auth}/welcome`, AUTH_HOSTED_PAGES_ENABLED: 'true' },
      ...{ AUTH_PASSKEY_ENABLED: 'true', AUTH_WEBAUTHN_RP_DISPLAY_NAME: 'Site' },
      ...{ AUTH_WEBAUTHN_RP_ID: 'localhost', AUTH_WEBAUTHN_RP_ORIGINS: auth },
      ...{ AUTH_MFA_WEB_AUTHN_ENROLL_ENABLED: 'true', AUTH_MFA_WEB_AUTHN_VERIFY_ENABLED: 'true' },
    }
    ;[service, browser] = await Promise.all([startTestService(settings), launchBrowser()])
    await service.app.listen({ port: Number(new URL(auth).port), host: '127.0.0.1' })
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  /** A new browser with an empty authenticator; `press` says whether its user presses what asks to be pressed. */
  async function open(options: Parameters<Browser['newContext']>[0] = {}) {
    const context = await browser.newContext({ locale: 'en-GB', viewport: NARROW, ...options })
    onTestFinished(() => context.close())
    const page = await context.newPage()
    await page.route('**/welcome', (route) => route.fulfill({ contentType: 'text/html', body: WELCOME }))
    const devTools = await context.newCDPSession(page)
    await devTools.send('WebAuthn.enable')
    const kind = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true } as const
    const { authenticatorId } = await devTools.send('WebAuthn.addVirtualAuthenticator', {
      options: { ...kind, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
    })
    const verify = (isUserVerified: boolean) =>
      devTools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified })
    return { page, verify }
  }

  const press = (page: Page, label: string) => page.getByRole('button', { name: label, exact: true }).click()
  const arrived = (page: Page) => page.getByRole('heading', { name: 'Welcome' }).waitFor()
  const offered = (page: Page) => page.getByRole('heading', { name: 'Sign in without a password?' }).waitFor()

  let users = 0
  async function signIn(page: Page, email = `passkey-${users++}@example.com`) {
    await service.signedIn(email, PASSWORD)
    await page.goto(`${auth}/ui/sign-in`)
    await page.getByLabel('Email address').fill(email)
    await press(page, 'Continue')
    await page.getByLabel('Password').fill(PASSWORD)
    await press(page, 'Sign in')
    return email
  }

  async function signOut(page: Page) {
    await page.goto(`${auth}/ui/sign-out`)
    await press(page, 'Sign out')
    await page.getByText('You are signed out.').waitFor()
  }

  test('a passkey is offered after a sign-in, is added, and signs in by the keyboard', async () => {
    const { page } = await open()
    const email = await signIn(page)
    await offered(page)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect([colorScheme, await accessibilityFaults(page)]).toEqual([colorScheme, []])
    }
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(NARROW.width)
    await press(page, 'Add a passkey')
    await arrived(page)
    await signOut(page)
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Sign in with a passkey' }).focus()
    await page.keyboard.press('Enter')
    await arrived(page)
    await page.goto(`${auth}/ui/sign-in`)
    await page.getByText(`You are signed in as ${email}.`).waitFor()
  })

  test('a refused ceremony changes nothing, says so, and works again', async () => {
    const { page, verify } = await open()
    await signIn(page)
    await offered(page)
    await verify(false)
    await press(page, 'Add a passkey')
    await page.getByRole('alert').getByText('That was cancelled').waitFor()
    await verify(true)
    await press(page, 'Add a passkey')
    await arrived(page)
  })

  test('the offer can be declined, comes once in a browser, and needs no script', async () => {
    const { page } = await open({ javaScriptEnabled: false })
    const email = await signIn(page)
    await offered(page)
    expect(await page.getByRole('button').allInnerTexts()).toEqual(['Not now'])
    await press(page, 'Not now')
    await arrived(page)
    await signOut(page)
    expect(await page.getByRole('button').allInnerTexts()).toEqual(['Continue'])
    await signIn(page, email)
    await arrived(page)
  })

  /** Adds the key of the page's browser to a user, as an application on this origin does. */
  async function addKey(page: Page, { auth: token }: SignedIn) {
    const { body: factor } = await service.post('/factors', { factor_type: 'webauthn' }, token)
    const { body: opened } = await service.post(`/factors/${factor.id}/challenge`, {}, token)
    const options = JSON.stringify(opened.webauthn.credential_options.publicKey)
    await page.goto(`${auth}/ui/sign-in`)
    const credential_response = await page.evaluate(`(async () => {
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(${options})
      return (await navigator.credentials.create({ publicKey })).toJSON()
    })()`)
    const given = { challenge_id: opened.id, webauthn: { type: 'create', credential_response } }
    expect(await service.post(`/factors/${factor.id}/verify`, given, token)).toMatchObject({ status: 200 })
  }

  test('a security key proves the second factor; without a script the page says what it needs', async () => {
    const [{ page }, { page: plain }] = await Promise.all([open(), open({ javaScriptEnabled: false })])
    const email = `passkey-${users++}@example.com`
    await addKey(page, await service.signedIn(email, PASSWORD))
    for (const each of [plain, page]) {
      await signIn(each, email)
      await each.getByRole('heading', { name: 'Second factor' }).waitFor()
    }
    const needs = 'A security key needs a browser that supports it and runs scripts.'
    expect(await plain.getByText(needs).isVisible()).toBe(true)
    expect(await plain.getByRole('button').allInnerTexts()).toEqual([])
    const use = page.getByRole('button', { name: 'Use the security key' })
    await use.waitFor()
    expect(await page.getByText(needs).count()).toBe(0)
    expect(await accessibilityFaults(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(NARROW.width)
    await use.focus()
    await page.keyboard.press('Enter')
    await offered(page)
  })
})
