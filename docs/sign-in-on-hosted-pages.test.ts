import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished, test } from 'vitest'
import { launchBrowser } from '../packages/common/src/testing/http/browser.ts'
import { GUIDES, openGuide } from './testing/guide.ts'
import { adminBy } from './testing/jwt.ts'
import { openShell } from './testing/shell.ts'

const { settings } = inject('devServices')

test('applications without pages of their own, in a browser and on a server, get a session', {
  tags: 'chromium',
}, async () => {
  const guide = openGuide('sign-in-on-hosted-pages.md')
  const shell = await openShell(settings)
  onTestFinished(() => shell.close())
  await shell.write('pages.env', guide.file('pages.env'))
  const start = 'set -a; . ./pages.env; exec npx -y pnpm@12 -C services/auth start'
  const url = await shell.start(start).says(/listening at (http:[^"]+)"/)
  await shell.write('sign-in.js', guide.file('sign-in.js', { 'https://auth.example.com': url }))
  const library = createRequire(join(GUIDES, 'example/server.js')).resolve('@supabase/auth-js')
  await shell.write('client.js', guide.file('client.js', { '@supabase/auth-js': library }))
  const load = (name: string) => import(pathToFileURL(join(shell.folder, name)).href)
  const [{ signInAddress }, { openClient }] = await Promise.all([load('sign-in.js'), load('client.js')])

  const account = { email: 'pages@example.com', password: 'correct horse' }
  await fetch(`${url}/admin/users`, {
    method: 'POST',
    headers: { ...adminBy(settings.AUTH_JWT_SECRET), 'content-type': 'application/json' },
    body: JSON.stringify({ ...account, email_confirm: true }),
  })
  const browser = await launchBrowser()
  onTestFinished(() => browser.close())
  const page = await browser.newPage()
  const application = settings.AUTH_SITE_URL
  await page.route(`${application}/**`, (route) => route.fulfill({ body: 'The application' }))
  const kept = new Map<string, string>()
  const storage = { getItem: (key: string) => kept.get(key) ?? null, setItem: kept.set.bind(kept), removeItem() {} }
  await page.goto(await signInAddress(storage, `${application}/welcome`))
  await page.getByLabel('Email address').fill(account.email)
  await page.keyboard.press('Enter')
  await page.getByLabel('Password').fill(account.password)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${application}/welcome?code=*`)
  const code = new URL(page.url()).searchParams.get('code')
  const { data } = await openClient(url, storage).exchangeCodeForSession(code)
  expect(data.user).toMatchObject({ email: account.email })

  // An application on a server, in the browser that is signed in by now.
  await shell.write('server.js', guide.file('server.js', { 'https://auth.example.com': url }))
  const { beginSignIn, finishSignIn, signOut } = await load('server.js')
  const { location, cookie } = beginSignIn(`${application}/callback`)
  await page.goto(location)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.waitForURL(`${application}/callback?code=*`)
  const given = new URL(page.url()).searchParams.get('code')
  const [, verifier] = /^verifier=([^;]+);/.exec(cookie) ?? []
  const session = await finishSignIn(given, verifier)
  expect(session).toMatchObject({ user: { email: account.email }, refresh_token: expect.any(String) })
  expect(await finishSignIn(given, verifier)).toBeUndefined()
  expect((await signOut(session.access_token)).status).toBe(204)
  await page.goto(`${url}/ui/account?${new URLSearchParams({ redirect_to: `${application}/settings` })}`)
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Sign in')
  expect(guide.untaken()).toEqual([])
})
