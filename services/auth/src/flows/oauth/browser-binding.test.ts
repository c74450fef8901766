// An attempt to sign in at a provider belongs to the browser that began it (RFC 9700 section 4.7).
import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  fieldsOf,
  type OpenIdProvider,
  pressButton,
  signInAt,
  startOpenIdProvider,
  visitFrom,
} from '../../../test/openid-provider.ts'
import { type ProviderSignIns, startProviderSignIns } from '../../../test/provider-sign-in.ts'
import {
  type Answer,
  fragmentOf,
  locationOf,
  queryOf,
  startTestService,
  type TestService,
} from '../../../test/service.ts'
import { deleteExpired } from '../../housekeeping.ts'

let google: OpenIdProvider
let service: TestService
beforeAll(async () => {
  google = await startOpenIdProvider()
  service = await startTestService({ ...google.settings('GOOGLE'), AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true' })
})
afterAll(async () => {
  await service.close()
  await google.close()
})

let people = 0
const newPerson = () => {
  const sub = `browser-${people++}`
  return { sub, email: `${sub}@example.com`, email_verified: true }
}

const AUTHORIZE = '/authorize?provider=google'
const back = (browser: Pick<TestService, 'get'>, { pathname, search }: URL) => browser.get(pathname + search)
const cookiesOf = ({ headers }: Answer) => [headers['set-cookie'] ?? []].flat().map(String)
const refusal = (answer: Answer) => ({ ...queryOf(answer), to: locationOf(answer).split('?')[0] })
const ELSEWHERE = {
  to: 'https://site.example',
  error: 'invalid_request',
  error_code: 'bad_oauth_state',
  error_description: 'This sign-in was begun in another browser',
}

describe("the end of somebody else's sign-in", () => {
  const challenge = createHash('sha256').update(randomBytes(32)).digest('base64url')

  test.each([
    ['', (answer: Answer) => fragmentOf(answer).access_token],
    [`&code_challenge=${challenge}&code_challenge_method=s256`, (answer: Answer) => queryOf(answer).code],
  ])('signs in nobody in another browser, and goes on in its own (%s)', async (query, tokenOf) => {
    google.next(newPerson())
    const callback = await visitFrom(service, google, AUTHORIZE + query)
    const victim = service.otherBrowser()
    const answer = await back(victim, callback)
    expect([answer.status, refusal(answer)]).toEqual([303, ELSEWHERE])
    // One with a cookie of its own, for another attempt, too.
    await victim.get(AUTHORIZE)
    expect(refusal(await back(victim, callback))).toEqual(ELSEWHERE)
    expect(tokenOf(await back(service, callback))).toBeTruthy()
  })

  test('is not made theirs by a cookie of another attempt under its name, nor by one that came without TLS', async () => {
    google.next(newPerson())
    const callback = await visitFrom(service, google, AUTHORIZE)
    const state = String(callback.searchParams.get('state'))
    const [own = ''] = cookiesOf(await service.otherBrowser().get(AUTHORIZE))
    const other = own.slice(own.indexOf('=') + 1, own.indexOf(';'))
    const begun = await service.otherBrowser().get(AUTHORIZE)
    const [good = ''] = cookiesOf(begun)
    const stateOfGood = String(new URL(String(begun.headers.location)).searchParams.get('state'))
    const planted = good.slice('__Host-'.length).split(';')[0] as string
    for (const [of, cookie] of [
      [state, `__Host-auth-attempt-${state}=${other}`],
      [state, `__Host-auth-attempt-${state}=`],
      [state, '__Host-auth-attempt-'],
      [stateOfGood, planted],
      // A browser sees no prefix in this name: any host of the domain may set it.
      [stateOfGood, `\u00a0${good.split(';')[0]}`],
    ] as const) {
      const answer = await service.get(`/callback?code=x&state=${of}`, { cookie })
      expect(refusal(answer)).toEqual(ELSEWHERE)
    }
  })
})

describe('the cookie', () => {
  test('belongs only to this host, is out of reach of scripts, is sent with no request from other sites, and ends with the attempt', async () => {
    google.next(newPerson())
    const browser = service.otherBrowser()
    const begun = await browser.get(AUTHORIZE)
    const callback = await google.visit(String(begun.headers.location))
    const name = `__Host-auth-attempt-${callback.searchParams.get('state')}`
    const attributes = 'Path=/; Max-Age=300; HttpOnly; SameSite=Lax; Secure'
    expect(cookiesOf(begun)).toEqual([expect.stringMatching(new RegExp(`^${name}=[\\w-]{43}; ${attributes}$`))])
    expect(cookiesOf(await back(browser, callback))).toEqual([
      `${name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure`,
    ])
  })

  test('is there for each of several tabs, and of more than ten attempts for the newest ten', async () => {
    const browser = service.otherBrowser()
    google.next(newPerson())
    const callbacks: URL[] = []
    for (let tab = 0; tab < 11; tab++) callbacks.push(await visitFrom(browser, google, AUTHORIZE))
    const [first, second, ...others] = callbacks as [URL, URL, ...URL[]]
    expect(refusal(await back(browser, first))).toEqual(ELSEWHERE)
    for (const callback of [second, others.at(-1) as URL]) {
      expect(fragmentOf(await back(browser, callback)).access_token).toBeTruthy()
    }
  })

  test('has neither prefix nor Secure where the service is reached without TLS, as on a developer’s machine', async () => {
    const settings = { AUTH_EXTERNAL_GOOGLE_REDIRECT_URI: 'http://auth.example/callback' }
    const own = await service.with({ ...settings, AUTH_API_EXTERNAL_URL: 'http://auth.example' })
    const begun = await own.get(AUTHORIZE)
    expect(cookiesOf(begun)[0]).toMatch(/^auth-attempt-[^;]+; Path=\/; Max-Age=300; HttpOnly; SameSite=Lax$/)
    const state = new URL(String(begun.headers.location)).searchParams.get('state')
    const answer = await own.get(`/callback?state=${state}&error=denied`)
    expect(queryOf(answer)).toEqual({ error: 'denied' })
    await own.close()
  })

  test('without prefix is none of an attempt that comes back by TLS, even where our own address has none', async () => {
    const own = await service.with({ AUTH_API_EXTERNAL_URL: 'http://auth.example' })
    const begun = await own.otherBrowser().get(AUTHORIZE)
    const [cookie = ''] = String(cookiesOf(begun)[0]).split(';')
    const state = new URL(String(begun.headers.location)).searchParams.get('state')
    const ask = (given: string) => own.otherBrowser().get(`/callback?state=${state}&error=denied`, { cookie: given })
    expect(cookie).toMatch(/^__Host-auth-attempt-/)
    expect(refusal(await ask(cookie.slice('__Host-'.length)))).toEqual(ELSEWHERE)
    expect(queryOf(await ask(cookie))).toEqual({ error: 'denied' })
    await own.close()
  })

  test('gives foreign pages no more rights: answers allow the same as without', async () => {
    const headers = { origin: 'https://evil.example' }
    const { headers: answered } = await service.otherBrowser().get(AUTHORIZE, headers)
    expect(answered['access-control-allow-origin']).toBe('*')
    expect(answered).not.toHaveProperty('access-control-allow-credentials')
    expect(answered['access-control-expose-headers']).not.toMatch(/cookie/i)
  })
})

describe('at a provider whose page posts its answer', () => {
  let all: ProviderSignIns
  beforeAll(async () => {
    all = await startProviderSignIns()
  })
  afterAll(() => all.close())

  test('the cookie comes along from there, and without it the sign-in is refused', async () => {
    const begun = await all.service.otherBrowser().get('/authorize?provider=apple')
    expect(cookiesOf(begun)[0]).toMatch(/; SameSite=None; Secure$/)
    const attempt = await all.begin('apple', all.newAccount('apple'))
    const { location, answer } = await attempt.comeBack()
    expect(fragmentOf(answer as Answer).access_token).toBeTruthy()
    const victim = all.service.otherBrowser()
    const form = all.far.visit('apple', location, all.newAccount('apple'))
    const other = new URL(String((await all.service.get('/authorize?provider=apple')).headers.location))
    const state = String(other.searchParams.get('state'))
    expect(refusal(await victim.submit('/callback', { ...form, state }))).toEqual(ELSEWHERE)
  })
})

describe('an attempt that was asked for by something else than a navigation to us', () => {
  const ask = async (host: string) => String((await service.get(AUTHORIZE, { host })).headers.location)

  test('from another host of ours begins at the one the provider sends the browser back to', async () => {
    google.next(newPerson())
    const address = await ask('other.example')
    expect(address).toMatch(/^https:\/\/auth\.example\/callback\?begin=/)
    const browser = service.otherBrowser()
    expect(fragmentOf(await signInAt(browser, google, address)).access_token).toBeTruthy()
    // Whatever name the proxy passes on.
    const forwarded = { host: 'auth:8081', 'x-forwarded-host': 'auth.example:443' }
    expect(String((await browser.get(AUTHORIZE, forwarded)).headers.location)).toContain(google.issuer)
  })

  test('cannot be finished by its maker: the browser that opens the address begins an attempt of its own', async () => {
    google.next(newPerson())
    const address = await ask('other.example')
    const browser = service.otherBrowser()
    const callback = await visitFrom(browser, google, address)
    expect(address).not.toContain(String(callback.searchParams.get('state')))
    expect(refusal(await back(service.otherBrowser(), callback))).toEqual(ELSEWHERE)
  })

  test.each(['from another host', 'linking'])('begins once, within five minutes, as it was asked: %s', async (what) => {
    const { auth } = await service.signedIn()
    const linking = async () =>
      (await service.get('/user/identities/authorize?provider=google&skip_http_redirect=true', auth)).body.url as string
    const make = what === 'linking' ? linking : () => ask('other.example')
    const open = async (address: string) => {
      const browser = service.otherBrowser()
      const opened = await back(browser, new URL(address))
      return opened.status === 200 ? pressButton(browser, opened) : opened
    }
    const address = await make()
    expect(String((await open(address)).headers.location)).toContain(google.issuer)
    expect(refusal(await open(address))).toMatchObject({ error_code: 'bad_oauth_state' })
    const late = await make()
    service.clock.advance({ seconds: 301 })
    expect(refusal(await open(late))).toMatchObject({ error_description: 'This link has expired' })
    const changed = new URL(await make())
    changed.searchParams.set('begin', `A${changed.searchParams.get('begin')}`)
    expect(refusal(await open(changed.href))).toMatchObject({ error_description: 'This link is incomplete' })
    expect(refusal(await open('https://auth.example/callback?begin='))).toMatchObject({ error_code: 'bad_oauth_state' })
  })

  test('is not spent by a browser that looks ahead', async () => {
    google.next(newPerson())
    const address = await ask('other.example')
    const { pathname, search } = new URL(address)
    for (const [name, value] of [
      ['purpose', 'prefetch'],
      ['sec-purpose', 'prefetch;prerender'],
    ] as const) {
      expect((await service.otherBrowser().get(pathname + search, { [name]: value })).status).toBe(204)
    }
    const callback = await visitFrom(service, google, address)
    expect((await service.get(callback.pathname + callback.search, { purpose: 'prefetch' })).status).toBe(204)
    expect(fragmentOf(await back(service, callback)).access_token).toBeTruthy()
  })

  test('is refused where its parameters are too long for the header of an answer', async () => {
    const { auth } = await service.signedIn()
    const long = `&login_hint=${'x'.repeat(2000)}`
    const linking = await service.get(`/user/identities/authorize?provider=google${long}`, auth)
    const signingIn = await service.get(AUTHORIZE + long + long.replace('login_hint', 'hd'), { host: 'other.example' })
    for (const { status, body } of [linking, signingIn]) {
      expect([status, body?.error_code]).toEqual([400, 'validation_failed'])
    }
  })

  test('and is finished by another browser than the one that opened it links nothing', async () => {
    const { auth, userId } = await service.signedIn()
    const { body } = await service.get('/user/identities/authorize?provider=google&skip_http_redirect=true', auth)
    google.next(newPerson())
    const callback = await visitFrom(service.otherBrowser(), google, body.url)
    expect(refusal(await back(service, callback))).toEqual(ELSEWHERE)
    const { body: user } = await service.get(`/admin/users/${userId}`, service.admin)
    expect(user.app_metadata.providers).toEqual(['email'])
  })
})

describe('an address that links an account, which may come from a stranger,', () => {
  const addressOf = async (auth: Record<string, string>) => {
    const { body } = await service.get('/user/identities/authorize?provider=google&skip_http_redirect=true', auth)
    return new URL(body.url)
  }
  const providersOf = async (userId: string) =>
    (await service.get(`/admin/users/${userId}`, service.admin)).body.app_metadata.providers
  const beginOf = (address: URL) => ({ begin: String(address.searchParams.get('begin')) })

  test('shows whose account gets which provider, and goes there only by its button', async () => {
    const { auth, userId } = await service.signedIn("o'links&co@example.com")
    const address = await addressOf(auth)
    const victim = service.otherBrowser()
    const page = await back(victim, address)
    expect([page.status, page.headers['content-type'], page.headers.location]).toEqual([
      200,
      'text/html; charset=utf-8',
      undefined,
    ])
    expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'")
    expect(page.text).toContain(
      'at google next becomes a way in to the account o&#39;links&amp;co@example.com at site.example.',
    )
    // Come back to, it is the same page.
    expect((await back(victim, address)).status).toBe(200)
    google.next(newPerson())
    const callback = await google.visit(String((await pressButton(victim, page)).headers.location))
    await back(victim, callback)
    expect(await providersOf(userId)).toEqual(['email', 'google'])
  })

  test.each(['before', 'after'])(
    'links nothing of a reader who only sees the page %s its maker presses the button',
    async (order) => {
      const { auth, userId } = await service.signedIn()
      const address = await addressOf(auth)
      const [maker, victim] = [service.otherBrowser(), service.otherBrowser()]
      const makersPage = await back(maker, address)
      if (order === 'before') await back(victim, address)
      const begun = await pressButton(maker, makersPage)
      if (order === 'after') await back(victim, address)
      google.next(newPerson())
      const callback = await google.visit(String(begun.headers.location))
      expect(refusal(await back(victim, callback))).toEqual(ELSEWHERE)
      expect(await providersOf(userId)).toEqual(['email'])
      await back(maker, callback)
      expect(await providersOf(userId)).toEqual(['email', 'google'])
    },
  )

  test('gives the browser one cookie for its pages, in all tabs, and that of the attempt only by the button', async () => {
    const { auth } = await service.signedIn()
    const browser = service.otherBrowser()
    const pages = [await back(browser, await addressOf(auth)), await back(browser, await addressOf(auth))]
    const [cookies, ...others] = pages.map(cookiesOf)
    const attributes = 'Path=/; Max-Age=300; HttpOnly; SameSite=Lax; Secure'
    expect(cookies).toEqual([expect.stringMatching(new RegExp(`^__Host-auth-page=[\\w-]{43}; ${attributes}$`))])
    expect(others).toEqual([cookies])
    for (const page of pages) {
      expect(cookiesOf(await pressButton(browser, page))).toEqual([expect.stringMatching(/^__Host-auth-attempt-/)])
    }
  })

  test('says so in the language of the reader, and of an account without an address', async () => {
    const anonymous = await service.with({ AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' })
    const { body } = await anonymous.post('/signup', {})
    const { pathname, search } = await addressOf({ authorization: `Bearer ${body.access_token}` })
    expect((await service.get(pathname + search)).text).toContain('a way in to a guest account without an address')
    const german = await service.get(pathname + search, { 'accept-language': 'de' })
    expect(german.text).toContain('ein Zugang zu einem Gastkonto ohne Adresse')
    await anonymous.close()
  })

  test.each<[string, (victim: Pick<TestService, 'get' | 'submit'>, address: URL) => Promise<Answer>]>([
    ['that another site posts', (victim, address) => victim.submit('/callback', beginOf(address))],
    [
      'with the value of a page that its maker was shown, even without Sec-Fetch-Site',
      async (victim, address) => {
        const { text } = await back(service.otherBrowser(), address)
        await back(victim, address)
        return pressButton(victim, { text })
      },
    ],
    [
      'with the value of the same page for another address',
      async (victim, address) => {
        const { auth } = await service.signedIn()
        const other = fieldsOf(await back(victim, await addressOf(auth)))
        return victim.submit('/callback', { ...other, ...beginOf(address) })
      },
    ],
    [
      'by a browser with a cookie that came without TLS',
      async (victim, address) => {
        const page = await back(service.otherBrowser(), address)
        const planted = String(cookiesOf(page)[0]).split(';')[0] as string
        return victim.submit('/callback', fieldsOf(page), { cookie: planted.slice('__Host-'.length) })
      },
    ],
    [
      'that another host of the site posts, after the page was opened',
      async (victim, address) => {
        const page = await back(victim, address)
        return victim.submit('/callback', fieldsOf(page), { 'sec-fetch-site': 'same-site' })
      },
    ],
  ])('begins nothing by a form %s', async (_whose, submit) => {
    const { auth } = await service.signedIn()
    const address = await addressOf(auth)
    expect(refusal(await submit(service.otherBrowser(), address))).toEqual(ELSEWHERE)
    const browser = service.otherBrowser()
    const page = await back(browser, address)
    const pressed = await browser.submit('/callback', fieldsOf(page), { 'sec-fetch-site': 'same-origin' })
    expect(locationOf(pressed)).toContain(google.issuer)
  })

  test('leads nowhere once its account is deleted', async () => {
    const { auth, userId } = await service.signedIn()
    const address = await addressOf(auth)
    await service.delete(`/admin/users/${userId}`, service.admin)
    expect(refusal(await back(service, address))).toMatchObject({ error_code: 'user_not_found' })
  })
})

describe('sign-ins begun at providers and never ended', () => {
  const rows = async ({ deps }: TestService) => {
    const { count } = deps.db.fn
    const counted = deps.db.selectFrom('flow_states').select(count<string>('id').as('rows'))
    return Number((await counted.executeTakeFirstOrThrow()).rows)
  }
  const limited = (settings: Record<string, string>) => ({ ...settings, AUTH_RATE_LIMIT_HEADER: 'x-client' })
  const stranger = { 'x-client': '203.0.113.1' }
  const user = { 'x-client': '203.0.113.2' }

  test('are limited by client address, and by nothing that a stranger could use up for all', async () => {
    const own = await startTestService(
      limited({ ...google.settings('GOOGLE'), AUTH_RATE_LIMIT_TOKEN_REFRESH: '3', AUTH_WORKERS_ENABLED: 'false' }),
    )
    const answers = await Promise.all(Array.from({ length: 9 }, () => own.get(AUTHORIZE, stranger)))
    const refused = answers.filter(({ status }) => status === 429)
    expect([refused.length, await rows(own)]).toEqual([6, 3])
    expect(refused[0]).toMatchObject({
      headers: { 'retry-after': expect.stringMatching(/^\d+$/) },
      body: { error_code: 'over_request_rate_limit' },
    })
    expect((await own.get(AUTHORIZE, user)).status).toBe(302)
    // Callbacks are counted too.
    const guess = (from: object) => own.get('/callback?code=x&state=00000000-0000-4000-8000-000000000000', { ...from })
    const codes = []
    for (let time = 0; time < 4; time++) codes.push(queryOf(await guess(stranger)).error_code)
    expect(codes).toEqual([...Array(3).fill('bad_oauth_state'), 'over_request_rate_limit'])
    expect(queryOf(await guess(user)).error_code).toBe('bad_oauth_state')
    await own.close()
  })

  test('none stays longer than ten minutes after it expired', async () => {
    google.next(newPerson())
    const late = await visitFrom(service, google, AUTHORIZE)
    service.clock.advance({ seconds: 800 })
    await deleteExpired(service.deps, service.deps.log)
    expect(refusal(await back(service, late))).toMatchObject({ error_description: 'OAuth state has expired' })
    service.clock.advance({ seconds: 101 })
    await deleteExpired(service.deps, service.deps.log)
    expect(await rows(service)).toBe(0)
  })

  test('take nothing from their client address when the limit of all refuses them', async () => {
    const all = await startProviderSignIns(limited({}))
    const { now, pool } = all.service.deps
    const usedUp = `insert into rate_limits (key, points, expire) values ('provider-requests:all', 2000, $1)`
    await pool.query(usedUp, [now().getTime() + 60_000])
    const begin = async () => (await all.service.get('/authorize?provider=twitter', { ...stranger })).status
    expect(await begin()).toBe(429)
    all.service.clock.advance({ seconds: 61 })
    const statuses = []
    for (let time = 0; time < 21; time++) statuses.push(await begin())
    expect(statuses).toEqual([...Array(20).fill(302), 429])
    await all.close()
  })

  test('cause no more than 20 requests of ours by client address, and none when an address is opened again', async () => {
    const all = await startProviderSignIns(limited({}))
    const begin = (from: object) => all.service.get('/authorize?provider=twitter', { ...from })
    const answers = await Promise.all(Array.from({ length: 24 }, () => begin(stranger)))
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(4)
    expect([all.far.requests('twitter').length, await rows(all.service)]).toEqual([20, 20])
    const elsewhere = await all.service.get('/authorize?provider=twitter', { ...user, host: 'other.example' })
    const { pathname, search } = new URL(String(elsewhere.headers.location))
    for (let time = 0; time < 3; time++) await all.service.get(pathname + search, user)
    expect(all.far.requests('twitter')).toHaveLength(21)
    await all.close()
  })
})
