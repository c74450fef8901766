import { PAGE_POLICY } from '@services/common/pages/document'
import { describe, expect } from 'vitest'
import { codeIn, linkPath, locationOf, type TestService, test } from '../../../test/service.ts'

const password = 'correct horse'

async function signUp(service: TestService, email: string) {
  await service.post('/signup', { email, password })
  const mail = await service.mailbox.waitFor(email)
  const path = linkPath(mail.text)
  return { email, path, code: codeIn(mail.text), token: new URLSearchParams(path.split('?')[1]).get('token') as string }
}

const EXPIRED = { status: 403, body: { error_code: 'otp_expired' } }

describe('the link', () => {
  test('works once', async ({ service }) => {
    const { path } = await signUp(service, 'once@example.com')
    expect((await service.get(path)).headers.location).toContain('#access_token=')
    const second = await service.get(path)
    expect(second.status).toBe(303)
    expect(second.headers.location).toMatch(
      /^https:\/\/site\.example#error=access_denied&error_code=otp_expired&error_description=[^&]+&sb=$/,
    )
  })

  test('of twenty parallel clicks exactly one signs in', async ({ service }) => {
    const { path } = await signUp(service, 'clicks@example.com')
    const answers = await Promise.all(Array.from({ length: 20 }, () => service.get(path)))
    const signedIn = answers.filter(({ headers }) => String(headers.location).includes('access_token='))
    expect(signedIn).toHaveLength(1)
  })

  test('is not spent by HEAD or by a prefetch', async ({ service }) => {
    const { path } = await signUp(service, 'scanner@example.com')
    expect((await service.app.inject({ method: 'HEAD', url: path })).statusCode).toBe(200)
    expect((await service.get(path, { purpose: 'prefetch' })).status).toBe(204)
    expect((await service.get(path, { 'sec-purpose': 'prefetch;prerender' })).status).toBe(204)
    expect((await service.get(path)).headers.location).toContain('#access_token=')
  })

  test('expires after an hour', async ({ service }) => {
    const { path } = await signUp(service, 'late@example.com')
    service.clock.advance({ seconds: 3601 })
    expect((await service.get(path)).headers.location).toContain('otp_expired')
  })

  test('of a banned user with a proven address is refused and says so', async ({ service }) => {
    const email = 'link-banned@example.com'
    await service.signedUp(email)
    const before = await service.mailbox.waitFor(email)
    await service.post('/otp', { email })
    const path = linkPath((await service.mailbox.waitFor(email, { after: before })).text)
    const bannedUntil = new Date(service.clock.now().getTime() + 60_000)
    await service.deps.db.updateTable('users').set({ banned_until: bannedUntil }).where('email', '=', email).execute()
    expect((await service.get(path)).headers.location).toContain('error_code=user_banned')
  })

  test('goes to an allowed target and nowhere else', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_URI_ALLOW_LIST: 'https://*.app.example/**' })
    const cases: [string, string][] = [
      ['https://one.app.example/welcome', 'https://one.app.example/welcome'],
      ['https://site.example/deep?x=1', 'https://site.example/deep?x=1'],
      ['https://site.example/日本', 'https://site.example/%E6%97%A5%E6%9C%AC'],
      ['https://evil.example/', 'https://site.example'],
      ['https://user:pw@site.example/', 'https://site.example'],
      ['javascript:alert(1)', 'https://site.example'],
    ]
    for (const [index, [asked, target]] of cases.entries()) {
      const email = `target-${index}@example.com`
      await service.post(`/signup?redirect_to=${encodeURIComponent(asked)}`, { email, password })
      const path = linkPath((await service.mailbox.waitFor(email)).text)
      expect(new URLSearchParams(path.split('?')[1]).get('redirect_to')).toBe(target)
      // The link may be tampered with on its way: the target is checked again.
      const tampered = path.replace(/redirect_to=[^&]*/, `redirect_to=${encodeURIComponent(asked)}`)
      expect(String((await service.get(tampered)).headers.location).split('#')[0]).toBe(target)
    }
    await service.close()
  })

  test('behind the confirmation page opens a page that runs nothing foreign; its button confirms, once', async ({
    service: plain,
  }) => {
    const service = await plain.with({ AUTH_MAILER_LINK_CONFIRMATION_PAGE: 'true' })
    const { path } = await signUp(service, 'page@example.com')
    for (let i = 0; i < 2; i++) {
      const page = await service.get(path)
      expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
      expect(page.text).toContain('<form method="post"')
    }
    const other = '/verify?type=signup'
    for (const url of ['/verify', other]) expect((await service.get(url)).status).toBe(400)
    const page = await service.get(path)
    expect(page.headers).toMatchObject({
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    const hostile = await service.get(`${path}&x="><script>alert(1)</script>`)
    expect(hostile.text.match(/<script/g)).toHaveLength(1)
    const answers = await Promise.all([press(service, path), press(service, path)])
    // A page, because under its policy a browser refuses a redirect after the form.
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    const outcomes = answers.map((answer) => /access_token|otp_expired/.exec(locationOf(answer))?.[0])
    expect(outcomes.sort()).toEqual(['access_token', 'otp_expired'])
    for (const { headers } of [page, ...answers]) expect(headers['content-security-policy']).toBe(PAGE_POLICY)
    await service.close()
  })
})

/** Presses the button of the confirmation page. */
const press = (service: TestService, path: string) =>
  service.post(path, undefined, { 'content-type': 'application/x-www-form-urlencoded' })

/** Opens every link of a mail twice, as a scanner does. */
async function scan(service: TestService, path: string) {
  for (let i = 0; i < 2; i++) expect(await service.get(path)).toMatchObject({ status: 200, text: expect.any(String) })
}

describe('where links open a page, a scanner at the mailbox proves nothing', () => {
  const settings = { AUTH_MAILER_LINK_CONFIRMATION_PAGE: 'true', AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' }

  test('of an address that a stranger signed up with: their password does not sign in', async ({ service: plain }) => {
    const service = await plain.with(settings)
    const { email, path } = await signUp(service, 'scanned-signup@example.com')
    await scan(service, path)
    const signIn = () => service.post('/token?grant_type=password', { email, password })
    expect(await signIn()).toMatchObject({ status: 400, body: { error_code: 'email_not_confirmed' } })
    await press(service, path)
    expect((await signIn()).status).toBe(200)
    await service.close()
  })

  test('of an address that an anonymous user asked for: the account stays anonymous', async ({ service: plain }) => {
    const service = await plain.with(settings)
    const { body } = await service.post('/signup', {})
    const auth = { authorization: `Bearer ${body.access_token}` }
    const email = 'scanned-upgrade@example.com'
    expect((await service.put('/user', { email, password }, auth)).status).toBe(200)
    const mail = await service.mailbox.waitFor(email)
    expect(mail.text).toContain('a person already signed in to that account stays signed in')
    await scan(service, linkPath(mail.text))
    expect((await service.get('/user', auth)).body).toMatchObject({ is_anonymous: true, email: '' })
    expect((await service.post('/token?grant_type=password', { email, password })).status).toBe(400)
    await press(service, linkPath(mail.text))
    expect((await service.get('/user', auth)).body).toMatchObject({ is_anonymous: false, email })
    await service.close()
  })

  test('of a change of address: neither the old nor the new one agrees', async ({ service: plain }) => {
    const service = await plain.with(settings)
    const [from, to] = ['scanned-old@example.com', 'scanned-new@example.com']
    const { auth } = await service.signedIn(from)
    await service.put('/user', { email: to }, auth)
    for (const address of [from, to]) await scan(service, linkPath((await service.mailbox.waitFor(address)).text))
    const { body } = await service.get('/user', auth)
    expect(body).toMatchObject({ email: from, new_email: to })
    await service.close()
  })

  test('of a request to sign in or to recover: no session begins, and the link still works', async ({
    service: plain,
  }) => {
    const service = await plain.with(settings)
    const email = 'scanned-link@example.com'
    await service.signedIn(email)
    let before = {}
    for (const request of ['/otp', '/recover']) {
      await service.post(request, { email })
      const mail = await service.mailbox.waitFor(email, before)
      before = { after: mail }
      const path = linkPath(mail.text)
      await scan(service, path)
      // `email` stands for any type: by it nothing gets around the page.
      await scan(service, path.replace(/type=[a-z]+/, 'type=email'))
      expect(locationOf(await press(service, path))).toContain('#access_token=')
      service.clock.advance({ seconds: 61 })
    }
    await service.close()
  })

  test('of the listed types alone, where it is a list', async ({ service: plain }) => {
    const service = await plain.with({ AUTH_MAILER_LINK_CONFIRMATION_PAGE: 'email_change, recovery' })
    const { path } = await signUp(service, 'page-list@example.com')
    await scan(service, path.replace('type=signup', 'type=email'))
    const confirmed = await service.get(path)
    expect(confirmed.headers.location).toContain('#access_token=')
    await service.close()
  })

  test('by no other type than the one it was sent with', async ({ service: plain }) => {
    const email = 'retyped@example.com'
    await plain.signedIn(email)
    let before = {}
    const asked = async (path: string) => {
      await plain.post(path, { email })
      const mail = await plain.mailbox.waitFor(email, before)
      before = { after: mail }
      plain.clock.advance({ seconds: 61 })
      return linkPath(mail.text)
    }
    const links = {
      signup: (await signUp(plain, 'retyped-signup@example.com')).path,
      recovery: await asked('/recover'),
    }
    for (const [listed, path] of [
      ['signup', links.signup],
      ['invite', links.signup],
      ['recovery', links.recovery],
      ['magiclink', links.recovery],
    ] as const) {
      const service = await plain.with({ AUTH_MAILER_LINK_CONFIRMATION_PAGE: listed })
      for (const type of ['signup', 'invite', 'recovery', 'magiclink', 'email_change', 'email', 'sms', 'toString']) {
        const { headers } = await service.get(path.replace(/type=[a-z]+/, `type=${type}`))
        expect([listed, type, String(headers.location)]).toEqual([
          listed,
          type,
          expect.not.stringContaining('access_token'),
        ])
      }
      await service.close()
    }
    for (const path of Object.values(links)) {
      expect((await plain.get(path)).headers.location).toContain('#access_token=')
    }
  })

  test.for([
    ['signup', 'en', 'Confirm email address'],
    ['invite', 'en', 'Accept the invitation'],
    ['recovery', 'en', 'choose a new password'],
    ['magiclink', 'de-AT, en;q=0.5', 'Melde dich in diesem Browser auf site.example an.'],
    ['email_change', 'de', 'Änderung bestätigen'],
    ['email', 'fr', 'Continue to site.example.'],
  ] as const)(
    'says what a link of type %s does, in the language of the browser (%s)',
    async ([type, language, words], { service: plain }) => {
      const service = await plain.with(settings)
      const page = await service.get(`/verify?token=t&type=${type}`, { 'accept-language': language })
      expect(page.text).toContain(words)
      await service.close()
    },
  )
})

describe('the code', () => {
  test('confirms with its address, in any case of letters, and signs in', async ({ service }) => {
    const { email, code } = await signUp(service, 'code@example.com')
    const { status, body } = await service.post('/verify', { type: 'signup', email: email.toUpperCase(), token: code })
    expect([status, body.type, body.user.user_metadata.email_verified]).toEqual([200, 'signup', true])
    expect(body.user.identities[0].identity_data.email_verified).toBe(true)
    expect(await service.post('/verify', { type: 'signup', email, token: code })).toMatchObject(EXPIRED)
  })

  test('type email stands for it too', async ({ service }) => {
    const { email, code } = await signUp(service, 'type-email@example.com')
    expect((await service.post('/verify', { type: 'email', email, token: code })).body.type).toBe('signup')
  })

  test('dies after five wrong attempts, even when they are parallel', async ({ service }) => {
    const { email, code } = await signUp(service, 'guesses@example.com')
    const wrong = code === '000000' ? '111111' : '000000'
    const tries = Array.from({ length: 5 }, () => service.post('/verify', { type: 'signup', email, token: wrong }))
    for (const answer of await Promise.all(tries)) expect(answer).toMatchObject(EXPIRED)
    expect(await service.post('/verify', { type: 'signup', email, token: code })).toMatchObject(EXPIRED)
  })

  test('wrong, expired and unknown address get one answer', async ({ service }) => {
    const { email, code } = await signUp(service, 'oneanswer@example.com')
    const wrong = await service.post('/verify', { type: 'signup', email, token: 'nonsense' })
    const unknown = await service.post('/verify', { type: 'signup', email: 'nobody@example.com', token: code })
    service.clock.advance({ seconds: 3601 })
    const expired = await service.post('/verify', { type: 'signup', email, token: code })
    for (const answer of [wrong, unknown, expired]) expect(answer.text).toBe(wrong.text)
    expect(wrong).toMatchObject(EXPIRED)
  })
})

test('the token of a link also redeems as token_hash', async ({ service }) => {
  const { token } = await signUp(service, 'hash@example.com')
  expect(await service.post('/verify', { type: 'signup', token_hash: token })).toMatchObject({
    status: 200,
    body: { type: 'signup', user: { email: 'hash@example.com' } },
  })
  expect(await service.post('/verify', { type: 'signup', token_hash: token })).toMatchObject(EXPIRED)
})

test('an invited user without a password must set one', async ({ service }) => {
  const { email, token } = await signUp(service, 'invited@example.com')
  const invited = { password_hash: null, invited_at: service.clock.now() }
  await service.deps.db.updateTable('users').set(invited).where('email', '=', email).execute()
  const without = await service.post('/verify', { type: 'signup', token_hash: token })
  expect(without).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
  const weak = await service.post('/verify', { type: 'signup', token_hash: token, password: '123' })
  expect(weak).toMatchObject({ status: 422, body: { error_code: 'weak_password' } })
  expect((await service.post('/verify', { type: 'signup', token_hash: token, password: 'my own words' })).status).toBe(
    200,
  )
  const signIn = await service.post('/token?grant_type=password', { email, password: 'my own words' })
  expect(signIn.status).toBe(200)
})

describe('a password given with a confirmation', () => {
  const confirm = async (service: TestService, email: string) => {
    const mail = await service.mailbox.waitFor(email)
    return service.post('/verify', { type: 'signup', email, token: codeIn(mail.text), password: 'my own words' })
  }
  const signIn = (service: TestService, email: string, password: string) =>
    service.post('/token?grant_type=password', { email, password })

  test("becomes the user's who has none", async ({ service }) => {
    const email = 'without@example.com'
    await service.post('/otp', { email })
    expect((await confirm(service, email)).status).toBe(200)
    expect((await signIn(service, email, 'my own words')).status).toBe(200)
  })

  test('replaces none that is there', async ({ service }) => {
    const email = 'with@example.com'
    await service.post('/signup', { email, password: 'correct horse' })
    expect((await confirm(service, email)).status).toBe(200)
    expect((await signIn(service, email, 'my own words')).status).toBe(400)
    expect((await signIn(service, email, 'correct horse')).status).toBe(200)
  })
})

test.for<[string, object, number, string]>([
  ['no type', { token: '1', email: 'a@b.c' }, 400, 'validation_failed'],
  ['neither token nor hash', { type: 'signup', email: 'a@b.c' }, 400, 'validation_failed'],
  ['token and hash', { type: 'signup', token: '1', token_hash: '2' }, 400, 'validation_failed'],
  ['hash and address', { type: 'signup', token_hash: '2', email: 'a@b.c' }, 400, 'validation_failed'],
  ['hash and target', { type: 'signup', token_hash: '2', redirect_to: 'https://x.y' }, 400, 'validation_failed'],
  ['a code without address', { type: 'signup', token: '1' }, 400, 'validation_failed'],
  ['a code with two addresses', { type: 'signup', token: '1', email: 'a@b.c', phone: '1' }, 400, 'validation_failed'],
  ['a malformed address', { type: 'signup', token: '1', email: 'nobody' }, 422, 'validation_failed'],
  ['an unknown link type', { type: 'sms', token_hash: 'x' }, 400, 'validation_failed'],
  ['a type whose mails are not sent yet', { type: 'recovery', token_hash: 'x' }, 403, 'otp_expired'],
  ['the same, another', { type: 'email_change', token_hash: 'x' }, 403, 'otp_expired'],
  ['an unknown code type', { type: 'nonsense', token: '1', email: 'a@b.c' }, 403, 'otp_expired'],
  ['an unknown hash', { type: 'signup', token_hash: 'x' }, 403, 'otp_expired'],
])('POST /verify with %s is refused', async ([, body, status, code], { service }) => {
  expect(await service.post('/verify', body)).toMatchObject({ status, body: { error_code: code } })
})

test.for(['/verify', '/verify?token=x', '/verify?type=signup'])(
  'GET %s is refused without a redirect',
  async (url, { service }) => {
    expect(await service.get(url)).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
  },
)
