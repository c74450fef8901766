// Proofs that account pages ask for: they renew the session that is there. The pages themselves: account.test.ts.
import { perFile } from '@services/common/testing/per-file'
import { test as base, describe, expect } from 'vitest'
import { claimsOf, enrollTotp, refresh, totpCode, verifyTotp } from '../../../../test/second-factors.ts'
import { codeIn, fragmentOf, startTestService, type TestService } from '../../../../test/service.ts'
import { openPage, type SeenPage, send } from '../testing/pages.ts'

const test = base.extend<object & { service: TestService; single: TestService }>({
  service: perFile(() => startTestService(SETTINGS)),
  single: perFile(() => startTestService({ ...SETTINGS, AUTH_SESSIONS_SINGLE_PER_USER: 'true' })),
})

const SETTINGS = {
  AUTH_HOSTED_PAGES_ENABLED: 'true',
  AUTH_SELF_DELETION_ENABLED: 'true',
  AUTH_URI_ALLOW_LIST: 'https://app.example/**',
}
const PASSWORD = 'correct horse'
const QUARTER = { seconds: 15 * 60 + 1 }
const TO_APP = '/ui/sign-in?redirect_to=https%3A%2F%2Fapp.example%2F'

type Browser = ReturnType<TestService['otherBrowser']>
let count = 0

async function typePassword(browser: Browser, page: SeenPage, email: string) {
  const password = await send(browser, page, { address: email })
  return send(browser, password, { password: PASSWORD })
}

/** A browser that has signed in for an application, which has tokens of the same session. */
async function withApplication(service: TestService, way: 'implicit' | 'pkce' = 'implicit') {
  const email = `proof-${++count}@example.com`
  const { userId } = await service.signedIn(email, PASSWORD)
  await service.deps.db.deleteFrom('sessions').where('user_id', '=', userId).execute()
  const browser = service.otherBrowser()
  const verifier = 'v'.repeat(43)
  const challenge = way === 'pkce' ? `&code_challenge=${verifier}&code_challenge_method=plain` : ''
  const handedOver = await typePassword(browser, await openPage(browser, TO_APP + challenge), email)
  const own = { userId, email, browser }
  if (way === 'implicit') return { ...own, refreshToken: fragmentOf(handedOver).refresh_token ?? '' }
  const auth_code = new URL(handedOver.location ?? '').searchParams.get('code')
  const { body } = await service.post('/token?grant_type=pkce', { auth_code, code_verifier: verifier })
  return { ...own, refreshToken: String(body.refresh_token) }
}

/** Gives the user an app in another session, which ends that of the browser; the browser signs in again with both. */
async function addFactor(service: TestService, { browser, email }: { browser: Browser; email: string }) {
  const { body } = await service.post('/token?grant_type=password', { email, password: PASSWORD })
  const user = { auth: { authorization: `Bearer ${body.access_token}` } }
  const totp = await enrollTotp(service, user)
  await verifyTotp(service, user, totp)
  const asked = await typePassword(browser, await openPage(browser, '/ui/account'), email)
  service.clock.advance({ seconds: 30 })
  await send(browser, asked, { code: totpCode(totp.secret, service.clock.now()) })
}

const sessionsOf = ({ deps }: TestService, userId: string) =>
  deps.db.selectFrom('sessions').select(['id', 'aal', 'amr']).where('user_id', '=', userId).execute()

const methodsOf = (session: { amr: readonly { method: string }[] } | undefined) =>
  session?.amr.map(({ method }) => method)

/** Takes the browser from a page that demands a proof to the page that asks for it. */
async function askedForProof(service: TestService, browser: Browser) {
  service.clock.advance(QUARTER)
  const asked = await send(browser, await openPage(browser, '/ui/account/export'))
  expect(asked.title).toBe('Confirm that it is you')
  return asked
}

for (const setting of ['service', 'single'] as const) {
  test(`a proof by the password renews the session, which the application keeps (${setting})`, async ({
    service: shared,
    single,
  }) => {
    const service = { service: shared, single }[setting]
    const { userId, browser, refreshToken } = await withApplication(service)
    const [before] = await sessionsOf(service, userId)
    const asked = await askedForProof(service, browser)
    const back = await send(browser, asked, { password: PASSWORD })
    expect(back.title).toBe('Download your data')
    expect((await send(browser, back)).headers['content-disposition']).toContain('account.json')
    const [after, ...others] = await sessionsOf(service, userId)
    expect(others).toEqual([])
    expect(after).toMatchObject({ id: before?.id, aal: 'aal1' })
    expect(after?.amr).toEqual([{ method: 'password', timestamp: Math.floor(service.clock.now().getTime() / 1000) }])
    expect(await refresh(service, refreshToken)).toMatchObject({ status: 200 })
  })
}

test('a proof by the other way in renews the session too, and both ways are known of it', async ({ service }) => {
  const { userId, email, browser } = await withApplication(service)
  const asked = await askedForProof(service, browser)
  const other = await openPage(browser, asked.links['Sign in again in another way'] ?? '')
  const code = await send(
    browser,
    await send(browser, other, { address: email }),
    {},
    { press: 'Send me a code instead' },
  )
  const back = await send(browser, code, { code: codeIn((await service.mailbox.waitFor(email)).text) })
  expect(back.title).toBe('Download your data')
  const sessions = await sessionsOf(service, userId)
  expect(sessions.map(methodsOf)).toEqual([['otp', 'password']])
})

describe('an application that shares the session stays signed in after', () => {
  type Own = Awaited<ReturnType<typeof withApplication>>
  const codeOf = (service: TestService, secret: string) => {
    service.clock.advance({ seconds: 30 })
    return totpCode(secret, service.clock.now())
  }
  const withFactor = async (service: TestService, { browser }: Own) => {
    const page = await openPage(browser, '/ui/account/factors')
    const shown = await send(browser, page, { name: 'App' }, { press: 'Add an authenticator app' })
    const secret = shown.forms.find(({ fields }) => fields.way === 'prove')?.fields.secret ?? ''
    const codes = await send(browser, shown, { code: codeOf(service, secret) }, { press: 'Confirm' })
    expect(codes.title).toBe('Recovery codes')
    return { secret, recoveryCode: /<code>(.*?)<\/code>/.exec(codes.text)?.[1] ?? '' }
  }
  const proveFactor = async ({ browser }: Own, code: string, way = '') => {
    const asked = await openPage(browser, `/ui/factor?next=/ui/account${way}`)
    expect((await send(browser, asked, { code })).title).toBe('Your account')
  }
  const refreshed = async (service: TestService, own: Own) => {
    const { status, body } = await refresh(service, own.refreshToken)
    expect([status, body.error_code]).toEqual([200, undefined])
    own.refreshToken = body.refresh_token
    return claimsOf({ accessToken: body.access_token })
  }

  test.for<[string, (service: TestService, own: Own) => Promise<string>]>([
    ['its first factor is added', async (service, own) => (await withFactor(service, own)) && 'aal2'],
    [
      'a factor is proven anew',
      async (service, own) => {
        const { secret } = await withFactor(service, own)
        await proveFactor(own, codeOf(service, secret))
        return 'aal2'
      },
    ],
    [
      'a factor is proven anew while it refreshed',
      async (service, own) => {
        const { secret } = await withFactor(service, own)
        await refreshed(service, own)
        await proveFactor(own, codeOf(service, secret))
        return 'aal2'
      },
    ],
    [
      'a recovery code',
      async (service, own) => {
        const { recoveryCode } = await withFactor(service, own)
        await proveFactor(own, recoveryCode, '&factor=recovery')
        return 'aal2'
      },
    ],
    [
      'a new password',
      async (_, { browser }) => {
        const page = await openPage(browser, '/ui/account/password')
        const saved = await send(browser, page, { password: 'violet tractor 91', current_password: PASSWORD })
        expect(saved.problem).toBeUndefined()
        return 'aal1'
      },
    ],
  ])('%s', async ([, act], { service }) => {
    for (const flow of ['implicit', 'pkce'] as const) {
      const own = await withApplication(service, flow)
      const aal = await act(service, own)
      service.clock.advance(QUARTER)
      const stolen = own.refreshToken
      expect([flow, await refreshed(service, own)]).toMatchObject([flow, { aal }])
      expect((await openPage(own.browser, '/ui/account')).text).toContain(own.email)
      // Real reuse still ends the session, for both.
      await refreshed(service, own)
      expect(await refresh(service, stolen)).toMatchObject({ body: { error_code: 'refresh_token_already_used' } })
      expect(await refresh(service, own.refreshToken)).toMatchObject({ status: 400 })
      expect((await openPage(own.browser, '/ui/account')).title).toBe('Sign in')
    }
  })
})

test('two presses of a proof at once leave one session', async ({ service }) => {
  const { userId, browser } = await withApplication(service)
  const asked = await askedForProof(service, browser)
  const pages = await Promise.all([1, 2].map(() => send(browser, asked, { password: PASSWORD })))
  expect(pages.map(({ title }) => title)).toEqual(['Download your data', 'Download your data'])
  expect(await sessionsOf(service, userId)).toHaveLength(1)
})

test('a proof keeps the second factor of the session, and lends it to no other', async ({ service }) => {
  const own = await withApplication(service)
  const { userId, browser } = own
  await addFactor(service, own)
  const asked = await askedForProof(service, browser)
  expect((await send(browser, asked, { password: PASSWORD })).title).toBe('Download your data')
  const sessions = await sessionsOf(service, userId)
  expect(sessions.map(({ aal }) => aal)).toEqual(['aal2', 'aal2'])
})

test('in a session of two factors a code by mail replaces no current password', async ({ service: shared }) => {
  const service = await shared.with({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true' })
  const own = await withApplication(service)
  const { email, browser } = own
  await addFactor(service, own)
  service.clock.advance(QUARTER)
  const asked = await openPage(browser, '/ui/account/confirm?next=/ui/account/password')
  const again = await openPage(browser, asked.links['Sign in again in another way'] ?? '')
  const ways = await send(browser, again, { address: email })
  const code = await send(browser, ways, {}, { press: 'Send me a code instead' })
  const password = await send(browser, code, { code: codeIn((await service.mailbox.waitFor(email)).text) })
  const answer = await send(browser, password, { current_password: '', password: 'violet tractor 91' })
  expect(answer.problem).toBe('Please enter your current password.')
  const signIn = { email, password: PASSWORD }
  expect(await service.post('/token?grant_type=password', signIn)).toMatchObject({ status: 200 })
})

test('a proof where the session has ended meanwhile is a sign-in', async ({ service }) => {
  const { userId, email, browser } = await withApplication(service)
  const asked = await askedForProof(service, browser)
  const other = await openPage(browser, asked.links['Sign in again in another way'] ?? '')
  const password = await send(browser, other, { address: email })
  await service.deps.db.deleteFrom('sessions').where('user_id', '=', userId).execute()
  expect((await send(browser, password, { password: PASSWORD })).title).toBe('Download your data')
  expect(await sessionsOf(service, userId)).toHaveLength(1)
})

test('a sign-in of another user leaves the session of the first', async ({ service }) => {
  const [first, second] = [await withApplication(service), await withApplication(service)]
  const asked = await askedForProof(service, first.browser)
  const other = await openPage(first.browser, asked.links['Sign in again in another way'] ?? '')
  await typePassword(first.browser, other, second.email)
  expect((await openPage(first.browser, '/ui/account')).text).toContain(second.email)
  const [kept] = await sessionsOf(service, first.userId)
  expect(kept?.amr[0]?.timestamp).toBeLessThan(service.clock.now().getTime() / 1000 - QUARTER.seconds + 1)
})

describe('a confirmed address, where one session is valid,', () => {
  const change = async (service: TestService) => {
    const own = await withApplication(service)
    const fresh = `fresh-proof-${count}@example.com`
    const pending = await send(own.browser, await openPage(own.browser, '/ui/account/addresses'), { email: fresh })
    expect(pending.news).toContain('on its way')
    const mails = await Promise.all([own.email, fresh].map((to) => service.mailbox.waitFor(to)))
    return { ...own, fresh, pending, mails }
  }
  const isSignedIn = async (service: TestService, { browser, userId, fresh, refreshToken }: Changed) => {
    expect((await openPage(browser, '/ui/account')).text).toContain(fresh)
    const sessions = await sessionsOf(service, userId)
    // A confirmation proves a mailbox, and no person: it renews no proof.
    expect(sessions.map(methodsOf)).toEqual([['password']])
    expect(await refresh(service, refreshToken)).toMatchObject({ status: 200 })
  }
  type Changed = Awaited<ReturnType<typeof change>>

  test('by its codes leaves browser and application signed in', async ({ single }) => {
    const changed = await change(single)
    let page = changed.pending
    for (const { to, text } of changed.mails) {
      const forms = page.forms.filter(({ fields }) => fields.to === to[0])
      page = await send(changed.browser, { ...page, forms }, { code: codeIn(text) })
    }
    expect(page.news).toBe('The address is confirmed.')
    await isSignedIn(single, changed)
  })

  test('by its links leaves browser and application signed in', async ({ single }) => {
    const changed = await change(single)
    for (const { text } of changed.mails) {
      const [, link = ''] = /https:\/\/auth\.example(\/ui\/confirm\?\S+)/.exec(text) ?? []
      expect(await send(changed.browser, await openPage(changed.browser, link))).toMatchObject({ title: 'Addresses' })
    }
    await isSignedIn(single, changed)
  })
})

describe('a refusal that a page meets on its way', () => {
  test('to the code for a new password is shown, and the page asks for a code sent before', async ({ service }) => {
    const strict = await service.with({
      AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true',
      AUTH_SMTP_MAX_FREQUENCY: '60s',
    })
    const { browser, email } = await withApplication(strict)
    const page = await openPage(browser, '/ui/new-password')
    const sent = await send(browser, page, { password: 'violet tractor 91' })
    expect(sent.problem).toBe('Please confirm with the code that we sent you.')
    await strict.mailbox.waitFor(email)
    const refused = await send(browser, sent, { password: 'violet tractor 91', nonce: '' })
    expect(refused.problem).toContain('A mail was requested only a moment ago')
    expect(refused.forms[0]?.fields).toHaveProperty('nonce')
    await strict.close()
  })

  test.for([
    ['passkeys', 'passkeys'],
    ['devices', 'trusted_devices'],
    ['factors', 'recovery_codes'],
  ] as const)('to the content of /ui/account/%s is no empty list', async ([name, table], { service }) => {
    const broken = await service.with({
      ...{ AUTH_PASSKEY_ENABLED: 'true', AUTH_MFA_TRUSTED_DEVICE_TTL: '30d' },
      ...{ AUTH_WEBAUTHN_RP_ID: 'auth.example', AUTH_WEBAUTHN_RP_DISPLAY_NAME: 'Site' },
      AUTH_WEBAUTHN_RP_ORIGINS: 'https://auth.example',
    })
    const own = await withApplication(broken)
    const { browser } = own
    if (name === 'factors') await addFactor(broken, own)
    expect(await openPage(browser, `/ui/account/${name}`)).toMatchObject({ problem: undefined })
    await broken.deps.pool.query(`alter table ${table} rename to away`)
    const page = await openPage(browser, `/ui/account/${name}`)
    await broken.deps.pool.query(`alter table away rename to ${table}`)
    expect([page.status, page.problem]).toEqual([200, 'Something went wrong on our side. Please try again.'])
    expect(page.text).not.toContain('You have no')
    await broken.close()
  })
})
