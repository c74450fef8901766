// The basic and config plans of the OpenID conformance suite, module by module. The suite's client sends a PKCE
// challenge here, which this service requires of all clients.
//
// Not claimed:
// - oidcc-response-type-missing: the contract (section 4) takes a request without `response_type` as one for a code.
// - oidcc-userinfo-post-body: a token in a body is optional (RFC 6750, section 2.2), and stands in logs of bodies.
// - oidcc-scope-address: skipped by the suite, because discovery does not name the scope. Accounts have no address.
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  authorizePath,
  begun,
  CALLBACK,
  decide,
  newVerifier,
  type Parameters,
  view,
} from '../../src/flows/oauth-server/testing/applications.ts'
import { openPage, type SeenPage, send } from '../../src/flows/pages/testing/pages.ts'
import { locationOf, queryOf, type SignedIn, type TestService, toSignedIn } from '../service.ts'
import {
  ALL_SCOPES,
  type Application,
  application,
  askTokens,
  bearerOf,
  codeFor,
  ISSUER,
  redeem,
  refresh,
  startOAuthServer,
  tokensFor,
} from './application.ts'

const EMAIL = 'ada@example.com'
const PASSWORD = 'correct horse'
const PROFILE = { name: 'Ada', picture: 'https://a.example/ada.png', preferred_username: 'ada' }

let service: TestService
let client: Application
let user: SignedIn
beforeAll(async () => {
  service = await startOAuthServer()
  client = await application(service)
  const account = { phone: '491701234567', phone_confirm: true, user_metadata: PROFILE }
  await service.post(
    '/admin/users',
    { email: EMAIL, password: PASSWORD, email_confirm: true, ...account },
    service.admin,
  )
  user = await signIn()
})
afterAll(() => service.close())

const signIn = async () =>
  toSignedIn((await service.post('/token?grant_type=password', { email: EMAIL, password: PASSWORD })).body)

const keySet = async () => createLocalJWKSet((await service.get('/.well-known/jwks.json')).body)

/** Verifies an id_token as a client must (OpenID Connect Core, 3.1.3.7). */
async function verified(idToken: string) {
  const currentDate = service.clock.now()
  return (await jwtVerify(idToken, await keySet(), { issuer: ISSUER, audience: client.id, currentDate })).payload
}

/** Signs in with these parameters; the claims of the id_token. */
const claimsWith = async (parameters: Parameters) =>
  verified((await tokensFor(service, client, user, { scope: 'openid', ...parameters })).id_token)

const userinfo = (token: string) => service.get('/oauth/userinfo', bearerOf(token))

describe('basic plan', () => {
  test('oidcc-server', async () => {
    const code = await codeFor(service, client, user, { scope: 'openid', nonce: 'n-0S6' })
    const given = await redeem(service, client, code)
    expect(given).toMatchObject({ status: 200, headers: { 'cache-control': 'no-store' } })
    expect(String(given.body.token_type).toLowerCase()).toBe('bearer')
    const claims = await verified(given.body.id_token)
    const now = Math.floor(service.clock.now().getTime() / 1000)
    expect(claims).toMatchObject({ sub: user.userId, nonce: 'n-0S6', iat: now, at_hash: expect.any(String) })
    expect(claims.exp).toBeGreaterThan(now)
    expect(Number(claims.auth_time)).toBeLessThanOrEqual(now)
  })

  test('oidcc-userinfo-get, oidcc-userinfo-post-header', async () => {
    const { access_token } = await tokensFor(service, client, user)
    const { status, body } = await userinfo(access_token)
    expect([status, body.sub]).toEqual([200, user.userId])
    expect((await service.submit('/oauth/userinfo', {}, bearerOf(access_token))).body).toEqual(body)
  })

  test('oidcc-ensure-request-without-nonce-succeeds-for-code-flow', async () => {
    expect(await claimsWith({ nonce: undefined })).not.toHaveProperty('nonce')
  })

  const EMAIL_CLAIMS = { email: EMAIL, email_verified: true }
  const PHONE_CLAIMS = { phone_number: '+491701234567', phone_number_verified: true }
  test.each([
    ['oidcc-scope-profile', 'openid profile', { ...PROFILE, updated_at: expect.any(Number) }],
    ['oidcc-scope-email', 'openid email', EMAIL_CLAIMS],
    ['oidcc-scope-phone', 'openid phone', PHONE_CLAIMS],
    ['oidcc-scope-all', 'openid profile email phone', { ...PROFILE, ...EMAIL_CLAIMS, ...PHONE_CLAIMS }],
    ['oidcc-ensure-other-scope-order-succeeds', 'email openid', EMAIL_CLAIMS],
  ])('%s', async (_, scope, claims) => {
    const { id_token, access_token } = await tokensFor(service, client, user, { scope })
    expect(await verified(id_token)).toMatchObject(claims)
    const { body } = await userinfo(access_token)
    expect(body).toMatchObject({ sub: user.userId, ...claims })
    if (!scope.includes('phone')) expect(body).not.toHaveProperty('phone_number')
    if (!scope.includes('email')) expect(body).not.toHaveProperty('email')
    if (!scope.includes('profile')) expect(body).not.toHaveProperty('name')
  })

  test.each([
    ['oidcc-display-page', { display: 'page' }],
    ['oidcc-display-popup', { display: 'popup' }],
    ['oidcc-ensure-request-with-unknown-parameter-succeeds', { extra: 'foobar' }],
    ['oidcc-ui-locales', { ui_locales: 'se de' }],
    ['oidcc-claims-locales', { claims_locales: 'se' }],
    ['oidcc-ensure-request-with-acr-values-succeeds', { acr_values: '1 2' }],
    ['oidcc-login-hint', { login_hint: EMAIL }],
    ['oidcc-claims-essential', { claims: '{"userinfo":{"name":{"essential":true}}}' }],
  ])('%s', async (_, parameters) => {
    expect((await claimsWith(parameters)).sub).toBe(user.userId)
  })

  test('oidcc-id-token-hint', async () => {
    const { id_token } = await tokensFor(service, client, user, { scope: 'openid' })
    const page = await browserOf()
    expect(
      (await page(authorizePath(client.id, { scope: 'openid', prompt: 'none', id_token_hint: id_token }))).code,
    ).toEqual(expect.any(String))
  })

  /** Lets a user answer a request who signs in again meanwhile; the claims before and after. */
  async function afterNewSignIn(parameters: Parameters) {
    const first = await claimsWith({})
    service.clock.advance({ seconds: 2 })
    const { verifier, challenge } = newVerifier()
    const id = await begun(service, client.id, { scope: 'openid', code_challenge: challenge, ...parameters })
    expect((await view(service, id, user.auth)).body.authorization_id).toBe(id)
    expect(await decide(service, id, user.auth)).toMatchObject({ body: { error_code: 'reauthentication_needed' } })
    service.clock.advance({ seconds: 1 })
    const { body } = await decide(service, id, (await signIn()).auth)
    const code = new URL(body.redirect_url).searchParams.get('code') ?? expect.fail(body.redirect_url)
    return { first, second: await verified((await redeem(service, client, { code, verifier })).body.id_token) }
  }

  test.each([
    ['oidcc-prompt-login', { prompt: 'login' }],
    ['oidcc-max-age-1', { max_age: '1' }],
  ])('%s', async (_, parameters) => {
    const { first, second } = await afterNewSignIn(parameters)
    expect([second.sub, Number(second.auth_time) > Number(first.auth_time)]).toEqual([first.sub, true])
  })

  test('oidcc-max-age-10000', async () => {
    const [first, second] = [await claimsWith({}), await claimsWith({ max_age: '10000' })]
    expect([second.sub, second.auth_time]).toEqual([first.sub, first.auth_time])
  })

  test('oidcc-codereuse', async () => {
    const code = await codeFor(service, client, user, { scope: 'openid' })
    expect((await redeem(service, client, code)).status).toBe(200)
    expect(await redeem(service, client, code)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('oidcc-codereuse-30seconds', async () => {
    const code = await codeFor(service, client, user, { scope: 'openid' })
    const { body: tokens } = await redeem(service, client, code)
    service.clock.advance({ seconds: 30 })
    expect(await redeem(service, client, code)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect((await userinfo(tokens.access_token)).status).not.toBe(200)
  })

  test('oidcc-ensure-registered-redirect-uri', async () => {
    const refusal = await service.get(authorizePath(client.id, { redirect_uri: `${CALLBACK}/unregistered` }))
    expect([refusal.status, refusal.headers.location]).toEqual([400, undefined])
  })

  test('oidcc-ensure-post-request-succeeds', async () => {
    const form = Object.fromEntries(new URLSearchParams(authorizePath(client.id, { scope: 'openid' }).split('?')[1]))
    const answered = await service.submit('/oauth/authorize', form)
    expect([answered.status, queryOf(answered).authorization_id]).toEqual([303, expect.any(String)])
  })

  test('oidcc-server-client-secret-post', async () => {
    const poster = await application(service, { token_endpoint_auth_method: 'client_secret_post' })
    const code = await codeFor(service, poster, user, { scope: 'openid' })
    const by = { headers: {}, fields: { client_id: poster.id, client_secret: String(poster.secret) } }
    const { status, body } = await redeem(service, by, code)
    expect([status, decodeJwt(body.id_token).aud]).toEqual([200, [poster.id]])
  })

  test.each([
    [
      'oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported',
      { request: 'e30.e30.' },
      'request_not_supported',
    ],
    ['oidcc-ensure-request-object-with-redirect-uri', { request: 'e30.e30.' }, 'request_not_supported'],
  ])('%s', async (_, parameters, error) => {
    const refusal = await service.get(authorizePath(client.id, { scope: 'openid', ...parameters }))
    expect(queryOf(refusal)).toMatchObject({ error, state: 'st', iss: ISSUER })
  })

  test('oidcc-refresh-token', async () => {
    const first = await tokensFor(service, client, user, { scope: 'openid offline_access' })
    const { status, body } = await refresh(service, client, first.refresh_token)
    expect([status, body]).toEqual([200, expect.objectContaining({ access_token: expect.any(String) })])
    expect(body.refresh_token).not.toBe(first.refresh_token)
    if (body.id_token) {
      const [before, after] = [await verified(first.id_token), await verified(body.id_token)]
      expect([after.iss, after.sub, after.aud, after.auth_time]).toEqual([
        before.iss,
        before.sub,
        before.aud,
        before.auth_time,
      ])
    }
    const other = await application(service)
    const byOther = await refresh(service, other, body.refresh_token)
    expect([byOther.status, byOther.body.access_token]).toEqual([400, undefined])
  })

  test('oidcc-ensure-request-with-valid-pkce-succeeds', async () => {
    const code = await codeFor(service, client, user, { scope: 'openid' })
    expect((await redeem(service, client, code)).status).toBe(200)
  })

  test('an unknown grant type and an unreadable request have their errors (RFC 6749, 5.2)', async () => {
    expect((await askTokens(service, client, { grant_type: 'password' })).body.error).toBe('unsupported_grant_type')
    expect((await askTokens(service, client, {})).body.error).toBe('invalid_request')
  })
})

/** A browser at the hosted pages, signed in unless `anonymous`; opens a request and returns what the redirect holds. */
async function browserOf(anonymous?: 'anonymous') {
  const hosted = await service.with({ AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '' })
  const browser = hosted.otherBrowser()
  if (!anonymous) {
    const page = await openPage(browser, '/ui/sign-in')
    await send(browser, await send(browser, page, { address: EMAIL }), { password: PASSWORD })
  }
  return async (path: string): Promise<Record<string, string>> => {
    const page: SeenPage = await openPage(browser, locationOf(await browser.get(path)).replace(ISSUER, ''))
    await hosted.close()
    return queryOf(page)
  }
}

describe('basic plan, at the hosted pages', () => {
  test('oidcc-prompt-none-not-logged-in', async () => {
    const open = await browserOf('anonymous')
    const back = await open(authorizePath(client.id, { scope: 'openid', prompt: 'none' }))
    expect(back).toMatchObject({ error: 'login_required', state: 'st', iss: ISSUER })
  })

  test('oidcc-prompt-none-logged-in', async () => {
    const first = await claimsWith({})
    const { verifier, challenge } = newVerifier()
    const open = await browserOf()
    const back = await open(authorizePath(client.id, { scope: 'openid', prompt: 'none', code_challenge: challenge }))
    const given = await redeem(service, client, { code: String(back.code), verifier })
    expect((await verified(given.body.id_token)).sub).toBe(first.sub)
  })
})

test('oidcc-discovery-endpoint-verification', async () => {
  const { status, body, headers } = await service.get('/.well-known/openid-configuration')
  expect([status, headers['content-type']]).toEqual([200, expect.stringContaining('application/json')])
  expect(body).toMatchObject({
    issuer: ISSUER,
    authorization_endpoint: `${ISSUER}/oauth/authorize`,
    token_endpoint: `${ISSUER}/oauth/token`,
    userinfo_endpoint: `${ISSUER}/oauth/userinfo`,
    jwks_uri: `${ISSUER}/.well-known/jwks.json`,
    registration_endpoint: `${ISSUER}/oauth/clients/register`,
    response_types_supported: ['code'],
    response_modes_supported: ['query', 'form_post'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    code_challenge_methods_supported: ['S256'],
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
  })
  expect(body.scopes_supported).toEqual(expect.arrayContaining(ALL_SCOPES.split(' ')))
  expect(body.scopes_supported).not.toContain('address')
  expect(body.claims_supported).toEqual(
    expect.arrayContaining(['sub', 'iss', 'aud', 'exp', 'iat', 'auth_time', 'email']),
  )
  expect(body.token_endpoint_auth_methods_supported).toEqual(
    expect.arrayContaining(['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none']),
  )
  const { keys } = (await service.get('/.well-known/jwks.json')).body
  for (const key of keys) expect(key).toEqual(expect.not.objectContaining({ d: expect.anything() }))
  // Each endpoint is there.
  for (const name of Object.keys(body).filter((name) => /_endpoint$/.test(name))) {
    const path = String(body[name]).replace(ISSUER, '')
    const [byGet, byPost] = [await service.get(path), await service.submit(path, {})]
    expect([name, byGet.status === 404 && byPost.status === 404]).toEqual([name, false])
  }
})
