import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { findFreePort } from '../packages/common/src/dev/dev-ports.ts'
import { type Browser, launchBrowser, type Page } from '../packages/common/src/testing/http/browser.ts'
import { linkOfMail } from './testing/confirm-by-mail.ts'
import { blocksOf, openGuide, readGuide } from './testing/guide.ts'
import { adminBy, type PublishedKey, signJwt } from './testing/jwt.ts'
import { openShell, type Shell } from './testing/shell.ts'

const GUIDE = 'connect-a-web-application.md'
const EXAMPLE = join(import.meta.dirname, 'example')
const PATIENCE = { timeout: 60_000 }
const PASSWORD = 'correct horse'

const { authUrl, inboxUrl, settings } = inject('devServices')
const guide = openGuide(GUIDE)
let shell: Shell
let site: string

beforeAll(async () => {
  // These tests use other ports; the guide names the variables for that case.
  const port = String(await findFreePort())
  shell = await openShell({ AUTH_URL: authUrl, INBOX_URL: inboxUrl, PORT: port })
  site = await shell.start(guide.take('pnpm@12 example')).says(/Open (http:\S+) in a browser/)
})
afterAll(() => shell.close())

describe('in a browser', { tags: 'chromium' }, () => {
  let browser: Browser

  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())

  /** Opens a browser without a history, as narrow as a small phone, and collects its errors. */
  async function openPage() {
    const context = await browser.newContext({ viewport: { width: 320, height: 640 } })
    onTestFinished(() => context.close())
    context.setDefaultTimeout(PATIENCE.timeout)
    const complaints: string[] = []
    context.on('console', (message) => {
      if (message.type() !== 'log') complaints.push(message.text())
    })
    context.on('weberror', (error) => complaints.push(error.error().message))
    context.on('response', (answer) => {
      if (answer.status() >= 400) complaints.push(`${answer.status()} ${answer.url()}`)
    })
    const page = await context.newPage()
    await page.goto(site)
    return { page, complaints }
  }

  async function submit(page: Page, button: 'Sign in' | 'Create an account', email: string, password = PASSWORD) {
    await page.getByLabel('E-mail address').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: button }).click()
  }

  const signedInAs = (page: Page, email: string) =>
    page.getByRole('heading', { name: `Signed in as ${email}` }).waitFor()

  const isTooWide = (page: Page) => page.evaluate('document.documentElement.scrollWidth > innerWidth')

  test('a user signs up, follows the link of the mail, is signed in, calls the server, signs out and in again', async () => {
    const { page, complaints } = await openPage()
    const email = 'barbara@example.com'
    await submit(page, 'Create an account', email)
    await page.getByRole('heading', { name: 'Look in your inbox' }).waitFor()
    expect(await page.locator('#mail-sent').textContent()).toContain(email)
    expect(await page.getByRole('link', { name: 'the inbox of dev' }).getAttribute('href')).toBe(inboxUrl)
    expect(await isTooWide(page)).toBe(false)

    await page.goto(await linkOfMail(email))
    await signedInAs(page, email)
    // Neither the history nor a copied address holds the code.
    expect(page.url()).toBe(`${site}/`)

    const answer = page.waitForResponse(`${site}/api/me`)
    await page.getByRole('button', { name: 'Call the server' }).click()
    const { authorization } = (await answer).request().headers()
    const known = await (await answer).json()
    expect(known).toMatchObject({ email, role: 'authenticated', secondFactor: false })
    await page.getByText(known.id).waitFor()
    expect(await isTooWide(page)).toBe(false)

    await page.reload()
    await signedInAs(page, email)
    const logout = page.waitForResponse(`${authUrl}/logout?scope=local`)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    expect(await page.evaluate('localStorage.length')).toBe(0)
    expect(await page.locator('body').textContent()).not.toContain(known.id)
    expect((await fetch(`${site}/api/me`)).status).toBe(401)
    // The session has ended at auth too, so a server that keeps the token can notice.
    expect((await logout).status()).toBe(204)
    const sessions = await fetch(`${authUrl}/user/sessions`, { headers: { authorization: String(authorization) } })
    expect([sessions.status, await sessions.json()]).toEqual([200, []])

    await submit(page, 'Sign in', email)
    await signedInAs(page, email)
    expect(complaints).toEqual([])
    // Without an icon the browser requests /favicon.ico, which headless browsers do not show.
    expect(await page.locator('link[rel=icon]').getAttribute('href')).toMatch(/^data:/)
  })

  test('a link opened in another browser confirms the address and asks the user to sign in there', async () => {
    const email = 'frances@example.com'
    await submit((await openPage()).page, 'Create an account', email)
    const { page, complaints } = await openPage()
    await page.goto(await linkOfMail(email))
    await page.getByRole('status').getByText('Your address is confirmed. Sign in with your password.').waitFor()
    await submit(page, 'Sign in', email)
    await signedInAs(page, email)
    expect(complaints).toEqual([])
  })

  test('an access token that has expired is refreshed before the server is called', async () => {
    const email = await makeUser('jean@example.com')
    const { page } = await openPage()
    await submit(page, 'Sign in', email)
    await signedInAs(page, email)
    // The stored session has an expired token, as after an hour of sleep.
    const expired = (session: string) =>
      JSON.stringify({ ...JSON.parse(session), access_token: 'an.expired.token', expires_at: 1 })
    const [key, kept] = (await page.evaluate('Object.entries(localStorage)[0]')) as [string, string]
    await page.evaluate(`localStorage.setItem(${JSON.stringify(key)}, ${JSON.stringify(expired(kept))})`)
    await page.getByRole('button', { name: 'Call the server' }).click()
    await page.getByText(JSON.parse(kept).user.id).waitFor()
  })

  test('each failure shows its own message', async () => {
    const { page } = await openPage()
    const says = (sentence: string) => page.getByRole('status').getByText(sentence, { exact: true }).waitFor()
    await submit(page, 'Sign in', 'stranger@example.com')
    await says('The e-mail address or the password is wrong.')
    await submit(page, 'Create an account', 'karen@example.com', 'short')
    await page
      .getByRole('status')
      .getByText(/^Password should be at least .+\.$/)
      .waitFor()
    await submit(page, 'Create an account', 'karen@example.com')
    await page.getByRole('button', { name: 'Back to sign-in' }).click()
    await submit(page, 'Sign in', 'karen@example.com')
    await says('This address is not confirmed yet. Open the link of the mail first.')

    const link = await linkOfMail('karen@example.com')
    await fetch(link, { redirect: 'manual' })
    await page.goto(link)
    await says('This link has expired or was used before. Sign in, or create the account again.')
    expect(page.url()).toBe(`${site}/`)

    await page.route(`${authUrl}/**`, (route) => route.abort())
    await submit(page, 'Sign in', 'karen@example.com')
    await says(`Auth does not answer at ${authUrl}. Try again shortly.`)
  })
})

describe('the server', () => {
  const now = () => Math.floor(Date.now() / 1000)
  const claims = () => ({ iss: authUrl, aud: 'authenticated', sub: 'a-user', exp: now() + 60 })
  const askWith = (token: string, url = site) =>
    fetch(`${url}/api/me`, { headers: { authorization: `Bearer ${token}` } })
  const authsOwnKey = (): PublishedKey => JSON.parse(String(settings.AUTH_JWT_KEYS)).keys[0]
  // The private key of RFC 7515, appendix A.3.1, under the name of auth's.
  const anotherKey = (): PublishedKey => ({
    kid: authsOwnKey().kid,
    kty: 'EC',
    crv: 'P-256',
    x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
    y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
    d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI',
  })

  test('a token of auth is accepted', async () => {
    const answer = await askWith(signJwt(authsOwnKey(), claims()))
    expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ id: 'a-user' })])
  })

  test.each([
    { what: 'that is no token', token: () => 'not.a.token' },
    { what: 'that has expired', token: () => signJwt(authsOwnKey(), { ...claims(), exp: now() - 1 }) },
    { what: 'of another issuer', token: () => signJwt(authsOwnKey(), { ...claims(), iss: 'https://evil.example' }) },
    { what: 'for another audience', token: () => signJwt(authsOwnKey(), { ...claims(), aud: 'admin' }) },
    { what: 'of an admin, who is no user', token: () => signJwt(authsOwnKey(), { ...claims(), sub: undefined }) },
    { what: 'signed with another key', token: () => signJwt(anotherKey(), claims()) },
    { what: 'without a signature', token: () => `${signJwt(authsOwnKey(), claims()).replace(/[^.]+$/, '')}` },
    { what: 'signed with the secret', token: () => adminBy(settings.AUTH_JWT_SECRET).authorization.slice(7) },
  ])('a token $what is refused with 401', async ({ token }) => {
    const answer = await askWith(token())
    const error = 'The server asks for a valid access token. Sign in again.'
    expect([answer.status, await answer.json()]).toEqual([401, { error }])
  })

  test('the server serves its own files and no other', async () => {
    for (const path of ['/server.js', '/package.json', '/modules/../server.js', '/..%2fREADME.md', '/favicon.ico']) {
      expect([path, (await fetch(site + path)).status]).toEqual([path, 404])
    }
    expect((await fetch(site, { method: 'POST' })).status).toBe(405)
  })

  test('without the keys of auth the server answers 503 instead of rejecting a token, with the addresses of the guide', async () => {
    const [nothing, port] = [await findFreePort(), await findFreePort()]
    const started = shell.start(
      guide.take('AUTH_URL=', { 'http://127.0.0.1:9081': `http://127.0.0.1:${nothing}`, '3001': String(port) }),
    )
    const url = await started.says(/Open (http:\S+) in a browser/)
    expect(url).toBe(`http://localhost:${port}`)
    expect((await askWith('a.b.c', url)).status).toBe(401)
    expect((await askWith(signJwt(authsOwnKey(), claims()), url)).status).toBe(503)
  })

  test('an error about a port in use names the variable', async () => {
    await shell
      .start(`PORT=${new URL(site).port} npx -y pnpm@12 example`)
      .says(/Port \d+ is in use\. Set PORT to another/)
  })
})

test('the example contains every excerpt of the guide, and every command of the guide was run', async () => {
  guide.leave('pnpm@12 dev', 'docs/testing/global-setup.ts')
  guide.leave('createServerClient', 'services/auth/test/server-rendered.test.ts')
  const excerpts = blocksOf(readGuide(GUIDE)).filter(({ info }) => info.startsWith('example/'))
  expect(excerpts.length).toBeGreaterThan(2)
  for (const { info, text } of excerpts) {
    expect(await readFile(join(EXAMPLE, '..', info), 'utf8')).toContain(text)
    guide.file(info)
  }
  expect(guide.untaken()).toEqual([])
})

test('a copy of the folder installs the versions that are tested here', async () => {
  const { dependencies } = JSON.parse(await readFile(join(EXAMPLE, 'package.json'), 'utf8'))
  const workspace = await readFile(join(EXAMPLE, '../../pnpm-workspace.yaml'), 'utf8')
  for (const [name, version] of Object.entries(dependencies)) {
    expect(workspace).toMatch(new RegExp(`^  "?${name}"?: ${version}$`, 'm'))
  }
})

/** Creates a confirmed user by an admin. */
async function makeUser(email: string): Promise<string> {
  const answer = await fetch(`${authUrl}/admin/users`, {
    method: 'POST',
    headers: { ...adminBy(settings.AUTH_JWT_SECRET), 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: PASSWORD, email_confirm: true }),
  })
  expect(answer.status).toBe(200)
  return email
}
