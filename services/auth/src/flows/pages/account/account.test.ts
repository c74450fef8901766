// The pages below /ui/account, without a browser; with one: account-browser.slow.test.ts.

import { clientName } from '@services/common/pages/client-name'
import { perFile } from '@services/common/testing/per-file'
import { test as base, describe, expect } from 'vitest'
import { type OpenIdProvider, startOpenIdProvider } from '../../../../test/openid-provider.ts'
import { enrollTotp, totpCode, verifyTotp } from '../../../../test/second-factors.ts'
import { codeIn, locationOf, startTestService, type TestService } from '../../../../test/service.ts'
import { createSecurityKey } from '../../../../test/webauthn/security-key.ts'
import { ACCOUNT_SETTINGS, ORIGIN, openPage, type SeenPage, send } from '../testing/pages.ts'
import { accountPages } from './account-pages.ts'

const test = base.extend<object & { service: TestService & { google: OpenIdProvider } }>({
  service: perFile(async () => {
    const google = await startOpenIdProvider()
    const service = await startTestService({
      ...google.settings('GOOGLE'),
      ...ACCOUNT_SETTINGS,
      AUTH_SMS_TEST_OTP: '4915100000001:111111',
    })
    const close = async () => {
      await service.close()
      await google.close()
    }
    return { ...service, google, close }
  }),
})

const PASSWORD = 'correct horse'
const QUARTER = { seconds: 15 * 60 + 1 }
type Browser = ReturnType<TestService['otherBrowser']>
let count = 0

/** Signs a new browser in by the page, and opens the page that it wanted. */
async function signIn(browser: Browser, email: string, path = '/ui/account') {
  const address = await openPage(browser, path)
  expect(address.title).toBe('Sign in')
  const password = await send(browser, address, { address: email })
  return send(browser, password, { password: PASSWORD })
}

async function signedIn(service: TestService, path?: string) {
  const email = `own-${++count}@example.com`
  const user = await service.signedIn(email, PASSWORD)
  const browser = service.otherBrowser()
  return { ...user, email, browser, page: await signIn(browser, email, path) }
}

const userOf = async (service: TestService, { auth }: { auth: Record<string, string> }) =>
  (await service.get('/user', auth)).body

test('each page asks to sign in and comes back, in both languages, and shows a name as text', async ({ service }) => {
  const { browser, email } = await signedIn(service)
  const hostile = '<img src=x onerror=alert(1)>'
  await send(browser, await openPage(browser, '/ui/account/name'), { name: hostile })
  for (const { path } of accountPages) {
    const page = await openPage(browser, path)
    expect([path, page.status, page.problem]).toEqual([path, 200, undefined])
    const german = await openPage(browser, path, { 'accept-language': 'de' })
    expect(german.text).toMatch(/<html lang="de">.*Zurück zu/s)
    expect(page.text + german.text).not.toContain('<img src=x')
    // A browser that is not signed in sees nothing.
    const stranger = await openPage(service.otherBrowser(), path)
    expect([path, stranger.title]).toEqual([path, 'Sign in'])
    expect(stranger.text).not.toContain(email)
  }
  const back = await signIn(service.otherBrowser(), email, '/ui/account/sessions')
  expect(back.title).toBe('Where you are signed in')
  expect((await openPage(browser, '/ui/account')).text).toContain('&lt;img src=x')
})

test('an application that leads to a page gets its user back, also after a sign-in', async ({ service }) => {
  const app = 'https://site.example/settings'
  const { page } = await signedIn(service, `/ui/account?redirect_to=${encodeURIComponent(app)}`)
  expect(page.links['Back to the application']).toBe(app)
})

test('a name is saved, and the back button shows the present one', async ({ service }) => {
  const { browser, auth } = await signedIn(service)
  const page = await openPage(browser, '/ui/account/name')
  expect((await send(browser, page, { name: 'Ada' })).news).toBe('Saved.')
  // The second press of a double click.
  expect((await send(browser, page, { name: 'Ada' })).news).toBe('Saved.')
  expect((await userOf(service, { auth })).user_metadata).toMatchObject({ full_name: 'Ada' })
  expect((await openPage(browser, '/ui/account')).text).toContain('Ada')
})

test('a chosen language is that of pages and mails, until the choice is left to the browser', async ({ service }) => {
  const { browser, email, auth } = await signedIn(service)
  const locale = async () => (await userOf(service, { auth })).user_metadata.locale
  const open = await openPage(browser, '/ui/account/notices')
  expect(open.text).toMatch(/<option value="" selected>As your browser says<\/option>[\s\S]*lang="de">Deutsch</)
  const chosen = await send(browser, open, { locale: 'de' })
  expect([chosen.title, chosen.news]).toEqual(['Sprache und Benachrichtigungen', 'Gespeichert.'])
  expect((await openPage(browser, '/ui/account')).text).toContain('<span>Deutsch</span>')
  await service.post('/recover', { email }, { 'accept-language': 'en' })
  expect((await service.mailbox.waitFor(email)).subject).toBe('Setze dein Passwort zurück')
  // Pressed without another choice, the form keeps the region that an application has stored.
  await service.put('/user', { data: { locale: 'de-AT' } }, auth)
  const kept = await send(browser, await openPage(browser, '/ui/account/notices'), { locale: 'de' })
  expect([kept.news, await locale()]).toEqual(['Gespeichert.', 'de-AT'])
  const left = await send(browser, kept, { locale: '' })
  expect([left.title, left.news, await locale()]).toEqual(['Language and notices', 'Saved.', undefined])
  expect((await send(browser, left, { locale: 'xx' })).news).toBe('Saved.')
  expect(await locale()).toBeUndefined()
})

test('a language whose tag has no name is listed by its tag', async ({ service }) => {
  const odd = await service.with({ AUTH_MAILER_LOCALES: 'en,fr,de-at-ch' })
  const { browser } = await signedIn(odd)
  const { text } = await openPage(browser, '/ui/account/notices')
  expect([...text.matchAll(/<option [^>]*>(.*?)</g)].map(([, label]) => label)).toEqual([
    ...['As your browser says', 'English', 'français', 'de-at-ch'],
  ])
  await odd.close()
})

test('the notices that are sent about the account are listed, and no others', async ({ service }) => {
  const some = await service.with({
    AUTH_MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true',
    AUTH_MAILER_NOTIFICATIONS_PASSKEY_ADDED_ENABLED: 'true',
    AUTH_PASSKEY_ENABLED: 'false',
    AUTH_SELF_DELETION_ENABLED: 'false',
  })
  const { browser, email, userId } = await signedIn(some)
  const listed = async () =>
    [...(await openPage(browser, '/ui/account/notices')).text.matchAll(/<li>(.*?)</g)].map(([, event]) => event)
  expect(await listed()).toEqual([
    'Your password was changed',
    // Sent whatever the settings are.
    'Your email address was changed',
    'A recovery code of your account was used',
  ])
  const page = await openPage(browser, '/ui/account/notices', { 'accept-language': 'de' })
  expect(page.text).toContain(`Eine Mail an ${email} berichtet`)
  expect(page.text).toMatch(/<li>Dein Passwort wurde geändert<[\s\S]*lassen sie sich nicht abschalten/)
  await some.deps.db.updateTable('users').set({ email: null }).where('id', '=', userId).execute()
  expect(await listed()).toEqual([])
  expect((await openPage(browser, '/ui/account/notices')).text).toContain('No notices about your account are sent.')
  await some.close()
})

test('a new password signs out everywhere else', async ({ service }) => {
  const { browser, email, auth } = await signedIn(service)
  const page = await openPage(browser, '/ui/account/password')
  expect((await send(browser, page, { password: '123456' })).problem).toContain('too easy')
  expect((await send(browser, page, { password: 'another horse' })).news).toContain('changed')
  // The second press.
  expect((await send(browser, page, { password: 'another horse' })).news).toBe('This is your password already.')
  expect(await service.put('/user', { data: {} }, auth)).toMatchObject({ body: { error_code: 'session_not_found' } })
  const grant = await service.post('/token?grant_type=password', { email, password: 'another horse' })
  expect(grant.status).toBe(200)
})

test('where the current password is demanded, the pages ask for it', async ({ service }) => {
  const strict = await service.with({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true' })
  const { browser } = await signedIn(strict)
  const page = await openPage(browser, '/ui/account/password')
  const wrong = await send(browser, page, { password: 'another horse', current_password: 'wrong' })
  expect(wrong.problem).toBe('The current password is wrong.')
  const changed = await send(browser, page, { password: 'another horse', current_password: PASSWORD })
  expect(changed.news).toContain('changed')
  await strict.close()
})

test('where a code is demanded for a new password, the page sends and takes it', async ({ service }) => {
  const strict = await service.with({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' })
  const { browser, email } = await signedIn(strict)
  const page = await openPage(browser, '/ui/account/password')
  expect((await send(browser, page, { password: 'another horse' })).problem).toContain('code')
  const sent = await send(browser, page, {}, { press: 'Send me a code' })
  const nonce = codeIn((await strict.mailbox.waitFor(email)).text)
  expect((await send(browser, sent, { password: 'another horse', nonce })).news).toContain('changed')
  await strict.close()
})

test('both addresses confirm a new one by their codes, and no session is left of it', async ({ service }) => {
  const { browser, email, auth } = await signedIn(service)
  const fresh = `fresh-${count}@example.com`
  const page = await openPage(browser, '/ui/account/addresses')
  const pending = await send(browser, page, { email: fresh })
  expect(pending.news).toContain('on its way')
  const wrong = await send(browser, pending, { code: '000000' })
  expect(wrong.problem).toBe('This code is wrong or has expired.')
  const [ofNew, ofOld] = await Promise.all([fresh, email].map((to) => service.mailbox.waitFor(to)))
  const agreed = await send(browser, pending, { code: codeIn(ofNew?.text ?? '') })
  expect(agreed.news).toContain('other address')
  const [, second] = agreed.forms
  if (!second) throw new Error('no field for the other address')
  const done = await send(browser, { ...agreed, forms: [second] }, { code: codeIn(ofOld?.text ?? '') })
  expect(done.news).toBe('The address is confirmed.')
  // The second press.
  expect(await send(browser, { ...agreed, forms: [second] }, { code: codeIn(ofOld?.text ?? '') })).toMatchObject({
    ...{ title: 'Addresses', problem: undefined },
  })
  expect((await userOf(service, { auth })).email).toBe(fresh)
  expect((await service.get('/user/sessions', auth)).body).toHaveLength(2)
})

test('the link of the mail for a new address leads back to the page', async ({ service }) => {
  const { browser, email } = await signedIn(service)
  const fresh = `linked-${count}@example.com`
  await send(browser, await openPage(browser, '/ui/account/addresses'), { email: fresh })
  for (const to of [fresh, email]) {
    const { text } = await service.mailbox.waitFor(to)
    const [, link = ''] = /https:\/\/auth\.example(\/ui\/confirm\?\S+)/.exec(text) ?? []
    const page = await send(browser, await openPage(browser, link))
    expect(page.title).toBe('Addresses')
  }
  expect((await openPage(browser, '/ui/account/addresses')).text).toContain(fresh)
})

describe('a second factor', () => {
  const begun = async (service: TestService) => {
    const own = await signedIn(service)
    const list = await openPage(own.browser, '/ui/account/factors')
    const press = () => send(own.browser, list, { name: 'Phone' }, { press: 'Add an authenticator app' })
    // Two presses: the browser shows the answer to the second.
    await press()
    const added = await press()
    return { ...own, added, secret: added.forms[0]?.fields.secret ?? '' }
  }

  test('is added by QR code or secret, gives recovery codes, and is removed', async ({ service }) => {
    const { browser, added, secret, auth } = await begun(service)
    expect(added.text).toContain('src="data:image/svg+xml;base64,')
    expect(added.text.replaceAll(' ', '')).toContain(secret)
    const wrong = await send(browser, added, { code: '000000' })
    expect(wrong.problem).toContain('wrong')
    const codes = await send(browser, wrong, { code: totpCode(secret, service.clock.now()) })
    expect(codes.title).toBe('Recovery codes')
    const [first = ''] = /(?<=<code>)[^<]+/.exec(codes.text) ?? []
    expect(first.length).toBeGreaterThan(5)
    const list = await send(browser, wrong, { code: totpCode(secret, service.clock.now()) })
    expect([list.title, list.news]).toEqual(['Second factor', 'The authenticator app is added.'])
    expect(list.text).toContain('Phone')
    const renewed = await send(browser, list, {}, { press: 'Replace the recovery codes' })
    expect(renewed.text).not.toContain(first)
    const removal = list.forms.find(({ button }) => button.startsWith('Remove'))
    if (!removal) throw new Error('no button to remove')
    expect((await send(browser, { ...list, forms: [removal] })).news).toBe('Removed.')
    // The second press.
    expect((await send(browser, { ...list, forms: [removal] })).problem).toBeUndefined()
    expect((await userOf(service, { auth })).factors ?? []).toEqual([])
  })
})

describe('sessions', () => {
  test('end one by one and all others at once, with the device and place of each', async ({ service }) => {
    const { browser, email, page } = await signedIn(service, '/ui/account/sessions')
    const credentials = { email, password: PASSWORD }
    const headers = { 'user-agent': 'Mozilla/5.0 (Windows NT 10.0) Gecko/20100101 Firefox/140.0' }
    await service.post('/token?grant_type=password', credentials, headers)
    const list = await openPage(browser, '/ui/account/sessions')
    expect(page.title).toBe(list.title)
    expect(list.text).toContain('Firefox, Windows')
    expect(list.text).toContain('This browser')
    const one = await send(browser, list)
    expect(one.news).toBe('Signed out there.')
    expect(await send(browser, list)).toMatchObject({ title: list.title, problem: undefined })
    const all = await send(browser, one, {}, { press: 'Sign out everywhere else' })
    expect(all.news).toContain('everywhere else')
    expect(all.forms).toEqual([])
  })

  test('that ended elsewhere lead to the sign-in and back, for an open form too', async ({ service }) => {
    const { browser, email, auth } = await signedIn(service)
    const open = await openPage(browser, '/ui/account/name')
    await service.post('/logout', {}, auth)
    const asked = await send(browser, open, { name: 'Late' })
    expect(asked.title).toBe('Sign in')
    const password = await send(browser, asked, { address: email })
    expect((await send(browser, password, { password: PASSWORD })).title).toBe('Name')
  })
})

test('a trusted device is listed and removed', async ({ service }) => {
  const own = await signedIn(service)
  const { rows } = await service.deps.pool.query('select id from sessions where user_id = $1', [own.userId])
  const now = service.clock.now()
  await service.deps.db
    .insertInto('trusted_devices')
    .values({
      ...{ id: rows[0].id, user_id: own.userId, name: 'Laptop', token_hash: Buffer.alloc(32), factor_ids: [] },
      ...{ factor_id: rows[0].id, session_id: rows[0].id, user_agent: null, ip: null, created_at: now },
      expires_at: new Date(now.getTime() + 86_400_000),
    })
    .execute()
  const page = await openPage(own.browser, '/ui/account/devices')
  expect(page.text).toContain('Laptop')
  const after = await send(own.browser, page)
  expect(after.news).toBe('Removed.')
  expect(after.text).not.toContain('Laptop')
})

test('a passkey is added, renamed and removed', async ({ service }) => {
  const { browser } = await signedIn(service)
  const list = await openPage(browser, '/ui/account/passkeys')
  const begun = await send(browser, list, {}, { press: 'Add a passkey' })
  // Without a script the form is empty.
  expect((await send(browser, begun)).problem).toBeDefined()
  const again = await send(browser, list, {}, { press: 'Add a passkey' })
  const [, options = ''] = /data-options="([^"]*)"/.exec(again.text) ?? []
  const { challenge } = JSON.parse(options.replaceAll('&quot;', '"'))
  const credential = JSON.stringify(createSecurityKey().create({ rpId: 'auth.example', origin: ORIGIN, challenge }))
  const added = await send(browser, again, { credential })
  expect(added.news).toContain('The passkey is added.')
  const rename = Object.entries(added.links).find(([label]) => label.startsWith('Rename'))?.[1] ?? ''
  const renaming = await openPage(browser, rename)
  const renamed = await send(browser, renaming, { name: 'Blue key' })
  expect(renamed.text).toContain('Blue key')
  const removed = await send(browser, renamed)
  expect(removed.news).toBe('Removed.')
  expect((await send(browser, renamed)).problem).toBeUndefined()
})

describe('a fresh proof', () => {
  test('is asked for before the export, which the page then downloads', async ({ service }) => {
    const { browser, email } = await signedIn(service)
    const early = await send(browser, await openPage(browser, '/ui/account/export'))
    expect(early.headers['content-disposition']).toBe('attachment; filename="account.json"')
    expect(JSON.parse(early.text).user.email).toBe(email)
    service.clock.advance(QUARTER)
    const asked = await send(browser, await openPage(browser, '/ui/account/export'))
    expect(asked.title).toBe('Confirm that it is you')
    expect(asked.text).toContain(`You are signed in as ${email}.`)
    expect((await send(browser, asked, { password: 'wrong' })).problem).toContain('wrong')
    const back = await send(browser, asked, { password: PASSWORD })
    expect(back.title).toBe('Download your data')
    expect(JSON.parse((await send(browser, back)).text).user.email).toBe(email)
  })

  test('is a sign-in by another way where there is no password', async ({ service }) => {
    const email = `code-${++count}@example.com`
    await service.post('/admin/users', { email, email_confirm: true }, service.admin)
    const browser = service.otherBrowser()
    const byCode = async (page: SeenPage) => {
      const { mailbox } = service
      const after = mailbox.messages({ to: email }).at(-1)
      const asked = await send(browser, page, { address: email })
      const code = await send(browser, asked, {}, { press: 'Send me a code instead' })
      const mail = await mailbox.waitFor(email, after && { after })
      return send(browser, code, { code: codeIn(mail.text) })
    }
    await byCode(await openPage(browser, '/ui/account'))
    service.clock.advance(QUARTER)
    const asked = await send(browser, await openPage(browser, '/ui/account/export'))
    expect([asked.title, asked.forms]).toEqual(['Confirm that it is you', []])
    expect(asked.text).toContain(`You are signed in as ${email}.`)
    const back = await byCode(await openPage(browser, asked.links['Sign in again in another way'] ?? ''))
    expect(back.title).toBe('Download your data')
    expect(JSON.parse((await send(browser, back)).text).user.email).toBe(email)
  })

  test('by the second factor is asked for where the user has one', async ({ service }) => {
    const email = `factor-${++count}@example.com`
    const user = await service.signedIn(email, PASSWORD)
    const totp = await enrollTotp(service, user)
    await verifyTotp(service, user, totp)
    const browser = service.otherBrowser()
    expect((await signIn(browser, email)).title).toBe('Second factor')
    // Past the question, in another tab: nothing of the account shows.
    for (const { path } of accountPages) {
      expect([path, (await openPage(browser, path)).title]).toEqual([path, 'Second factor'])
    }
    const asked = await openPage(browser, '/ui/account/password')
    service.clock.advance({ seconds: 30 })
    const back = await send(browser, asked, { code: totpCode(totp.secret, service.clock.now()) })
    expect(back.title).toBe('Password')
    expect((await send(browser, back, { password: 'another horse' })).news).toContain('changed')
  })

  test('of a deletion is the password; then the browser is signed out', async ({ service }) => {
    const { browser, auth } = await signedIn(service)
    service.clock.advance(QUARTER)
    const page = await openPage(browser, '/ui/account/deletion')
    expect((await send(browser, page, { current_password: PASSWORD })).problem).toContain('confirm')
    const wrong = await send(browser, page, { current_password: 'wrong', sure: 'yes' })
    expect(wrong.problem).toBe('The current password is wrong.')
    const done = await send(browser, page, { current_password: PASSWORD, sure: 'yes' })
    expect([done.title, done.news]).toEqual(['Sign in', 'Your account is deleted.'])
    expect((await service.get('/user', auth)).body.error_code).toBe('user_not_found')
    // The second press, and the back button.
    expect((await send(browser, page, { current_password: PASSWORD, sure: 'yes' })).title).toBe('Sign in')
    expect((await openPage(browser, '/ui/account')).title).toBe('Sign in')
  })
})

test('a phone number is added by its code, and then the email address can be removed', async ({ service }) => {
  const { browser, auth } = await signedIn(service)
  const page = await openPage(browser, '/ui/account/addresses')
  const form = page.forms.find(({ fields }) => fields.channel === 'phone')
  if (!form) throw new Error('no field for a phone number')
  const pending = await send(browser, { ...page, forms: [form] }, { phone: '+49 151 00000001' })
  const added = await send(browser, pending, { code: '111111' })
  expect(added.news).toBe('The address is confirmed.')
  const removed = await send(browser, added, {}, { press: 'Remove this email address' })
  expect(removed.news).toBe('Removed.')
  expect(await userOf(service, { auth })).toMatchObject({ email: '', phone: '4915100000001' })
  // The last way in has no such button.
  expect(removed.forms.filter(({ button }) => button.startsWith('Remove'))).toEqual([])
})

test('an account at a provider is linked and unlinked', async ({ service }) => {
  const { browser, auth } = await signedIn(service)
  const list = await openPage(browser, '/ui/account/identities')
  const leaving = await send(browser, list, {}, { press: 'Link Google' })
  service.google.next({ sub: `linked-${count}`, email: `linked-${count}@gmail.example`, email_verified: true })
  const { pathname, search } = new URL(leaving.location ?? '')
  const question = await openPage(browser, pathname + search)
  const begun = await browser.submit('/callback?', question.forms[0]?.fields ?? {})
  const callback = await service.google.visit(locationOf(begun))
  const answer = await browser.get(callback.pathname + callback.search)
  const back = await openPage(browser, String(answer.headers.location).replace(ORIGIN, ''))
  expect(back.title).toBe('Linked accounts')
  expect(back.text).toContain(`linked-${count}@gmail.example`)
  const unlinked = await send(browser, back)
  expect(unlinked.news).toBe('The account is unlinked.')
  expect((await send(browser, back)).problem).toBeUndefined()
  expect((await userOf(service, { auth })).identities).toHaveLength(1)
})

test('parts that are disabled lead to the account, and are not offered there', async ({ service }) => {
  const plain = await service.with({
    AUTH_SELF_DELETION_ENABLED: 'false',
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'false',
    AUTH_MFA_TRUSTED_DEVICE_TTL: '0',
    AUTH_PASSKEY_ENABLED: 'false',
  })
  const { browser, page } = await signedIn(plain)
  for (const name of ['deletion', 'identities', 'devices', 'passkeys']) {
    expect((await openPage(browser, `/ui/account/${name}`)).title).toBe('Your account')
    expect(Object.values(page.links).filter((link) => link.includes(name))).toEqual([])
  }
  await plain.close()
})

test.for([
  [
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    'Chrome, Linux',
  ],
  ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile/15E148 Safari/604.1', 'Safari, iOS'],
  ['Mozilla/5.0 (Windows NT 10.0) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0', 'Edge, Windows'],
  ['MyApp/2.1 (build 7)', 'MyApp/2.1 (build 7)'],
] as const)('%s is %s', ([userAgent, name]) => {
  expect(clientName(userAgent)).toBe(name)
})
