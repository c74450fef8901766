import { findFreePort } from '@services/common/dev/dev-ports'
import { accessibilityFaults, keyboardFaults } from '@services/common/testing/http/accessibility'
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { enrollTotp, type Totp, totpCode, verifyTotp } from '../../../../test/second-factors.ts'
import { type SignedIn, startTestService, type TestService } from '../../../../test/service.ts'
import { register } from '../../../../test/webauthn/passkeys.ts'
import { createSecurityKey } from '../../../../test/webauthn/security-key.ts'
import { accountPages } from './account-pages.ts'

const EVIL = '<img src=x onerror="document.title=1">'
const PASSWORD = 'correct horse'

describe('the pages of the account', { tags: 'chromium' }, () => {
  let browser: Browser
  let service: TestService
  let url: string
  let count = 0

  beforeAll(async () => {
    const port = await findFreePort()
    url = `http://localhost:${port}`
    // Browsers take this machine for as safe as TLS: the cookies are those of production, `__Host-` and Secure.
    const external = url.replace('http:', 'https:')
    service = await startTestService({
      AUTH_API_EXTERNAL_URL: external,
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_OAUTH_SERVER_ENABLED: 'true',
      AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '',
      AUTH_SELF_DELETION_ENABLED: 'true',
      AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
      AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
      AUTH_PASSKEY_ENABLED: 'true',
      AUTH_WEBAUTHN_RP_ID: 'localhost',
      AUTH_WEBAUTHN_RP_DISPLAY_NAME: 'Site',
      AUTH_WEBAUTHN_RP_ORIGINS: `${external},${url}`,
    })
    await service.app.listen({ port, host: '127.0.0.1' })
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  /** Signs a new person in by keys alone, in a browser of its own; `prepare` may give the person a second factor. */
  async function openAccount(
    options: Parameters<Browser['newContext']>[0] = {},
    prepare: (user: SignedIn, email: string) => Promise<Totp | undefined> = async () => undefined,
  ) {
    const email = `browser-${++count}@example.com`
    const user = await service.signedIn(email, PASSWORD)
    await service.put('/user', { data: { full_name: EVIL } }, user.auth)
    const totp = await prepare(user, email)
    service.clock.advance({ seconds: 30 })
    const page = await (await browser.newContext(options)).newPage()
    const complaints: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on('request', (request) => {
      const isOwn = request.url().startsWith('data:') || new URL(request.url()).origin === url
      if (!isOwn) complaints.push(`request to ${request.url()}`)
    })
    await page.goto(`${url}/ui/account`)
    for (const [label, text] of [
      ['Email address', email],
      ['Password', PASSWORD],
      ...(totp ? [['Code', totpCode(totp.secret, service.clock.now())] as const] : []),
    ] as const) {
      // The focus of the page itself comes a moment after its fields.
      await page.getByLabel(label).and(page.locator(':focus')).waitFor()
      await page.keyboard.type(text)
      await page.keyboard.press('Enter')
    }
    await heading(page, 'Your account')
    return { ...user, email, page, complaints }
  }

  const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()

  const press = async (page: Page, role: 'link' | 'button', name: string) => {
    await page.getByRole(role, { name, exact: true }).first().focus()
    await page.keyboard.press('Enter')
  }

  /** Gives the user a row in every list, each with a hostile name. */
  async function fillLists(user: SignedIn, email: string): Promise<Totp> {
    const { auth, userId } = user
    const { db, newId, now } = service.deps
    const totp = await enrollTotp(service, user, EVIL)
    await verifyTotp(service, user, totp)
    const { body: passkey } = await register(service, user, createSecurityKey(), { rpId: 'localhost', origin: url })
    const renamed = { method: 'PATCH', url: `/passkeys/${passkey.id}`, payload: { friendly_name: EVIL } } as const
    expect(await service.app.inject({ ...renamed, headers: auth })).toMatchObject({ statusCode: 200 })
    expect(await service.post('/factors/trusted-devices', { name: EVIL }, auth)).toMatchObject({ status: 200 })
    // A session without the second factor would end with the sign-in that proves it.
    await db.updateTable('sessions').set({ user_agent: EVIL }).where('user_id', '=', userId).execute()
    expect(await service.put('/user', { email: `new-${email}` }, auth)).toMatchObject({ status: 200 })
    const account = { provider: 'google', provider_id: `${EVIL}${userId}`, identity_data: {} }
    const row = { id: newId(), user_id: userId, ...account, created_at: now(), updated_at: now() }
    await db.insertInto('identities').values(row).execute()
    return totp
  }

  /** Parts of the account whose pages show a name that the user or another party has given. */
  const NAMED = ['/name', '/passkeys', '/factors', '/sessions', '/devices', '/identities']

  test.each(['light', 'dark'] as const)(
    'read well for everyone, by keys and from 320 px on, with hostile names, and ask no other host (%s)',
    async (colorScheme) => {
      const { page, complaints } = await openAccount({ colorScheme }, fillLists)
      for (const { path } of accountPages) {
        await page.setViewportSize({ width: 1280, height: 800 })
        await page.goto(`${url}${path}`)
        expect(new URL(page.url()).pathname).toBe(path)
        if (colorScheme === 'light') {
          expect([path, await accessibilityFaults(page)]).toEqual([path, []])
          expect([path, await keyboardFaults(page)]).toEqual([path, []])
        }
        await page.setViewportSize({ width: 320, height: 640 })
        expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 320])
        expect([path, 320, await accessibilityFaults(page)]).toEqual([path, 320, []])
        if (NAMED.some((part) => path.endsWith(part))) expect(await page.content()).toContain('img src=x')
        expect(await page.locator('img[src=x]').count()).toBe(0)
        expect(await page.title()).not.toBe('1')
      }
      expect(complaints).toEqual([])
    },
  )

  test('are used by keys alone, without a script', async () => {
    const { page, auth, complaints } = await openAccount({ javaScriptEnabled: false })
    expect(await page.getByText(EVIL).count()).toBe(1)
    await press(page, 'link', 'Name')
    await page.getByLabel('Name').fill('Ada')
    await page.keyboard.press('Enter')
    await page.getByRole('status').getByText('Saved.').waitFor()
    expect((await service.get('/user', auth)).body.user_metadata).toMatchObject({ full_name: 'Ada' })
    await press(page, 'link', 'Back to your account')
    await press(page, 'link', 'Second factor')
    await press(page, 'button', 'Add an authenticator app')
    await page.getByRole('img', { name: 'QR code with the secret below' }).waitFor()
    expect(await page.evaluate('document.querySelector("main img").naturalWidth')).toBeGreaterThan(100)
    await page.goto(`${url}/ui/account/passkeys`)
    await press(page, 'button', 'Add a passkey')
    await page.getByText('Passkeys need JavaScript').waitFor()
    await page.goto(`${url}/ui/account/export`)
    const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'button', 'Download')])
    expect(download.suggestedFilename()).toBe('account.json')
    await page.goto(`${url}/ui/account/notices`)
    await page.getByRole('combobox', { name: 'Language' }).focus()
    await page.keyboard.type('Deutsch')
    await press(page, 'button', 'Save')
    await page.getByRole('status').getByText('Gespeichert.').waitFor()
    expect(await page.getByLabel('Sprache').inputValue()).toBe('de')
    expect(complaints).toEqual([])
  })

  test('add a passkey of the device, and leave it at that when the dialog is closed', async () => {
    const { page, auth } = await openAccount()
    const client = await page.context().newCDPSession(page)
    await client.send('WebAuthn.enable')
    const kind = { protocol: 'ctap2', transport: 'internal' } as const
    const options = { ...kind, hasResidentKey: true, hasUserVerification: true, isUserVerified: true }
    await page.goto(`${url}/ui/account/passkeys`)
    const { authenticatorId } = await client.send('WebAuthn.addVirtualAuthenticator', { options })
    await press(page, 'button', 'Add a passkey')
    await press(page, 'button', 'Create the passkey')
    await page.getByRole('status').getByText('The passkey is added.').waitFor()
    expect((await service.get('/passkeys', auth)).body).toHaveLength(1)
    expect(await accessibilityFaults(page)).toEqual([])
    // The device has one now, and refuses another.
    await press(page, 'button', 'Add a passkey')
    await press(page, 'button', 'Create the passkey')
    await page.getByRole('alert').getByText('No passkey was created.').waitFor()
    await client.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
    expect((await service.get('/passkeys', auth)).body).toHaveLength(1)
  })
})
