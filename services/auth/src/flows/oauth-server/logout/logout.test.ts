// GET, POST /oauth/logout and /ui/logout (OpenID Connect RP-Initiated Logout 1.0).
import { perFile } from '@services/common/testing/per-file'
import { test as base, expect } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { visitor } from '../../pages/oauth/testing/visitor.ts'
import { openPage } from '../../pages/testing/pages.ts'
import { hostedSettings, registered } from '../testing/applications.ts'

const AFTERWARDS = 'https://app.example/bye'

const test = base.extend<object & { service: TestService }>({
  service: perFile(async () =>
    startTestService({
      ...(await hostedSettings()),
    }),
  ),
})

/** A user who is signed in on our pages, and in an application with an id_token. */
async function signedIn(service: TestService) {
  const { clientId } = await registered(service, { post_logout_redirect_uris: [AFTERWARDS] })
  const user = await visitor(service)
  await user.signIn(await user.open('/ui/account'))
  const application = await service.post('/token?grant_type=password', { email: user.email, password: 'correct horse' })
  const claims = JSON.parse(Buffer.from(application.body.access_token.split('.')[1], 'base64url').toString())
  await service.deps.pool.query(
    `update sessions set oauth_client_id = $1, scopes = '[]', resources = '[]' where id = $2`,
    [clientId, claims.session_id],
  )
  const idToken = (more: object = {}) =>
    service.deps.keys.signIdToken({
      at_hash: 'x',
      aud: [clientId],
      sub: user.userId,
      sid: claims.session_id,
      exp: 1,
      ...more,
    })
  const sessions = async () => {
    const { rows } = await service.deps.pool.query(
      'select oauth_client_id is not null as is_application from sessions where user_id = $1 order by created_at, id',
      [user.userId],
    )
    return rows.map(({ is_application: isApplication }) => (isApplication ? 'application' : 'own'))
  }
  const logout = (parameters: Record<string, string>) => `/oauth/logout?${new URLSearchParams(parameters)}`
  return { ...user, clientId, idToken, sessions, logout, accessToken: application.body.access_token as string }
}

const pageOf = (given: Record<string, string>) => `/ui/logout?${new URLSearchParams(given)}`

/** Opens an address that leads to our pages, as a browser does. */
async function follow({ browser, open }: Awaited<ReturnType<typeof signedIn>>, address: string) {
  const answer = await browser.get(address)
  expect([answer.status, answer.headers.location]).toEqual([
    303,
    expect.stringContaining('https://auth.example/ui/logout?'),
  ])
  return open(String(answer.headers.location).replace('https://auth.example', ''))
}

test('an id_token, also an expired one, ends the sessions of its application and of the browser without a question', async ({
  service,
}) => {
  const user = await signedIn(service)
  expect(await user.sessions()).toEqual(['own', 'own', 'application'])
  const given = { id_token_hint: await user.idToken(), post_logout_redirect_uri: AFTERWARDS, state: 's 1' }
  const left = await follow(user, user.logout(given))
  expect(left.location).toBe(`${AFTERWARDS}?state=s+1`)
  expect(await user.sessions()).toEqual(['own'])
  expect((await user.open('/ui/account')).title).toBe('Sign in')
  expect((await follow(user, user.logout(given))).location).toBe(`${AFTERWARDS}?state=s+1`)
})

test('without an id_token of the signed-in user a page asks first, and its form alone signs out', async ({
  service,
}) => {
  const user = await signedIn(service)
  const other = await signedIn(service)
  const requests: Record<string, string>[] = [
    { client_id: user.clientId, post_logout_redirect_uri: AFTERWARDS },
    { id_token_hint: await other.idToken(), post_logout_redirect_uri: AFTERWARDS },
    { id_token_hint: user.accessToken, client_id: user.clientId },
    { id_token_hint: `${await user.idToken()}x`, client_id: user.clientId },
  ]
  for (const given of requests) {
    const page = await follow(user, user.logout(given))
    expect([page.title, page.location]).toEqual(['Sign out', undefined])
    expect(page.text).toContain(`App asks to sign you out of this browser. You are signed in as ${user.email}.`)
    expect((await user.press(page, { proof: 'x' })).status).toBe(403)
    expect(await user.sessions()).toEqual(['own', 'own', 'application'])
  }
  const page = await follow(
    user,
    user.logout({ client_id: user.clientId, post_logout_redirect_uri: AFTERWARDS, state: 'st' }),
  )
  expect((await user.press(page)).location).toBe(`${AFTERWARDS}?state=st`)
  expect(await user.sessions()).toEqual(['own', 'application'])
})

test.for([
  ['an unregistered address', { post_logout_redirect_uri: `${AFTERWARDS}/` }, 'invalid post_logout_redirect_uri'],
  ['an unknown client', { client_id: 'nobody' }, 'invalid client_id'],
  ['another client than that of the id_token', { client_id: 'other' }, 'client_id is not that of id_token_hint'],
] as const)('a request with %s is refused, goes nowhere and ends nothing', async ([, given, message], { service }) => {
  const user = await signedIn(service)
  const isUnknown = message === 'invalid client_id'
  const all: Record<string, string> = { ...(!isUnknown && { id_token_hint: await user.idToken() }), ...given }
  for (const answer of [await user.browser.get(user.logout(all)), await user.browser.submit('/oauth/logout', all)]) {
    expect([answer.status, answer.body.msg, answer.headers.location]).toEqual([400, message, undefined])
  }
  expect(await user.sessions()).toEqual(['own', 'own', 'application'])
})

test('to an application that registered itself a browser goes by a press, or for its user', async ({ service }) => {
  const [user, owner] = [await signedIn(service), await signedIn(service)]
  await service.deps.pool.query(`update oauth_clients set registration_type = 'dynamic'`)
  const plain = await service.with({
    AUTH_HOSTED_PAGES_ENABLED: 'false',
    AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '/consent',
  })
  const requests: Record<string, string>[] = [
    { client_id: owner.clientId, post_logout_redirect_uri: AFTERWARDS },
    { id_token_hint: await owner.idToken(), post_logout_redirect_uri: AFTERWARDS },
  ]
  for (const given of requests) {
    for (const page of [
      await openPage(service.otherBrowser(), pageOf(given)),
      await openPage(plain, user.logout(given)),
    ]) {
      expect([page.status, page.location, page.links]).toEqual([
        200,
        undefined,
        { 'Continue to app.example': AFTERWARDS },
      ])
      expect(page.text).toContain('You are signed out.')
    }
  }
  await plain.close()
  const [given = {}] = requests
  const asked = await follow(user, user.logout(given))
  expect([asked.location, asked.text]).toEqual([undefined, expect.stringContaining('sent on to app.example.')])
  expect((await user.press(asked)).location).toBe(AFTERWARDS)
  const hint = { ...given, id_token_hint: await owner.idToken() }
  expect((await follow(owner, owner.logout(hint))).location).toBe(AFTERWARDS)
})

test('a form of the application does the same', async ({ service }) => {
  const user = await signedIn(service)
  const given = { id_token_hint: await user.idToken(), post_logout_redirect_uri: AFTERWARDS }
  const { status, headers } = await user.browser.submit('/oauth/logout', given)
  expect([status, await user.sessions()]).toEqual([303, ['own', 'own']])
  expect((await user.open(String(headers.location).replace('https://auth.example', ''))).location).toBe(AFTERWARDS)
})

test('without hosted pages the session of the id_token ends, and the browser goes on at once', async ({ service }) => {
  const user = await signedIn(service)
  const plain = await service.with({
    AUTH_HOSTED_PAGES_ENABLED: 'false',
    AUTH_OAUTH_SERVER_AUTHORIZATION_PATH: '/consent',
  })
  try {
    const { body: discovery } = await plain.get('/.well-known/openid-configuration')
    expect([discovery.backchannel_logout_supported, discovery.frontchannel_logout_supported]).toEqual([true, undefined])
    const id_token_hint = await user.idToken()
    const shown = await plain.get(user.logout({ id_token_hint }))
    expect([shown.status, shown.text]).toEqual([200, expect.stringContaining('You are signed out.')])
    expect(await user.sessions()).toEqual(['own', 'own'])
    const left = await plain.get(user.logout({ id_token_hint, post_logout_redirect_uri: AFTERWARDS }))
    expect([left.status, left.headers.location]).toEqual([303, AFTERWARDS])
  } finally {
    await plain.close()
  }
})

test('an id_token is no access token', async ({ service }) => {
  const user = await signedIn(service)
  const token = await user.idToken({ exp: 4_102_444_800, role: 'service_role' })
  for (const path of ['/user', '/admin/users']) {
    const { status, body } = await service.get(path, { authorization: `Bearer ${token}` })
    expect([path, status, body.error_code]).toEqual([path, 403, 'bad_jwt'])
  }
})
