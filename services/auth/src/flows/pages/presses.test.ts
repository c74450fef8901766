// Second presses of every form: at once, as in a double click, and one after another, as after going back.
import { perFile } from '@services/common/testing/per-file'
import { test as base, describe, expect } from 'vitest'
import { enrollTotp, totpCode, verifyTotp } from '../../../test/second-factors.ts'
import { codeIn, type SignedIn, startTestService, type TestService } from '../../../test/service.ts'
import { createSecurityKey } from '../../../test/webauthn/security-key.ts'
import { ACCOUNT_SETTINGS, ORIGIN, openPage, type SeenPage, send, sendAtOnce } from './testing/pages.ts'

const PASSWORD = 'correct horse'
const PHONES = Array.from({ length: 4 }, (_, index) => `491510000010${index}`)

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({
      ...ACCOUNT_SETTINGS,
      AUTH_HOSTED_PAGES_WAYS: 'password,code',
      AUTH_SMS_TEST_OTP: PHONES.map((phone) => `${phone}:111111`).join(','),
      AUTH_URI_ALLOW_LIST: 'https://app.example/**',
    }),
  ),
})

type Browser = ReturnType<TestService['otherBrowser']>
type Person = SignedIn & { email: string; browser: Browser; service: TestService }

/** Form that is pressed, and the fields typed into it. */
interface Press {
  page: SeenPage
  fields?: Record<string, string>
  press?: string
}

let count = 0

async function newPerson(service: TestService): Promise<Person> {
  const email = `press-${++count}@example.com`
  return { ...(await service.signedIn(email, PASSWORD)), email, browser: service.otherBrowser(), service }
}

const askPassword = async ({ browser, email }: Person, search = '') =>
  send(browser, await openPage(browser, `/ui/sign-in${search}`), { address: email })

async function signIn(person: Person): Promise<SeenPage> {
  return send(person.browser, await askPassword(person, '?next=/ui/account'), { password: PASSWORD })
}

const account = async (person: Person, name: string): Promise<SeenPage> => {
  await signIn(person)
  return openPage(person.browser, `/ui/account/${name}`)
}

const beginsWith = (page: SeenPage, start: string) =>
  page.forms.find(({ button }) => button.startsWith(start))?.button ?? start

async function pressTwice(browser: Browser, how: string, { page, fields, press }: Press): Promise<SeenPage[]> {
  if (how === 'at once') return sendAtOnce(browser, page, fields, press)
  const one = await send(browser, page, fields, { ...(press && { press }) })
  return [one, await send(browser, page, fields, { ...(press && { press }) })]
}

const ACCOUNT: Record<string, { begin: (person: Person) => Promise<Press>; news: string[] }> = {
  'a name': {
    begin: async (person) => ({ page: await account(person, 'name'), fields: { name: 'Ada' } }),
    news: ['Saved.'],
  },
  'a language': {
    begin: async (person) => ({ page: await account(person, 'notices'), fields: { locale: 'de' } }),
    news: ['Gespeichert.'],
  },
  'a new address': {
    begin: async (person) => ({
      ...{ page: await account(person, 'addresses'), fields: { email: `New-${person.email}` } },
    }),
    news: ['A code is on its way. The change takes effect once it is confirmed.'],
  },
  'the code of a new number': {
    async begin(person) {
      const page = await account(person, 'addresses')
      const [, phone] = page.forms
      if (!phone) throw new Error('no field for a number')
      const sent = await send(person.browser, { ...page, forms: [phone] }, { phone: PHONES[phones++] ?? '' })
      return { page: sent, fields: { code: '111111' } }
    },
    news: ['The address is confirmed.'],
  },
  'the removal of an address': {
    async begin(person) {
      const body = { phone: PHONES[phones++], phone_confirm: true }
      expect(await person.service.put(`/admin/users/${person.userId}`, body, person.service.admin)).toMatchObject({
        status: 200,
      })
      return { page: await account(person, 'addresses'), press: 'Remove this email address' }
    },
    news: ['Removed.'],
  },
  'a new password': {
    begin: async (person) => ({ page: await account(person, 'password'), fields: { password: 'another horse' } }),
    news: ['Your password is changed. You are signed out everywhere else.', 'This is your password already.'],
  },
  'a new passkey': {
    async begin(person) {
      const list = await account(person, 'passkeys')
      const page = await send(person.browser, list, {}, { press: 'Add a passkey' })
      const [, options = ''] = /data-options="([^"]*)"/.exec(page.text) ?? []
      const { challenge } = JSON.parse(options.replaceAll('&quot;', '"'))
      const made = createSecurityKey().create({ rpId: 'auth.example', origin: ORIGIN, challenge })
      return { page, fields: { credential: JSON.stringify(made) } }
    },
    news: ['The passkey is added. It signs you in from now on.'],
  },
  'the removal of a passkey': {
    async begin(person) {
      const { page: form, fields } = await (ACCOUNT['a new passkey'] as (typeof ACCOUNT)[string]).begin(person)
      const page = await send(person.browser, form, fields)
      return { page, press: beginsWith(page, 'Remove') }
    },
    news: ['Removed.'],
  },
  'the first code of an app': {
    async begin(person) {
      const list = await account(person, 'factors')
      const page = await send(person.browser, list, {}, { press: 'Add an authenticator app' })
      const secret = page.forms[0]?.fields.secret ?? ''
      return { page, fields: { code: totpCode(secret, person.service.clock.now()) } }
    },
    // Or the recovery codes.
    news: ['The authenticator app is added.', ''],
  },
  'the removal of an app': {
    async begin(person) {
      const { page, fields } = await (ACCOUNT['the first code of an app'] as (typeof ACCOUNT)[string]).begin(person)
      await send(person.browser, page, fields)
      const list = await openPage(person.browser, '/ui/account/factors')
      return { page: list, press: beginsWith(list, 'Remove') }
    },
    news: ['Removed.'],
  },
  'new recovery codes': {
    async begin(person) {
      const { page, fields } = await (ACCOUNT['the first code of an app'] as (typeof ACCOUNT)[string]).begin(person)
      await send(person.browser, page, fields)
      const list = await openPage(person.browser, '/ui/account/factors')
      return { page: list, press: 'Replace the recovery codes' }
    },
    news: [''],
  },
  'the end of a session': {
    async begin(person) {
      const page = await account(person, 'sessions')
      return { page, press: beginsWith(page, 'Sign out<') }
    },
    news: ['Signed out there.'],
  },
  'the end of all other sessions': {
    begin: async (person) => ({ page: await account(person, 'sessions'), press: 'Sign out everywhere else' }),
    news: ['You are signed out everywhere else.'],
  },
  'the removal of a trusted device': {
    async begin(person) {
      await trustDevice(person)
      const page = await account(person, 'devices')
      return { page, press: beginsWith(page, 'Remove') }
    },
    news: ['Removed.'],
  },
  'an unlinked account': {
    async begin(person) {
      await linkGitHub(person)
      return { page: await account(person, 'identities') }
    },
    news: ['The account is unlinked.'],
  },
  'a deletion': {
    begin: async (person) => ({
      page: await account(person, 'deletion'),
      fields: { current_password: PASSWORD, sure: 'yes' },
    }),
    news: ['Your account is deleted.'],
  },
}

let phones = 0

const trustDevice = async ({ service, userId }: Person) => {
  const now = service.clock.now()
  const id = crypto.randomUUID()
  await service.deps.db
    .insertInto('trusted_devices')
    .values({
      ...{ id, user_id: userId, name: 'Laptop', token_hash: Buffer.from(id), factor_ids: [] },
      ...{ factor_id: id, session_id: id, user_agent: null, ip: null, created_at: now },
      expires_at: new Date(now.getTime() + 86_400_000),
    })
    .execute()
}

const linkGitHub = async ({ service, userId, email }: Person) => {
  const now = service.clock.now()
  const id = crypto.randomUUID()
  await service.deps.pool.query(
    `insert into identities (id, user_id, provider, provider_id, identity_data, created_at, updated_at)
     values ($1, $2, 'github', $3, $4, $5, $5)`,
    [id, userId, id, JSON.stringify({ sub: id, email: `at-github-${email}` }), now],
  )
}

/** Names of forms with each way to press twice. A deletion ends the session, with which its form is bound. */
const cases = Object.keys(ACCOUNT).flatMap((name) =>
  ['at once', 'one after another']
    .filter((how) => how === 'at once' || name !== 'a deletion')
    .map((how) => [name, how] as const),
)

test.for(cases)('in the account %s, pressed twice %s, shows its success', async ([name, how], { service }) => {
  const { begin, news } = ACCOUNT[name] as (typeof ACCOUNT)[string]
  const person = await newPerson(service)
  for (const shown of await pressTwice(person.browser, how, await begin(person))) {
    expect([name, shown.status, shown.problem]).toEqual([name, 200, undefined])
    expect(news).toContain(shown.news ?? '')
  }
})

const SIGN_IN: Record<string, (person: Person) => Promise<Press>> = {
  'an address': async ({ browser, email }) => ({
    page: await openPage(browser, '/ui/sign-in'),
    fields: { address: email },
  }),
  'a password': async (person) => ({ page: await askPassword(person), fields: { password: PASSWORD } }),
  'a request for a code': async (person) => ({ page: await askPassword(person), press: 'Send me a code instead' }),
  'a request for another code': async (person) => {
    const page = await send(person.browser, await askPassword(person), {}, { press: 'Send me a code instead' })
    return { page, press: 'Send a new code' }
  },
  'a code': async (person) => {
    const { browser, email, service } = person
    const page = await send(browser, await askPassword(person), {}, { press: 'Send me a code instead' })
    return { page, fields: { code: codeIn((await service.mailbox.waitFor(email)).text) } }
  },
  'a request for a recovery': async ({ browser, email }) => ({
    page: await openPage(browser, '/ui/recover'),
    fields: { address: email },
  }),
  'the code of a recovery': async ({ browser, email, service }) => {
    const page = await send(browser, await openPage(browser, '/ui/recover'), { address: email })
    return { page, fields: { code: codeIn((await service.mailbox.waitFor(email)).text) } }
  },
  'a new password': async (person) => {
    await signIn(person)
    return { page: await openPage(person.browser, '/ui/new-password'), fields: { password: 'another horse' } }
  },
  'a sign-up': async ({ browser, email }) => ({
    page: await openPage(browser, '/ui/sign-up'),
    fields: { address: `new-${email}`, password: PASSWORD },
  }),
  'the code of a sign-up': async ({ browser, email, service }) => {
    const to = `new-${email}`
    const page = await send(browser, await openPage(browser, '/ui/sign-up'), { address: to, password: PASSWORD })
    return { page, fields: { code: codeIn((await service.mailbox.waitFor(to)).text) } }
  },
  'a second factor': async (person) => {
    const { service } = person
    const totp = await enrollTotp(service, person)
    await verifyTotp(service, person, totp)
    const page = await signIn(person)
    service.clock.advance({ seconds: 30 })
    return { page, fields: { code: totpCode(totp.secret, service.clock.now()) } }
  },
  'an offered passkey': async (person) => {
    await signIn(person)
    const page = await openPage(person.browser, '/ui/passkey')
    const [, shown = ''] = /data-challenge="([^"]+)"/.exec(page.text) ?? []
    const { challenge_id, options } = JSON.parse(shown.replaceAll('&quot;', '"'))
    const made = createSecurityKey().create({ rpId: 'auth.example', origin: ORIGIN, challenge: options.challenge })
    return { page, fields: { challenge_id, credential: JSON.stringify(made) } }
  },
  'to go on': async (person) => {
    await signIn(person)
    return { page: await openPage(person.browser, '/ui/sign-in') }
  },
  'a sign-out': async (person) => {
    await signIn(person)
    return { page: await openPage(person.browser, '/ui/sign-out') }
  },
}

/** Presses after which the session is another one, with which the old form is not bound. */
const BEGINS_SESSION = ['a password', 'to go on']

describe.for(['at once', 'one after another'])('at the sign-in, pressed twice %s,', (how) => {
  test.for(Object.keys(SIGN_IN))('%s is no refusal', async (name, { service }) => {
    const person = await newPerson(service)
    const begun = await (SIGN_IN[name] as (typeof SIGN_IN)[string])(person)
    const [first, second] = (await pressTwice(person.browser, how, begun)) as [SeenPage, SeenPage]
    const isOther = how !== 'at once' && BEGINS_SESSION.includes(name)
    for (const shown of isOther ? [first] : [first, second]) {
      expect([name, shown.title, shown.problem]).toEqual([name, shown.title, undefined])
      expect(shown.text).not.toContain('class="error"')
    }
    if (isOther) expectWayOn(second)
  })
})

/** A sentence, and the button of the user who is signed in. */
function expectWayOn(page: SeenPage) {
  expect(page.problem).toMatch(/^You have signed in or out since this page was opened/)
  expect(page.forms.map(({ button }) => button)).toEqual(['Continue to site.example'])
}

describe('with two tabs', () => {
  test('a form from before the sign-in says so, and offers to go on', async ({ service }) => {
    const person = await newPerson(service)
    const { browser, email } = person
    const open = await openPage(browser, '/ui/sign-in')
    await signIn(person)
    const shown = await send(browser, open, { address: email })
    expect(shown).toMatchObject({ status: 403, title: 'Sign in', location: undefined })
    expectWayOn(shown)
    expect(shown.text).toContain(`You are signed in as ${email}.`)
  })

  test('a form from before the sign-out says so, changes nothing, and leads back after a sign-in', async ({
    service,
  }) => {
    const person = await newPerson(service)
    const { browser, auth, email } = person
    const open = await account(person, 'name')
    await send(browser, await openPage(browser, '/ui/sign-out'))
    const shown = await send(browser, open, { name: 'Late' })
    expect([shown.title, shown.problem]).toEqual(['Sign in', expect.stringContaining('signed in or out')])
    expect((await service.get('/user', auth)).body.user_metadata).not.toHaveProperty('full_name')
    const back = await send(browser, await send(browser, shown, { address: email }), { password: PASSWORD })
    expect(back.title).toBe('Name')
  })

  test('a form of an ended session says that it has ended', async ({ service }) => {
    const person = await newPerson(service)
    const open = await account(person, 'name')
    await service.post('/logout', {}, person.auth)
    const shown = await send(person.browser, open, { name: 'Late' })
    expect([shown.title, shown.problem]).toEqual(['Sign in', 'Your session has ended. Please sign in again.'])
  })

  test('a form of another user changes nothing of the present one', async ({ service }) => {
    const [one, other] = [await newPerson(service), await newPerson(service)]
    const open = await account(one, 'name')
    await send(one.browser, await openPage(one.browser, '/ui/sign-out'))
    await signIn({ ...other, browser: one.browser })
    const shown = await send(one.browser, open, { name: 'Late' })
    expect([shown.status, shown.title]).toEqual([403, 'Name'])
    expect(shown.problem).toContain('signed in or out')
    expect((await service.get('/user', other.auth)).body.user_metadata).not.toHaveProperty('full_name')
  })
})
