// Sign-up, recovery and the pages behind mail links, as a browser without scripts.
import { perFile } from '@services/common/testing/per-file'
import { test as base, describe, expect } from 'vitest'
import { codeIn, fragmentOf, startTestService, type TestService } from '../../../test/service.ts'
import { ORIGIN, openPage, type SeenForm, type SeenPage, send } from './testing/pages.ts'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({
      ...{ AUTH_HOSTED_PAGES_ENABLED: 'true', AUTH_URI_ALLOW_LIST: 'https://app.example/**' },
      // Two mails to one address within a test.
      ...{ AUTH_SMTP_MAX_FREQUENCY: '0', AUTH_MAILER_SIGN_IN_LINK_MAX_FREQUENCY: '0' },
    }),
  ),
})

const PASSWORD = 'correct horse'
const APP = 'https://app.example/done'
const TO_APP = new URLSearchParams({ redirect_to: APP })
const AT_APP = /^https:\/\/app\.example\/done#access_token=/

type Browser = Parameters<typeof openPage>[0]

const signUp = async (browser: Browser, address: string, password = PASSWORD) =>
  send(browser, await openPage(browser, `/ui/sign-up?${TO_APP}`), { address, password })

const recover = async (browser: Browser, address: string) =>
  send(browser, await openPage(browser, `/ui/recover?${TO_APP}`), { address })

/** Opens the link of a mail. */
async function openLink(service: TestService, browser: Browser, to: string): Promise<SeenPage> {
  const { text } = await service.mailbox.waitFor(to)
  const [, link = ''] = /https:\/\/auth\.example(\/ui\/confirm\?\S+)/.exec(text) ?? []
  return openPage(browser, link)
}

describe('signing up', () => {
  test('by the code of the mail ends at the application, signed in', async ({ service }) => {
    const browser = service.otherBrowser()
    const code = await signUp(browser, 'new@example.com')
    expect(code.title).toBe('Enter the code')
    const page = await send(browser, code, { code: codeIn((await service.mailbox.waitFor('new@example.com')).text) })
    expect(page.location).toMatch(AT_APP)
    const { access_token: token } = fragmentOf(page)
    const user = await service.get('/user', { authorization: `Bearer ${token}` })
    expect(user.body).toMatchObject({ email: 'new@example.com', app_metadata: { provider: 'email' } })
  })

  test('by the link of the mail does too, in any browser, and a scanner confirms nothing', async ({ service }) => {
    await signUp(service.otherBrowser(), 'linked@example.com')
    const phone = service.otherBrowser()
    const asked = await openLink(service, phone, 'linked@example.com')
    expect(asked.title).toBe('Confirm your email address')
    const signIn = { email: 'linked@example.com', password: PASSWORD }
    expect(await service.post('/token?grant_type=password', signIn)).toMatchObject({ status: 400 })
    expect((await send(phone, asked)).location).toMatch(AT_APP)
    // A press after a return by the history leads to the same place, and the address that shows it does nothing.
    const returned = await openLink(service, phone, 'linked@example.com')
    const { action, fields } = returned.forms[0] as SeenForm
    const { location } = (await phone.submit(action, fields)).headers
    const { rows } = await service.deps.pool.query(`select id from users where email = 'linked@example.com'`)
    const sessions = () => service.get(`/admin/users/${rows[0].id}/sessions`, service.admin)
    const before = (await sessions()).body
    for (let visit = 0; visit < 3; visit++) {
      const shown = await openPage(phone, String(location).replace(ORIGIN, ''))
      expect(shown).toMatchObject({ title: 'Sign in', location: undefined, problem: undefined })
    }
    expect((await sessions()).body).toEqual(before)
    const shown = await openPage(phone, String(location).replace(ORIGIN, ''))
    expect((await send(phone, shown)).location).toMatch(AT_APP)
    // Only a browser that was shown the page can press it.
    expect(await send(service.otherBrowser(), asked)).toMatchObject({ status: 403, title: asked.title })
    const late = service.otherBrowser()
    const { problem } = await send(late, await openLink(service, late, 'linked@example.com'))
    expect(problem).toBe('This code is wrong or has expired.')
  })

  test('shows the same for an address that has an account, whose owner gets a mail', async ({ service }) => {
    await service.signedIn('taken@example.com', PASSWORD)
    const steps = async (email: string) => {
      const browser = service.otherBrowser()
      const weak = await signUp(browser, email, '12345678')
      const code = await send(browser, weak, { address: email, password: PASSWORD })
      const wrong = await send(browser, code, { code: '000000' })
      const again = await send(browser, code, {}, { press: 'Send a new code' })
      return [weak, code, wrong, again].map(({ status, title, problem, news, text }) => ({
        ...{ status, title, problem, news },
        text: text.replaceAll(email, '(address)').replaceAll(/name="(proof|c)" value="[^"]*"/g, '$1'),
      }))
    }
    expect(await steps('taken@example.com')).toEqual(await steps('untaken@example.com'))
    expect((await service.mailbox.waitFor('taken@example.com')).text).toContain('you already have an account')
  })

  test('refuses a password that is easy to guess at its field, and what is no address', async ({ service }) => {
    const browser = service.otherBrowser()
    const weak = await signUp(browser, 'weak@example.com', '12345678')
    expect(weak.text).toMatch(/aria-describedby="field-password-hint field-password-error" aria-invalid="true"/)
    expect(weak.text).toContain('value="weak@example.com"')
    expect(weak.text).not.toContain('12345678')
    expect((await signUp(browser, 'nonsense')).text).toContain('Please enter an email address')
  })

  test('is refused where new accounts are by invitation, and its page says so', async ({ service }) => {
    const closed = await service.with({ AUTH_DISABLE_SIGNUP: 'true' })
    const page = await openPage(closed.otherBrowser(), '/ui/sign-up')
    expect([page.problem, page.forms]).toEqual(['New accounts are by invitation only.', []])
    expect((await openPage(closed.otherBrowser(), '/ui/sign-in')).links).not.toHaveProperty('Create an account')
    await closed.close()
  })

  test('signs in at once where addresses count as confirmed', async ({ service }) => {
    const open = await service.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
    expect((await signUp(open.otherBrowser(), 'at-once@example.com')).location).toMatch(AT_APP)
    await open.close()
  })
})

describe('a forgotten password', () => {
  const choose = async (browser: Browser, page: SeenPage, password: string) => send(browser, page, { password })

  test.for(['code', 'link in another browser'])('is replaced by the %s', async (way, { service }) => {
    const email = `forgot-by-${way.split(' ')[0]}@example.com`
    await service.signedIn(email, 'a forgotten one')
    let browser = service.otherBrowser()
    const code = await recover(browser, email)
    let page: SeenPage
    if (way === 'code') {
      page = await send(browser, code, { code: codeIn((await service.mailbox.waitFor(email)).text) })
    } else {
      browser = service.otherBrowser()
      page = await send(browser, await openLink(service, browser, email))
    }
    expect([page.title, page.forms[0]?.fields.account]).toEqual(['Choose a new password', email])
    expect(await choose(browser, page, '12345678')).toMatchObject({ title: 'Choose a new password' })
    const done = await choose(browser, page, 'quite another horse')
    expect(done.location).toMatch(AT_APP)
    const signIn = await service.post('/token?grant_type=password', { email, password: 'quite another horse' })
    expect(signIn.status).toBe(200)
    const { refresh_token } = fragmentOf(done)
    expect((await service.post('/token?grant_type=refresh_token', { refresh_token })).status).toBe(200)
  })

  test('is never that of another user who is signed in here; a second press goes on', async ({ service }) => {
    const [mine, theirs] = ['mine@example.com', 'theirs@example.com']
    for (const email of [mine, theirs]) await service.signedIn(email, PASSWORD)
    const browser = service.otherBrowser()
    const press = async (email: string) => {
      await recover(service.otherBrowser(), email)
      return openLink(service, browser, email)
    }
    const own = await press(mine)
    expect(await send(browser, own)).toMatchObject({ title: 'Choose a new password' })
    // The second press of a double click was sent from the same page.
    const again = await openLink(service, browser, mine)
    expect(await send(browser, again)).toMatchObject({ title: 'Choose a new password', problem: undefined })
    const late = await press(theirs)
    service.clock.advance({ seconds: 86_400 })
    for (const page of [late, await openPage(browser, '/ui/confirm?token=0000&type=recovery')]) {
      const refused = await send(browser, page)
      expect(refused).toMatchObject({ status: 400, problem: 'This code is wrong or has expired.', forms: [] })
    }
  })

  test('is asked for with the address that was typed at the sign-in', async ({ service }) => {
    const browser = service.otherBrowser()
    const password = await send(browser, await openPage(browser, `/ui/sign-in?${TO_APP}`), {
      address: 'typed@example.com',
    })
    const page = await send(browser, password, {}, { press: 'Forgot your password?' })
    expect([page.title, page.forms[0]?.fields.address]).toEqual(['Forgot your password?', 'typed@example.com'])
    expect(service.mailbox.messages({ to: 'typed@example.com' })).toEqual([])
  })

  test('shows the same for an address without an account', async ({ service }) => {
    await service.signedIn('recovers@example.com', PASSWORD)
    const steps = async (email: string) => {
      const browser = service.otherBrowser()
      const code = await recover(browser, email)
      const wrong = await send(browser, code, { code: '000000' })
      return [code, wrong].map(({ status, text }) => [
        status,
        text.replaceAll(email, '(address)').replaceAll(/name="(proof|c)" value="[^"]*"/g, '$1'),
      ])
    }
    expect(await steps('recovers@example.com')).toEqual(await steps('recovers-not@example.com'))
  })

  test('a browser that is not signed in is asked to sign in first', async ({ service }) => {
    const page = await openPage(service.otherBrowser(), '/ui/new-password')
    expect(page.title).toBe('Sign in')
  })
})

test('an invited user confirms by the button, and chooses a password', async ({ service }) => {
  await service.post(
    '/invite?redirect_to=https://auth.example/ui/arrive?a',
    { email: 'guest@example.com' },
    service.admin,
  )
  const browser = service.otherBrowser()
  const asked = await openLink(service, browser, 'guest@example.com')
  expect(asked.title).toBe('You have been invited')
  const page = await send(browser, asked)
  expect(page.title).toBe('Choose a new password')
})

test('where the site is the account page, links of any request lead there, and no address has tokens', async ({
  service,
}) => {
  const at = await service.with({ AUTH_SITE_URL: 'https://auth.example/ui/account' })
  await at.post('/signup', { email: 'no-app@example.com', password: PASSWORD })
  const browser = at.otherBrowser()
  const page = await send(browser, await openLink(at, browser, 'no-app@example.com'))
  expect([page.title, page.text.includes('no-app@example.com'), page.location]).toEqual([
    'Your account',
    true,
    undefined,
  ])
  expect(page.links).not.toHaveProperty('Back to the application')
  await at.close()
})

test('links of an application keep their address', async ({ service }) => {
  await service.post(`/signup?${TO_APP}`, { email: 'of-app@example.com', password: PASSWORD })
  expect((await service.mailbox.waitFor('of-app@example.com')).text).toContain('https://auth.example/verify?token=')
})
