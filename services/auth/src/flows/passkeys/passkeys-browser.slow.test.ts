// Passkeys in a real browser with its virtual authenticator, by the public client in the page.
import { type Browser, launchBrowser, type Page } from '@services/common/testing/http/browser'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type AuthJsSite, startAuthJsSite } from '../../../test/auth-js/site.ts'
import { startTestService, type TestService } from '../../../test/service.ts'
import { PASSKEYS } from '../../../test/webauthn/passkeys.ts'

const password = 'correct horse'

/** Puts a client at `window.auth`, whose calls the tests make. */
const script = (service: () => string) => () =>
  `
  import { AuthClient } from '@supabase/auth-js'
  window.auth = new AuthClient({ url: '${service()}', autoRefreshToken: false })
  await auth.initialize()
  document.title = 'ready'`

// biome-ignore lint/suspicious/noExplicitAny: answers are what the test says they are
type Returned = { data: any; error: { name: string; code?: string; status?: number; message: string } | null }

describe('in a browser', { tags: 'chromium' }, () => {
  let service: TestService
  let base: string
  let site: AuthJsSite
  let otherSite: AuthJsSite
  let browser: Browser
  let page: Page
  let plugIn: (transport: 'internal' | 'usb') => Promise<void>
  /** Whether a person presses what asks to be pressed. */
  let press: (isPressing: boolean) => Promise<void>

  beforeAll(async () => {
    ;[site, otherSite] = await Promise.all([startAuthJsSite(script(() => base)), startAuthJsSite(script(() => base))])
    ;[service, browser] = await Promise.all([
      startTestService({
        ...PASSKEYS,
        AUTH_SITE_URL: site.url,
        AUTH_WEBAUTHN_RP_ID: 'localhost',
        AUTH_WEBAUTHN_RP_ORIGINS: site.url,
        AUTH_MFA_WEB_AUTHN_ENROLL_ENABLED: 'true',
        AUTH_MFA_WEB_AUTHN_VERIFY_ENABLED: 'true',
      }),
      launchBrowser(),
    ])
    base = await service.app.listen({ port: 0, host: '127.0.0.1' })
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
    site?.close()
    otherSite?.close()
  })

  /** A browser of its own, with an empty authenticator like that of a phone. */
  beforeEach(async () => {
    const context = await browser.newContext()
    page = await context.newPage()
    const devTools = await context.newCDPSession(page)
    await devTools.send('WebAuthn.enable')
    let authenticatorId = ''
    plugIn = async (transport) => {
      if (authenticatorId) await devTools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId })
      const kind = { protocol: 'ctap2', transport, hasResidentKey: true } as const
      const options = { ...kind, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true }
      ;({ authenticatorId } = await devTools.send('WebAuthn.addVirtualAuthenticator', { options }))
    }
    press = async (enabled) => {
      await devTools.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled })
    }
    await plugIn('internal')
    await open(site)
    return () => context.close()
  })

  async function open({ url }: AuthJsSite) {
    await page.goto(`${url}/`)
    await page.waitForFunction("document.title === 'ready'")
  }

  /** Runs an expression in the page. Errors keep only the members that applications read. */
  const run = (call: string): Promise<Returned> =>
    page.evaluate(`(async () => {
      const { data, error } = await (${call})
      const { name, code, status, message } = error ?? {}
      return { data, error: error && { name, code, status, message } }
    })()`)

  async function done(call: string): Promise<Returned['data']> {
    const { data, error } = await run(call)
    if (error) throw new Error(`${call}: ${error.code} ${error.message}`)
    return data
  }

  async function signedIn(): Promise<string> {
    const email = `browser-${crypto.randomUUID()}@example.com`
    const { userId } = await service.signedIn(email, password)
    await done(`auth.signInWithPassword(${JSON.stringify({ email, password })})`)
    return userId
  }

  const signOut = () => run('auth.signOut().then(({ error }) => ({ data: null, error }))')
  const level = () => done('auth.mfa.getAuthenticatorAssuranceLevel()')

  test('a passkey is registered, signs in, is renamed and removed', async () => {
    const userId = await signedIn()
    const { id } = await done('auth.registerPasskey()')
    expect((await run('auth.registerPasskey()')).error).toMatchObject({
      name: 'InvalidStateError',
    })
    await signOut()
    const { user } = await done('auth.signInWithPasskey()')
    expect(user.id).toBe(userId)
    expect(await level()).toMatchObject({
      currentLevel: 'aal1',
      currentAuthenticationMethods: [{ method: 'passkey' }],
    })
    await done(`auth.passkey.update({ passkeyId: '${id}', friendlyName: 'My phone' })`)
    expect(await done('auth.passkey.list()')).toMatchObject([
      { id, friendly_name: 'My phone', last_used_at: expect.any(String) },
    ])
    expect((await run(`auth.passkey.delete({ passkeyId: '${id}' })`)).error).toBeNull()
    expect(await done('auth.passkey.list()')).toEqual([])
    await signOut()
    expect((await run('auth.signInWithPasskey()')).error).toMatchObject({
      status: 400,
      code: 'webauthn_verification_failed',
    })
  })

  test('the form of a page offers a passkey by autofill', async () => {
    const userId = await signedIn()
    await done('auth.registerPasskey()')
    await signOut()
    const { user } = await done("auth.signInWithPasskey({ options: { mediation: 'conditional' } })")
    expect(user.id).toBe(userId)
  })

  test('the same key holds a passkey and the second factor of its user', async () => {
    // The client asks only keys on a cable for a second factor.
    await plugIn('usb')
    await signedIn()
    await done('auth.registerPasskey()')
    const webauthn = `{ rpId: 'localhost', rpOrigins: [location.origin] }`
    await done(`auth.mfa.webauthn.register({ friendlyName: 'phone', webauthn: ${webauthn} })`)
    await signOut()
    await done('auth.signInWithPasskey()')
    expect(await level()).toMatchObject({ currentLevel: 'aal1', nextLevel: 'aal2' })
    const { webauthn: factors } = await done('auth.mfa.listFactors()')
    await done(`auth.mfa.webauthn.authenticate({ factorId: '${factors[0].id}', webauthn: ${webauthn} })`)
    expect(await level()).toMatchObject({
      currentLevel: 'aal2',
      currentAuthenticationMethods: [{ method: 'mfa/webauthn' }, { method: 'passkey' }],
    })
  })

  test('the device itself is a second factor where the page asks for it', async () => {
    await signedIn()
    const { recovery_codes: codes } = await done(`auth.mfa.webauthn.register({ friendlyName: 'device' }, {
      authenticatorSelection: { authenticatorAttachment: 'platform' }, hints: ['client-device'],
    })`)
    expect(codes).toHaveLength(10)
    expect(await level()).toMatchObject({ currentAuthenticationMethods: [{ method: 'mfa/webauthn' }, {}] })
  })

  test('a cancelled ceremony stores nothing, and the next one works', async () => {
    await signedIn()
    await press(false)
    const aborted = await run(`(() => {
      const controller = new AbortController()
      const call = auth.registerPasskey({ options: { signal: controller.signal } })
      setTimeout(() => controller.abort(), 500)
      return call
    })()`)
    expect(aborted.error).not.toBeNull()
    expect(await done('auth.passkey.list()')).toEqual([])
    await press(true)
    await done('auth.registerPasskey()')
    expect(await done('auth.passkey.list()')).toHaveLength(1)
  })

  test('a passkey that another origin of the domain asks for is refused', async () => {
    await signedIn()
    await done('auth.registerPasskey()')
    await open(otherSite)
    expect((await run('auth.signInWithPasskey()')).error).toMatchObject({
      status: 400,
      code: 'webauthn_verification_failed',
    })
    await open(site)
    expect((await run('auth.signInWithPasskey()')).error).toBeNull()
    await open(otherSite)
    await signedIn()
    expect((await run('auth.registerPasskey()')).error).toMatchObject({ code: 'webauthn_verification_failed' })
  })
})
