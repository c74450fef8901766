import { perFile } from '@services/common/testing/per-file'
import { test as base, expect } from 'vitest'
import { authHere } from '../../../../test/command-line.ts'
import { totpCode } from '../../../../test/second-factors.ts'
import { codeIn, startTestService, type TestService } from '../../../../test/service.ts'
import { openPage, send } from '../../pages/testing/pages.ts'

const PAGES = {
  ...{ AUTH_HOSTED_PAGES_ENABLED: 'true', AUTH_CONSOLE_ENABLED: 'true' },
  AUTH_API_EXTERNAL_URL: 'https://auth.example',
}

const test = base.extend<object & { service: TestService }>({ service: perFile(() => startTestService(PAGES)) })

const PASSWORD = 'quite another horse'

/** The command line on the database of a service. */
const cliOf =
  ({ deps }: TestService, settings: Record<string, string> = {}) =>
  async (line: string, input = '') => {
    const env = { AUTH_DATABASE_URL: deps.config.database.url, AUTH_PASSWORD_HASH_MEMORY_KIB: '64', ...PAGES }
    const { stdout, ...rest } = await authHere(`admin create ${line}`.split(' '), { ...env, ...settings }, input)
    return { stdout, ...rest, link: stdout.trim().replace('https://auth.example', '') }
  }

const signIn = (service: TestService, email: string, password: string) =>
  service.post('/token?grant_type=password', { email, password })

test('the link sets the password once, and leads to the second factor that the console demands', async ({
  service,
}) => {
  const { code, stderr, link } = await cliOf(service)('--email First@Example.com')
  expect([code, stderr, link]).toEqual([0, '', expect.stringMatching(/^\/ui\/confirm\?token=[\w-]{43}&type=recovery&/)])
  const browser = service.otherBrowser()
  const asked = await openPage(browser, link)
  const password = await send(browser, asked)
  expect([password.title, password.forms[0]?.fields.account]).toEqual(['Choose a new password', 'first@example.com'])
  const factors = await send(browser, password, { password: PASSWORD })
  expect(factors.title).toBe('Second factor')
  const { body } = await signIn(service, 'first@example.com', PASSWORD)
  // The tokens for applications are those of any user.
  expect(body.user).toMatchObject({ role: 'authenticated', app_metadata: { role: 'service_role', provider: 'email' } })
  const other = service.otherBrowser()
  expect(await send(other, await openPage(other, link))).toMatchObject({ status: 400, title: 'That did not work' })
})

test('the link leads into the console where that demands no second factor', async ({ service }) => {
  const at = await service.with({ AUTH_CONSOLE_REQUIRE_MFA: 'false' })
  // Its role is in `role` alone, as an admin may set it.
  const role = { email: 'by-role@example.com', email_confirm: true, role: 'service_role' }
  expect((await at.post('/admin/users', role, at.admin)).status).toBe(200)
  for (const email of ['one-factor@example.com', role.email]) {
    const browser = at.otherBrowser()
    const asked = await openPage(browser, (await cliOf(at)(`--email ${email}`)).link)
    const { location } = await send(browser, await send(browser, asked), { password: PASSWORD })
    expect([email, location]).toEqual([email, '/console/sign-in'])
    expect((await browser.get('/console/sign-in')).headers.location).toBe('../console')
  }
  await at.close()
})

test('where admins must have a factor, the link adds one, and then sets the password', async ({ service }) => {
  const at = await service.with({ AUTH_MFA_REQUIRED_FOR: 'admins' })
  const browser = at.otherBrowser()
  const asked = await openPage(browser, (await cliOf(at)('--email demanded@example.com')).link)
  const factors = await send(browser, await send(browser, asked), { password: PASSWORD })
  const shown = await send(browser, factors, { name: 'App' }, { press: 'Add an authenticator app' })
  const code = totpCode(shown.forms[0]?.fields.secret ?? '', at.clock.now())
  const password = await send(browser, await send(browser, shown, { code }))
  expect(password.title).toBe('Choose a new password')
  expect((await send(browser, password, { password: PASSWORD })).location).toBe('/console/sign-in')
  expect((await browser.get('/console/sign-in')).headers.location).toBe('../console')
  await at.close()
})

test('the link is good for an hour, and the command makes a new one', async ({ service }) => {
  const cli = cliOf(service)
  const first = await cli('--email late@example.com')
  const { link, expires_at } = JSON.parse((await cli('--email late@example.com --json')).stdout)
  expect(Math.round((Date.parse(expires_at) - Date.now()) / 60_000)).toBe(60)
  const replaced = service.otherBrowser()
  expect((await send(replaced, await openPage(replaced, first.link))).title).toBe('That did not work')
  // The command has the clock of the machine.
  service.clock.advance({ seconds: (Date.parse(expires_at) - service.clock.now().getTime()) / 1000 + 1 })
  const late = service.otherBrowser()
  const page = await openPage(late, link.replace('https://auth.example', ''))
  expect((await send(late, page)).title).toBe('That did not work')
})

test('an account is promoted only on demand, is signed out by it, and signs in with the password given', async ({
  service,
}) => {
  const cli = cliOf(service)
  const { userId, refreshToken } = await service.signedIn('user@example.com')
  const refused = await cli('--email user@example.com')
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain(`user@example.com has an account, ${userId}: --promote makes it an administrator`)
  const given = await cli('--email user@example.com --promote --password-stdin', PASSWORD)
  expect(given).toMatchObject({ code: 0, stdout: `${userId} is an administrator with this password\n` })
  expect((await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })).status).toBe(400)
  expect((await signIn(service, 'user@example.com', PASSWORD)).body.user.app_metadata.role).toBe('service_role')
})

test('a stranger who registered the address before gets nothing of the administrator', async ({ service }) => {
  const email = 'squatted@example.com'
  await service.post('/signup', { email, password: 'of a stranger' })
  const { text } = await service.mailbox.waitFor(email)
  expect((await cliOf(service)(`--email ${email}`)).code).toBe(0)
  expect((await signIn(service, email, 'of a stranger')).status).toBe(400)
  const typed = { type: 'signup', email, token: codeIn(text) }
  expect((await service.post('/verify', typed)).status).toBe(403)
})

test.for([
  ['--email a@example.com --role editor', {}, '--role must be one of AUTH_JWT_ADMIN_ROLES'],
  ['--email weak@example.com --password-stdin', {}, 'Password'],
  ['--email off@example.com', { AUTH_HOSTED_PAGES_ENABLED: 'false' }, 'AUTH_HOSTED_PAGES_ENABLED'],
] as const)('is refused and creates nobody: %s', async ([line, settings, reason], { service }) => {
  const { code, stdout, stderr } = await cliOf(service, settings)(line, '12345678')
  expect([code === 0, stdout]).toEqual([false, ''])
  expect(stderr).toContain(reason)
  const [, email = ''] = line.split(' ')
  const { body } = await service.get(`/admin/users?filter=${email}`, service.admin)
  expect(body.users).toEqual([])
})
