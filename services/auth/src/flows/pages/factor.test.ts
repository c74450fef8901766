import { perFile } from '@services/common/testing/per-file'
import { test as base, describe, expect } from 'vitest'
import { totpCode, withTotp } from '../../../test/second-factors.ts'
import { codeIn, fragmentOf, startTestService, type TestService, toSignedIn } from '../../../test/service.ts'
import { createSecurityKey, type SecurityKey } from '../../../test/webauthn/security-key.ts'
import { openPage, type SeenPage, send } from './testing/pages.ts'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() =>
    startTestService({
      AUTH_HOSTED_PAGES_ENABLED: 'true',
      AUTH_URI_ALLOW_LIST: 'https://app.example/**',
      AUTH_MFA_TRUSTED_DEVICE_TTL: '30d',
      ...{ AUTH_MFA_WEB_AUTHN_ENROLL_ENABLED: 'true', AUTH_MFA_WEB_AUTHN_VERIFY_ENABLED: 'true' },
      ...{ AUTH_WEBAUTHN_RP_ID: PARTY.rpId, AUTH_WEBAUTHN_RP_ORIGINS: PARTY.origin },
    }),
  ),
})

const PARTY = { rpId: 'auth.example', origin: 'https://auth.example' }

type Browser = ReturnType<TestService['otherBrowser']>

const FLOW = { redirect_to: 'https://app.example/done' }
const signInAddress = (flow: Record<string, string> = FLOW) => `/ui/sign-in?${new URLSearchParams(flow)}`

async function typePassword(browser: Browser, email: string, flow?: Record<string, string>) {
  const asked = await send(browser, await openPage(browser, signInAddress(flow)), { address: email })
  return send(browser, asked, { password: 'correct horse' })
}

/** Code of the next step of the app: each works once. */
function nextCode(service: TestService, secret: string) {
  service.clock.advance({ seconds: 30 })
  return totpCode(secret, service.clock.now())
}

const claimsOf = (token = '') => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

test('a user with a factor proves it before the application gets a session, which is aal2', async ({ service }) => {
  const { email, totp } = await withTotp(service)
  const browser = service.otherBrowser()
  const asked = await typePassword(browser, email)
  expect(asked).toMatchObject({ status: 200, title: 'Second factor', location: undefined })
  const wrong = await send(browser, asked, { code: '000000' })
  expect(wrong).toMatchObject({ status: 200, title: 'Second factor' })
  expect(wrong.text).toContain('This code is wrong.')
  const page = await send(browser, wrong, { code: nextCode(service, totp.secret) })
  expect(page.location).toMatch(/^https:\/\/app\.example\/done#/)
  expect(claimsOf(fragmentOf(page).access_token)).toMatchObject({ aal: 'aal2' })
})

test('with PKCE too the exchange gives the session of aal2', async ({ service }) => {
  const { email, totp } = await withTotp(service)
  const browser = service.otherBrowser()
  const verifier = 'b'.repeat(43)
  const flow = { ...FLOW, code_challenge: verifier, code_challenge_method: 'plain' }
  const page = await send(browser, await typePassword(browser, email, flow), { code: nextCode(service, totp.secret) })
  const auth_code = new URL(page.location ?? '').searchParams.get('code')
  const { body } = await service.post('/token?grant_type=pkce', { auth_code, code_verifier: verifier })
  expect(claimsOf(body.access_token)).toMatchObject({ aal: 'aal2' })
})

test('a recovery code replaces the factor', async ({ service }) => {
  const { email, recoveryCodes } = await withTotp(service)
  const browser = service.otherBrowser()
  const asked = await typePassword(browser, email)
  const recovery = await openPage(browser, asked.links['Use a recovery code'] ?? '')
  expect(recovery.text).not.toContain('name="trust"')
  expect((await send(browser, recovery, { code: 'abcd-efgh' })).text).toContain('class="error"')
  const page = await send(browser, recovery, { code: recoveryCodes[0] as string })
  expect(claimsOf(fragmentOf(page).access_token)).toMatchObject({ aal: 'aal2' })
})

test('a trusted browser is not asked again, and another one is', async ({ service }) => {
  const { email, totp } = await withTotp(service)
  const browser = service.otherBrowser()
  const asked = await typePassword(browser, email)
  await send(browser, asked, { code: nextCode(service, totp.secret), trust: 'yes' })
  await send(browser, await openPage(browser, '/ui/sign-out'))
  const page = await typePassword(browser, email)
  expect(claimsOf(fragmentOf(page).access_token)).toMatchObject({
    aal: 'aal2',
    amr: expect.arrayContaining([expect.objectContaining({ method: 'trusted_device' })]),
  })
  // Pages that want a proven factor get one.
  expect((await openPage(browser, '/ui/factor?next=/ui/account')).forms[0]?.fields).toHaveProperty('code')
  // The token was replaced by that use, and the browser keeps the next one.
  await send(browser, await openPage(browser, '/ui/sign-out'))
  service.clock.advance({ seconds: 3_600 })
  expect(fragmentOf(await typePassword(browser, email)).access_token).toBeDefined()
  expect((await typePassword(service.otherBrowser(), email)).title).toBe('Second factor')
})

test('a session that waits for its factor continues there, and opens nothing else', async ({ service }) => {
  const { email } = await withTotp(service)
  const browser = service.otherBrowser()
  await typePassword(browser, email)
  const again = await openPage(browser, signInAddress())
  expect(again.text).toContain(`You are signed in as ${email}.`)
  expect(await send(browser, again)).toMatchObject({ title: 'Second factor', location: undefined })
  expect(await openPage(browser, '/ui/sign-in?next=/ui/account')).toMatchObject({ title: 'Second factor' })
})

describe('a security key', () => {
  /** A user whose factors are keys of these names. */
  async function withKeys(service: TestService, ...names: string[]) {
    const email = `key-${crypto.randomUUID()}@example.com`
    let user = await service.signedIn(email)
    const keys: Record<string, SecurityKey> = {}
    for (const friendly_name of names) {
      const key = createSecurityKey()
      const { body: factor } = await service.post('/factors', { factor_type: 'webauthn', friendly_name }, user.auth)
      const { body } = await service.post(`/factors/${factor.id}/challenge`, {}, user.auth)
      const { challenge } = body.webauthn.credential_options.publicKey
      const webauthn = { type: 'create', credential_response: key.create({ ...PARTY, challenge }) }
      const given = { challenge_id: body.id, webauthn }
      user = toSignedIn((await service.post(`/factors/${factor.id}/verify`, given, user.auth)).body)
      keys[friendly_name] = key
    }
    return { email, keys }
  }

  /** Fields that the script sends: the answer of a key to the challenge in the page. */
  function answerOf(page: SeenPage, key: SecurityKey | undefined, party = PARTY) {
    const [, text = ''] = /data-challenge="([^"]*)"/.exec(page.text) ?? []
    const { challenge_id, options } = JSON.parse(text.replaceAll('&quot;', '"'))
    return { challenge_id, credential: JSON.stringify(key?.get({ ...party, challenge: options.challenge })) }
  }

  test('proves the second factor, and a wrong answer is refused with a new challenge', async ({ service }) => {
    const { email, keys } = await withKeys(service, 'Blue')
    const browser = service.otherBrowser()
    const asked = await typePassword(browser, email)
    expect(asked).toMatchObject({ title: 'Second factor', location: undefined, problem: undefined })
    expect(asked.text).toContain('needs a browser that supports it and runs scripts')
    const elsewhere = answerOf(asked, keys.Blue, { ...PARTY, origin: 'https://evil.example' })
    const refused = await send(browser, asked, elsewhere)
    expect(refused.problem).toBe('The security key could not be verified. Please try again.')
    // Without a script there is no answer.
    expect((await send(browser, refused)).problem).toBe(refused.problem)
    const page = await send(browser, refused, answerOf(refused, keys.Blue))
    expect(claimsOf(fragmentOf(page).access_token)).toMatchObject({ aal: 'aal2' })
  })

  test('opens the account, and of several keys the user chooses one', async ({ service }) => {
    const { email, keys } = await withKeys(service, 'Blue', 'Red')
    const browser = service.otherBrowser()
    await typePassword(browser, email)
    const asked = await openPage(browser, '/ui/account/sessions')
    const [[label = '', link = ''] = []] = Object.entries(asked.links).filter(([text]) => text.includes('“'))
    const [, name = ''] = /“(.*)”/.exec(label) ?? []
    const chosen = await openPage(browser, link)
    const page = await send(browser, chosen, answerOf(chosen, keys[name]))
    expect(page.title).toBe('Where you are signed in')
  })

  test('that answers to another site alone has no button, and recovery codes remain', async ({ service }) => {
    const { email } = await withKeys(service, 'Blue')
    const other = await service.with({ AUTH_WEBAUTHN_RP_ORIGINS: 'https://app.auth.example' })
    const browser = other.otherBrowser()
    const asked = await typePassword(browser, email)
    expect(asked.problem).toContain('support none of your second factors')
    expect(asked.links).toHaveProperty('Use a recovery code')
    await other.close()
  })
})

describe('where a second factor is demanded', () => {
  const demanding = (service: TestService, more = {}) =>
    service.with({ AUTH_MFA_REQUIRED_FOR: 'everybody', AUTH_MFA_TRUSTED_DEVICE_TTL: '0', ...more })

  /** Adds an app on the page that a demand led to. */
  async function addApp(service: TestService, browser: Browser, asked: SeenPage) {
    expect([asked.title, asked.news]).toEqual(['Second factor', expect.stringContaining('is required here')])
    const begun = await send(browser, asked, {}, { press: 'Add an authenticator app' })
    const { secret = '' } = begun.forms[0]?.fields ?? {}
    const wrong = await send(browser, begun, { code: '000000' })
    return send(browser, wrong, { code: totpCode(secret, service.clock.now()) })
  }

  test('a user without one adds it before the application gets a session, which is aal2', async ({ service }) => {
    const strict = await demanding(service)
    const email = `demanded-${crypto.randomUUID()}@example.com`
    await strict.signedIn(email)
    const browser = strict.otherBrowser()
    const asked = await typePassword(browser, email)
    expect(asked.location).toBeUndefined()
    // Nor by the press that leads on, before the factor is there.
    const again = await send(browser, await openPage(browser, signInAddress()))
    const codes = await addApp(strict, browser, again)
    expect([codes.title, codes.location]).toEqual(['Recovery codes', undefined])
    const page = await send(browser, codes, {}, { press: 'I have kept them' })
    expect(page.location).toMatch(/^https:\/\/app\.example\/done#/)
    expect(claimsOf(fragmentOf(page).access_token)).toMatchObject({ aal: 'aal2' })
    await strict.close()
  })

  test('without recovery codes the page of the new app leads on', async ({ service }) => {
    const strict = await demanding(service, { AUTH_MFA_RECOVERY_CODES_ENABLED: 'false' })
    const email = `demanded-${crypto.randomUUID()}@example.com`
    await strict.signedIn(email)
    const browser = strict.otherBrowser()
    const added = await addApp(strict, browser, await typePassword(browser, email))
    expect(added.news).toBe('The authenticator app is added.')
    const page = await send(browser, added, {}, { press: 'Continue' })
    expect(claimsOf(fragmentOf(page).access_token)).toMatchObject({ aal: 'aal2' })
    await strict.close()
  })

  test('a forgotten password is replaced after it, and an act on the account too', async ({ service }) => {
    const strict = await demanding(service)
    const email = `demanded-${crypto.randomUUID()}@example.com`
    await strict.signedIn(email)
    const browser = strict.otherBrowser()
    const recovery = await openPage(browser, `/ui/recover?${new URLSearchParams(FLOW)}`)
    const code = await send(browser, recovery, { address: email })
    const chosen = await send(browser, code, { code: codeIn((await strict.mailbox.waitFor(email)).text) })
    const codes = await addApp(strict, browser, await send(browser, chosen, { password: 'another horse' }))
    const back = await send(browser, codes, {}, { press: 'I have kept them' })
    expect(back.title).toBe(chosen.title)
    expect((await send(browser, back, { password: 'another horse' })).location).toMatch(/^https:\/\/app\.example/)

    const other = `demanded-${crypto.randomUUID()}@example.com`
    await strict.signedIn(other)
    const second = strict.otherBrowser()
    await typePassword(second, other)
    const asked = await send(second, await openPage(second, '/ui/account/password'), { password: 'another horse' })
    const kept = await send(second, await addApp(strict, second, asked), {}, { press: 'I have kept them' })
    expect(kept.title).toBe('Password')
    await strict.close()
  })

  test('where apps cannot be added, the application decides', async ({ service }) => {
    const strict = await demanding(service, { AUTH_MFA_TOTP_ENROLL_ENABLED: 'false' })
    const email = `demanded-${crypto.randomUUID()}@example.com`
    await strict.signedIn(email)
    const page = await typePassword(strict.otherBrowser(), email)
    expect(claimsOf(fragmentOf(page).access_token)).toMatchObject({ aal: 'aal1' })
    await strict.close()
  })
})
