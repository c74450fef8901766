// Every screen and dialog of the console, by walks over the list of screens: a screen without an address here fails.
import { accessibilityFaults, keyboardFaults } from '@services/common/testing/http/accessibility'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { enrollTotp, verifyTotp } from '../../test/second-factors.ts'
import { approved, CALLBACK } from '../flows/oauth-server/testing/applications.ts'
import { type ConsoleBrowser, type OpenConsole, startConsoleBrowser } from './testing/console-browser.ts'

const EVIL = '<img src=x onerror="document.title=1">'
const PASSWORD = 'correct horse'

/** Screens that need no rows. */
const SCREENS = [
  { hash: '/users', heading: 'Users' },
  { hash: '/messages', heading: 'Messages' },
  { hash: '/audit', heading: 'Audit' },
  { hash: '/overview', heading: 'Overview' },
  { hash: '/providers', heading: 'Providers' },
  { hash: '/providers/github', heading: 'github' },
  { hash: '/clients', heading: 'Clients' },
  { hash: '/scopes', heading: 'Scopes' },
  { hash: '/webhooks', heading: 'Webhooks' },
  { hash: '/hooks', heading: 'Hooks' },
  { hash: '/mail-templates', heading: 'Mail templates' },
  { hash: '/mail-templates/invite?language=de', heading: 'Mail: invite' },
  { hash: '/settings?name=jwt', heading: 'Settings' },
  { hash: '/keys', heading: 'Keys' },
  { hash: '/nowhere', heading: 'Not found' },
]

describe('the console', { tags: 'chromium' }, () => {
  let console_: ConsoleBrowser
  beforeAll(async () => {
    console_ = await startConsoleBrowser({ AUTH_OAUTH_SERVER_ENABLED: 'true' })
  })
  afterAll(() => console_?.close())

  /** Makes a user, a provider, a webhook, a client and a scope with hostile texts; returns their screens. */
  async function hostileScreens(suffix: string) {
    const { service } = console_
    const email = `evil-${suffix}@example.com`
    const user = await service.signedIn(email, PASSWORD)
    await service.put('/user', { data: { full_name: EVIL } }, user.auth)
    await verifyTotp(service, user, await enrollTotp(service, user, EVIL))
    expect(await service.post('/factors/trusted-devices', { name: EVIL }, user.auth)).toMatchObject({ status: 200 })
    await service.get('/reauthenticate', user.auth)
    await service.post('/token?grant_type=password', { email, password: PASSWORD }, { 'user-agent': EVIL })
    const identifier = `custom:${suffix}`
    const [authorization_url, token_url, userinfo_url] = ['a', 't', 'u'].map((path) => `https://8.8.8.8/${path}`)
    const provider = {
      ...{ identifier, name: EVIL, provider_type: 'oauth2', client_id: EVIL, client_secret: 'a-secret-of-the-client' },
      ...{ authorization_url, token_url, userinfo_url },
    }
    expect(await service.post('/admin/custom-providers', provider, service.admin)).toMatchObject({ status: 201 })
    const receiver = { url: 'https://8.8.8.8/events', description: EVIL, events: ['user.created'], enabled: false }
    const webhook = await service.post('/admin/webhooks', receiver, service.admin)
    expect(webhook.status).toBe(201)
    const scope = { name: `evil:${suffix}`, description: EVIL }
    expect(await service.post('/admin/oauth/scopes', scope, service.admin)).toMatchObject({ status: 201 })
    const redirect_uris = [CALLBACK, `https://app.example/${'long'.repeat(30)}`]
    const registered = { client_name: EVIL, redirect_uris, contacts: [EVIL] }
    const client = await service.post('/admin/oauth/clients', registered, service.admin)
    expect(client.status).toBe(201)
    await approved(service, client.body.client_id, user.auth)
    return [
      { hash: `/users/${user.userId}`, heading: email },
      { hash: `/providers/${identifier}`, heading: EVIL },
      { hash: `/webhooks/${webhook.body.id}`, heading: 'Webhook' },
      { hash: `/clients/${client.body.client_id}`, heading: EVIL },
    ]
  }

  /** Lists the screens that the browser has loaded, and that no address opens. */
  async function screensWithout(page: OpenConsole['page'], hashes: readonly string[]): Promise<string[]> {
    const all = await page.evaluate<string[]>(`(async () => {
      const { name } = performance.getEntriesByType('resource').find(({ name }) => /\\/screens\\.js/.test(name))
      return (await import(name)).screens.map(({ path }) => path)
    })()`)
    expect(all.length).toBeGreaterThan(10)
    return all.filter((path) => {
      const shape = new RegExp(`^${path.replaceAll(/:\w+/g, '[^/?]+')}(\\?|$)`)
      return !hashes.some((hash) => shape.test(hash))
    })
  }

  test.each(['light', 'dark'] as const)(
    'reads well for everyone, by keys and from 320 px on, and asks no other host (%s)',
    async (colorScheme) => {
      const all = [...SCREENS, ...(await hostileScreens(colorScheme))]
      const { page, open, complaints } = await console_.openConsole({ colorScheme })
      for (const { hash, heading } of all) {
        await page.setViewportSize({ width: 1280, height: 800 })
        await open(hash, heading)
        if (colorScheme === 'light') {
          expect([hash, await accessibilityFaults(page)]).toEqual([hash, []])
          expect([hash, await keyboardFaults(page)]).toEqual([hash, []])
        }
        await page.setViewportSize({ width: 320, height: 640 })
        expect([hash, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([hash, 320])
        expect([hash, 320, await accessibilityFaults(page)]).toEqual([hash, 320, []])
        expect(await page.title()).toBe(`${heading} – Console`)
        expect([hash, await page.locator('img').count()]).toEqual([hash, 0])
      }
      const hashes = all.map(({ hash }) => hash)
      expect(await screensWithout(page, hashes)).toEqual([])
      const odd = { email: `odd-${colorScheme}@example.com`, user_metadata: { full_name: { nodeType: 1 } } }
      const { body } = await console_.service.post('/admin/users', odd, console_.service.admin)
      await open('/users?filter=odd-')
      await page.getByText('{"nodeType":1}').first().waitFor()
      await open(`/users/${body.id}`, odd.email)
      await open('/users?filter=onerror')
      expect(await page.getByRole('cell', { name: EVIL }).count()).toBeGreaterThan(0)
      expect(complaints).toEqual([])
    },
  )

  test('each dialog fits 320 px, is used by keys in both colors, and gives the focus back', async () => {
    const [user, provider, webhook, client] = (await hostileScreens('dialogs')).map(({ hash }) => hash)
    const { page, open, complaints } = await console_.openConsole({ viewport: { width: 320, height: 640 } })
    for (const [hash = '', ...buttons] of [
      ['/users', 'Invite', 'Create user'],
      [user, 'Change', 'Ban', 'Delete', 'Edit', 'End', 'Remove', 'Sign out everywhere'],
      ['/providers', 'Add a provider'],
      [provider, 'Change', 'Delete'],
      ['/webhooks', 'Add a webhook'],
      [webhook, 'Change', 'Rotate the secret', 'Delete'],
      ['/clients', 'Add a client'],
      [client, 'Change the proofs', 'Rotate the secret'],
      ['/scopes', 'Change'],
      ['/audit', 'Details'],
    ]) {
      await open(hash)
      for (const name of buttons) {
        const opener = page.getByRole('main').getByRole('button', { name, exact: true }).first()
        await opener.press('Enter')
        const dialog = page.getByRole('dialog')
        await dialog.waitFor()
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          expect([name, colorScheme, await accessibilityFaults(page)]).toEqual([name, colorScheme, []])
        }
        expect([name, await keyboardFaults(page)]).toEqual([name, []])
        const excess = await dialog.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)
        expect([name, excess, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([name, 0, 320])
        await page.keyboard.press('Escape')
        await dialog.waitFor({ state: 'detached' })
        expect([name, await opener.evaluate((each) => each === each.ownerDocument.activeElement)]).toEqual([name, true])
      }
    }
    expect(complaints).toEqual([])
  })
})
