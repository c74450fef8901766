// Attacks on OAuth servers, each by its name and section in RFC 9700 or the RFC of the part that it attacks.
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { DEVICE_GRANT } from '../../src/core/oauth-server/devices/redeem-device-code.ts'
import {
  authorizePath,
  begun,
  CALLBACK,
  decide,
  newVerifier,
  type Parameters,
  view,
} from '../../src/flows/oauth-server/testing/applications.ts'
import { visitor } from '../../src/flows/pages/oauth/testing/visitor.ts'
import { openPage } from '../../src/flows/pages/testing/pages.ts'
import { type Answer, locationOf, queryOf, type SignedIn, type TestService } from '../service.ts'
import {
  ALL_SCOPES,
  API,
  type Application,
  answer,
  application,
  askTokens,
  bearerOf,
  codeFor,
  ISSUER,
  introspect,
  MCP_SERVER,
  publicApplication,
  redeem,
  refresh,
  startOAuthServer,
  tokensFor,
} from './application.ts'

let service: TestService
let honest: Application
let other: Application
let victim: SignedIn
let attacker: SignedIn
beforeAll(async () => {
  service = await startOAuthServer()
  ;[honest, other] = [await application(service), await application(service, { client_name: 'Other' })]
  ;[victim, attacker] = [await service.signedIn(), await service.signedIn()]
})
afterAll(() => service.close())

const refused = (error: string, status = 400) => ({ status, body: { error } })
const userinfo = (token: string) => service.get('/oauth/userinfo', bearerOf(token))

/** Everything that a session of an application gave works no more. */
async function expectEnded(by: Application, tokens: { access_token: string; refresh_token: string }) {
  expect(await refresh(service, by, tokens.refresh_token)).toMatchObject(refused('invalid_grant'))
  expect((await userinfo(tokens.access_token)).status).not.toBe(200)
  expect((await introspect(service, by, tokens.access_token)).body).toEqual({ active: false })
}

describe('mix-up (4.4)', () => {
  const { challenge } = newVerifier()
  test.each<[string, Parameters, 'approve' | 'deny']>([
    ['a code', {}, 'approve'],
    ['a denial', { prompt: 'consent' }, 'deny'],
    ['a refused request', { scope: 'nothing' }, 'approve'],
    ['a refused method', { code_challenge_method: 'plain', code_challenge: challenge }, 'approve'],
  ])('%s names the issuer, as discovery promises', async (_, parameters, action) => {
    const back = await answer(service, victim, authorizePath(honest.id, parameters), action)
    const { body } = await service.get('/.well-known/oauth-authorization-server')
    expect([back.searchParams.getAll('iss'), body.issuer]).toEqual([[ISSUER], ISSUER])
    expect(body.authorization_response_iss_parameter_supported).toBe(true)
  })
})

describe('code injection and replay (4.5)', () => {
  test('a stolen code is worth nothing to another application', async () => {
    const stolen = await codeFor(service, honest, victim)
    expect(await redeem(service, other, stolen)).toMatchObject(refused('invalid_grant'))
  })

  test('a code that is put into the session of another browser fails at its verifier', async () => {
    const [injected, own] = [await codeFor(service, honest, victim), await codeFor(service, honest, attacker)]
    const mixed = { code: injected.code, verifier: own.verifier }
    expect(await redeem(service, honest, mixed)).toMatchObject(refused('invalid_grant'))
  })

  test('a code got at one address is not redeemed at another', async () => {
    const twice = await application(service, { redirect_uris: [CALLBACK, 'https://app.example/other'] })
    const stolen = await codeFor(service, twice, victim)
    const form = { redirect_uri: 'https://app.example/other' }
    expect(await redeem(service, twice, stolen, form)).toMatchObject(refused('invalid_grant'))
  })

  test('a code that is used twice ends what it gave', async () => {
    const code = await codeFor(service, honest, victim, { scope: ALL_SCOPES })
    const { body: tokens } = await redeem(service, honest, code)
    expect((await userinfo(tokens.access_token)).status).toBe(200)
    expect(await redeem(service, honest, code)).toMatchObject(refused('invalid_grant'))
    await expectEnded(honest, tokens)
  })

  test('of twenty uses at once on two replicas one gives tokens, which the others end', async () => {
    const replica = await service.with({})
    const code = await codeFor(service, honest, victim, { scope: ALL_SCOPES })
    const uses = Array.from({ length: 20 }, (_, index) => redeem(index % 2 ? replica : service, honest, code))
    const given = (await Promise.all(uses)).filter(({ status }) => status === 200)
    expect(given.length).toBe(1)
    await expectEnded(honest, given[0]?.body)
    await replica.close()
  })

  test('a code dies after a minute', async () => {
    const late = await codeFor(service, honest, victim)
    service.clock.advance({ seconds: 60 })
    expect(await redeem(service, honest, late)).toMatchObject(refused('invalid_grant'))
  })
})

test.each([
  `${CALLBACK}/`,
  `${CALLBACK}?`,
  `${CALLBACK}?next=https://evil.example`,
  `${CALLBACK}#`,
  `${CALLBACK}#code`,
  `${CALLBACK}/../evil`,
  `${CALLBACK}%2f..%2fevil`,
  `${CALLBACK}\\@evil.example`,
  `${CALLBACK}\t`,
  ` ${CALLBACK}`,
  `${CALLBACK}%00`,
  `${CALLBACK}\r\nLocation: https://evil.example`,
  'https://APP.example/callback',
  'https://app.example/Callback',
  'HTTPS://app.example/callback',
  'http://app.example/callback',
  'https://app.example:443/callback',
  'https://app.example:8443/callback',
  'https://app.example./callback',
  'https://app.example@evil.example/callback',
  'https://user@app.example/callback',
  'https://app.example.evil.example/callback',
  'https://evil.example/https://app.example/callback',
  'https://app.example//callback',
  '//app.example/callback',
  '/callback',
  'https://аpp.example/callback',
  'javascript:alert(1)//https://app.example/callback',
  'data:text/html,https://app.example/callback',
])('insufficient check of redirect addresses (4.1): %j gets no redirect', async (redirect_uri) => {
  const refusal = await service.get(authorizePath(honest.id, { redirect_uri }))
  expect(refusal).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
  expect(refusal.headers).not.toHaveProperty('location')
  expect(refusal.text).not.toContain('evil.example')
})

describe('PKCE downgrade (4.8)', () => {
  const { challenge } = newVerifier()
  test.each<[string, Parameters]>([
    ['no challenge', { code_challenge: undefined, code_challenge_method: undefined }],
    ['a challenge without a method', { code_challenge: challenge, code_challenge_method: undefined }],
    ['a method without a challenge', { code_challenge: undefined }],
    ['an empty challenge', { code_challenge: '' }],
    ['the method plain', { code_challenge: challenge, code_challenge_method: 'plain' }],
    ['two challenges', { code_challenge: [challenge, newVerifier().challenge] }],
  ])('%s is refused before any page', async (_, parameters) => {
    const back = new URL(locationOf(await service.get(authorizePath(honest.id, parameters))))
    expect([back.origin + back.pathname, back.searchParams.get('error')]).toEqual([CALLBACK, 'invalid_request'])
  })

  test.each<[string, (code: { verifier: string }, challenge: string) => Record<string, string>]>([
    ['no verifier', () => ({ code_verifier: '' })],
    ['the challenge as verifier', (_, challenge) => ({ code_verifier: challenge })],
    ['a longer verifier', ({ verifier }) => ({ code_verifier: `${verifier}A` })],
    [
      'the method plain at the token endpoint',
      (_, challenge) => ({ code_verifier: challenge, code_challenge_method: 'plain' }),
    ],
  ])('%s gets no tokens', async (_, formOf) => {
    const { verifier, challenge } = newVerifier()
    const { code } = await codeFor(service, honest, victim, { code_challenge: challenge })
    const { status, body } = await redeem(service, honest, { code, verifier }, formOf({ verifier }, challenge))
    expect([status, ['invalid_grant', 'invalid_request'].includes(body.error)]).toEqual([400, true])
  })
})

describe('refresh replay (4.14)', () => {
  test('a used token ends the session with all its successors, after the reuse interval', async () => {
    const first = await tokensFor(service, honest, victim)
    const { body: second } = await refresh(service, honest, first.refresh_token)
    const { body: third } = await refresh(service, honest, second.refresh_token)
    service.clock.advance({ seconds: 11 })
    expect(await refresh(service, honest, first.refresh_token)).toMatchObject(refused('invalid_grant'))
    await expectEnded(honest, third)
  })

  test('another application cannot use it, and the owner still can', async () => {
    const { refresh_token } = await tokensFor(service, honest, victim)
    const stolen = await refresh(service, other, refresh_token)
    expect([stolen.status, ['invalid_grant', 'invalid_client'].includes(stolen.body.error)]).toEqual([
      stolen.status,
      true,
    ])
    expect((await refresh(service, honest, refresh_token)).status).toBe(200)
  })

  test('it is no token of the account: POST /token gives nothing for it', async () => {
    const { refresh_token } = await tokensFor(service, honest, victim)
    const own = await service.post('/token?grant_type=refresh_token', { refresh_token })
    expect([own.status >= 400, own.body]).toEqual([
      true,
      expect.not.objectContaining({ access_token: expect.anything() }),
    ])
    expect(await refresh(service, honest, victim.refreshToken)).not.toMatchObject({ status: 200 })
  })

  test('it never gives more scopes than the user agreed to', async () => {
    const tokens = await tokensFor(service, honest, victim, { scope: 'email offline_access' })
    const wider = await refresh(service, honest, tokens.refresh_token, { scope: 'email phone' })
    expect(wider).toMatchObject(refused('invalid_scope'))
  })
})

describe('confused deputy by resource (RFC 8707)', () => {
  test('a token for a resource opens no endpoint of the account', async () => {
    const client = await application(service, { scope: `${ALL_SCOPES} account:read account:write` })
    const { access_token } = await tokensFor(service, client, victim, {
      scope: 'email account:read account:write',
      resource: API,
    })
    expect(decodeJwt(access_token).aud).toEqual(API)
    for (const path of ['/user', '/user/export', '/user/sessions', '/user/oauth/grants']) {
      expect([path, [401, 403].includes((await service.get(path, bearerOf(access_token))).status)]).toEqual([
        path,
        true,
      ])
    }
    const write = await service.put('/user', { data: { a: 1 } }, bearerOf(access_token))
    expect([401, 403]).toContain(write.status)
  })

  test('neither the token endpoint nor a refresh adds a resource', async () => {
    const code = await codeFor(service, honest, victim, { scope: ALL_SCOPES, resource: API })
    expect(await redeem(service, honest, code, { resource: MCP_SERVER })).toMatchObject(refused('invalid_target'))
    const tokens = await tokensFor(service, honest, victim, { resource: API })
    const wider = await refresh(service, honest, tokens.refresh_token, { resource: MCP_SERVER })
    expect(wider).toMatchObject(refused('invalid_target'))
  })

  test('an unknown resource is refused at once', async () => {
    const path = authorizePath(honest.id, { resource: 'https://evil.example' })
    expect(queryOf(await service.get(path))).toMatchObject({ error: 'invalid_target' })
  })

  test('a resource learns nothing of tokens for another', async () => {
    const gateway = await application(service, { introspects: [MCP_SERVER] })
    const forApi = await tokensFor(service, honest, victim, { resource: API })
    const forMcp = await tokensFor(service, honest, victim, { resource: MCP_SERVER })
    expect((await introspect(service, gateway, forApi.access_token)).body).toEqual({ active: false })
    expect((await introspect(service, gateway, forMcp.access_token)).body).toMatchObject({
      active: true,
      aud: MCP_SERVER,
    })
    expect((await introspect(service, other, forMcp.access_token)).body).toEqual({ active: false })
  })
})

describe('open redirect (4.11)', () => {
  test.each<[string, Parameters]>([
    ['an unknown client', { client_id: '3f2504e0-4f89-41d3-9a0c-0305e82c3301' }],
    ['no client', { client_id: undefined }],
    ['a faulty request of an unknown client', { client_id: 'x', response_type: 'token' }],
  ])('%s is answered here', async (_, parameters) => {
    const refusal = await service.get(authorizePath(honest.id, { redirect_uri: 'https://evil.example', ...parameters }))
    expect([refusal.status, refusal.headers.location]).toEqual([400, undefined])
  })

  test('the way to the consent page depends on the id of the request alone', async () => {
    const path = `${authorizePath(honest.id)}&authorization_id=x&redirect_to=https://evil.example&next=//evil.example`
    expect(locationOf(await service.get(path))).toMatch(/^https:\/\/site\.example\/consent\?authorization_id=\w{32}$/)
  })

  test('state goes back as it came, and adds no header', async () => {
    const state = 'a b&iss=https://evil.example#x\r\nset-cookie: a=b ü"'
    const back = await answer(service, victim, authorizePath(honest.id, { state }))
    expect([back.searchParams.get('state'), back.searchParams.getAll('iss'), back.hash]).toEqual([state, [ISSUER], ''])
  })
})

describe('CSRF on consent (4.7)', () => {
  test.each(['https://evil.example', 'null', 'https://app.example'])(
    'a page of %s approves nothing',
    async (origin) => {
      const id = await begun(service, honest.id, { prompt: 'consent' })
      const headers = { ...victim.auth, origin }
      await view(service, id, victim.auth)
      const attempt = await service.post(`/oauth/authorizations/${id}/consent`, { action: 'approve' }, headers)
      expect([attempt.status, attempt.text]).toEqual([400, expect.not.stringContaining('code=')])
      expect((await view(service, id, victim.auth)).body.authorization_id).toBe(id)
    },
  )

  test('cookies approve nothing', async () => {
    const id = await begun(service, honest.id, { prompt: 'consent' })
    await view(service, id, victim.auth)
    expect(await decide(service, id, { authorization: '' })).toMatchObject({ status: 401 })
  })

  test('a request that the attacker began and saw is not the victim’s to approve', async () => {
    const id = await begun(service, honest.id, { prompt: 'consent' })
    await view(service, id, attacker.auth)
    expect((await decide(service, id, victim.auth)).status).toBe(404)
  })

  test('an approval without a look is refused', async () => {
    const id = await begun(service, honest.id, { prompt: 'consent' })
    expect((await decide(service, id, victim.auth)).status).toBe(404)
  })
})

describe('token theft by an application (4.9, 4.10)', () => {
  test('tokens of an application approve no other one', async () => {
    const client = await application(service, { scope: `${ALL_SCOPES} account:read account:write` })
    const { access_token } = await tokensFor(service, client, victim, { scope: 'account:read account:write' })
    const id = await begun(service, other.id)
    expect((await view(service, id, bearerOf(access_token))).status).toBe(403)
    expect((await decide(service, id, bearerOf(access_token))).status).toBe(403)
  })

  test('an id_token is no access token', async () => {
    const { id_token } = await tokensFor(service, honest, victim)
    for (const path of ['/user', '/oauth/userinfo']) {
      expect([path, [401, 403].includes((await service.get(path, bearerOf(id_token))).status)]).toEqual([path, true])
    }
    expect((await introspect(service, honest, id_token)).body).toEqual({ active: false })
  })

  test('a machine’s token is no person’s', async () => {
    const grant_types = ['client_credentials']
    const machine = await application(service, { grant_types, scope: 'users:read', redirect_uris: [] })
    const { body } = await askTokens(service, machine, { grant_type: 'client_credentials' })
    expect(decodeJwt(body.access_token)).toMatchObject({ sub: machine.id, client_id: machine.id })
    for (const path of ['/user', '/oauth/userinfo', '/user/sessions']) {
      expect([path, [401, 403].includes((await service.get(path, bearerOf(body.access_token))).status)]).toEqual([
        path,
        true,
      ])
    }
  })

  test('a token in an address is not read', async () => {
    const { access_token } = await tokensFor(service, honest, victim)
    expect((await service.get(`/oauth/userinfo?access_token=${access_token}`)).status).toBe(401)
  })
})

describe('client authentication (RFC 6749, 2.3)', () => {
  const revoke = (fields: Record<string, string>, headers = {}, query = '') =>
    service.submit(`/oauth/revoke${query}`, { token: 'x', ...fields }, headers)

  test('a secret in the address, in two places, of another client or left out is no authentication', async () => {
    const named = { client_id: honest.id }
    const secret = { ...named, client_secret: String(honest.secret) }
    const attempts = [
      await revoke({}, {}, `?${new URLSearchParams(secret)}`),
      await revoke(secret, honest.headers),
      await revoke(secret),
      await revoke(named, other.headers),
      await revoke(named),
    ]
    for (const { status, body } of attempts) {
      expect([status, body.error]).toEqual([
        status === 400 ? 400 : 401,
        status === 400 ? 'invalid_request' : 'invalid_client',
      ])
    }
    expect((await revoke({}, honest.headers)).status).toBe(200)
  })

  test('unknown clients and wrong secrets are answered alike', async () => {
    const attempt = (id: string) =>
      revoke({}, { authorization: `Basic ${Buffer.from(`${id}:wrong`).toString('base64')}` })
    const [known, unknown] = [await attempt(honest.id), await attempt('3f2504e0-4f89-41d3-9a0c-0305e82c3301')]
    expect([known.status, known.body]).toEqual([401, unknown.body])
    expect(known.headers['www-authenticate']).toBe(unknown.headers['www-authenticate'])
  })
})

describe('clickjacking (4.16) and leaks in referrers (4.2)', () => {
  const isClosed = ({ headers }: Answer) => {
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'")
    expect(headers['referrer-policy']).toMatch(/^(no-referrer|same-origin)$/)
    expect(headers['cache-control']).toContain('no-store')
  }

  test('the page that posts a code has no frame, no referrer and no other host, and its address no code', async () => {
    const state = '"><script>alert(1)</script>'
    const redirect = await answer(service, victim, authorizePath(honest.id, { response_mode: 'form_post', state }))
    expect(redirect.href).toMatch(new RegExp(`^${ISSUER}/oauth/form-post/[\\w-]+$`))
    const page = await service.get(redirect.pathname)
    const code = /name="code" value="([^"]+)"/.exec(page.text)?.[1] ?? expect.fail(page.text)
    expect(redirect.href).not.toContain(code)
    isClosed(page)
    expect(page.text).not.toMatch(/<script(?![^>]* src=)|\son\w+=|<style/)
    expect((await service.get(redirect.pathname)).text).not.toContain(code)
  })

  test('redirects with a code or to the consent page are neither cached nor sent on', async () => {
    const redirect = await service.get(authorizePath(honest.id))
    expect(redirect.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  })

  test.each(['/ui/consent', '/ui/device'])('%s', async (path) => {
    const id = await begun(service, honest.id)
    isClosed(await openPage(service.otherBrowser(), `${path}?authorization_id=${id}`))
  })

  test('a form is answered with 303, which posts nothing on (4.12)', async () => {
    const form = Object.fromEntries(new URLSearchParams(authorizePath(honest.id).split('?')[1]))
    expect((await service.submit('/oauth/authorize', form)).status).toBe(303)
  })
})

describe('device-code phishing (RFC 8628, 5.4)', () => {
  const ADDRESS = { 'x-real-ip': '203.0.113.9' }

  /** A device of the attacker, whose link is sent to a user, and replicas that know addresses. */
  async function phished() {
    const replicas = [0, 1].map(() => service.with({ AUTH_RATE_LIMIT_HEADER: 'x-real-ip' }))
    const [first, second] = (await Promise.all(replicas)) as [TestService, TestService]
    onTestFinished(async () => void (await Promise.all([first.close(), second.close()])))
    const grants = { grant_types: [DEVICE_GRANT], client_name: 'Films' }
    const television = await publicApplication(first, grants)
    const begin = async () => {
      const sent = { ...ADDRESS, 'user-agent': 'Films/1.0 (TV)' }
      const form = { client_id: television.id, scope: 'email' }
      return (await first.submit('/oauth/device_authorization', form, sent)).body
    }
    const poll = async (code: string, by = television) => {
      first.clock.advance({ seconds: 5 })
      return askTokens(first, by, { grant_type: DEVICE_GRANT, device_code: code })
    }
    const device = await begin()
    const link: string = device.verification_uri_complete.replace(ISSUER, '')
    return {
      ...{ first, second, device, link, begin, poll },
      user: await visitor(first, { 'x-real-ip': '198.51.100.7' }),
    }
  }

  test('a link approves nothing: its page names the application, the address and the program, and warns', async () => {
    const { device, link, user, poll } = await phished()
    const page = await user.signIn(await user.open(link))
    for (const text of ['Films', '203.0.113.9', 'Films/1.0 (TV)', device.user_code]) expect(page.text).toContain(text)
    expect(page.text).toContain('If you got the code or a link from another person, press “Deny”.')
    await user.open(link)
    expect(await poll(device.device_code)).toMatchObject(refused('authorization_pending'))
    await user.press(page, { answer: 'deny' })
    expect(await poll(device.device_code)).toMatchObject(refused('access_denied'))
  })

  test('a form of another site approves nothing, with the proof of the page or without', async () => {
    const { device, link, user, poll } = await phished()
    const page = await user.signIn(await user.open(link))
    const { action, fields } = page.forms[0] ?? expect.fail(page.text)
    const form = { ...fields, answer: 'allow' }
    for (const [sent, headers] of [
      [form, { 'sec-fetch-site': 'cross-site' }],
      [{ ...form, proof: '' }, {}],
      [{ user_code: device.user_code, answer: 'allow' }, { origin: 'https://evil.example' }],
    ] as const) {
      await user.browser.submit(action, sent, headers)
      expect(await poll(device.device_code)).toMatchObject(refused('authorization_pending'))
    }
    await user.press(page, { answer: 'allow' })
    expect((await poll(device.device_code)).status).toBe(200)
  })

  test('guesses of an address count at all replicas together', async () => {
    const { first, second, link } = await phished()
    const open = async (replica: TestService) => {
      const guesser = await visitor(replica, ADDRESS)
      const entry = await guesser.signIn(await guesser.open('/ui/device'))
      return { guess: (code: string) => guesser.press(entry, { code }), read: () => guesser.open(link) }
    }
    const [here, there] = [await open(first), await open(second)]
    for (const code of ['BCDF-GHJK', 'BCDF-GHJL']) await here.guess(code)
    for (const code of ['BCDF-GHJM', 'BCDF-GHJN']) await there.guess(code)
    expect((await here.read()).text).toContain('203.0.113.9')
    await there.guess('BCDF-GHJP')
    for (const { read } of [here, there]) expect((await read()).status).toBe(429)
  })

  test('an approved code serves its client alone', async () => {
    const { device, link, user, poll } = await phished()
    const page = await user.signIn(await user.open(link))
    await user.press(page, { answer: 'allow' })
    const thief = await publicApplication(service, { grant_types: [DEVICE_GRANT] })
    expect(await poll(device.device_code, thief)).toMatchObject(refused('invalid_grant'))
    expect((await poll(device.device_code)).status).toBe(200)
  })
})

describe('registration abuse (RFC 7591, 5)', () => {
  const register = (client: object, headers = {}) => service.post('/oauth/clients/register', client, headers)
  test.each<[string, object]>([
    ['a script as address', { redirect_uris: ['javascript:alert(1)'] }],
    ['data as address', { redirect_uris: ['data:text/html,x'] }],
    ['http beyond loopback', { redirect_uris: ['http://app.example/callback'] }],
    ['an address with a fragment', { redirect_uris: [`${CALLBACK}#x`] }],
    ['an address with a user name', { redirect_uris: ['https://app.example@evil.example/'] }],
    ['eleven addresses', { redirect_uris: Array.from({ length: 11 }, (_, index) => `${CALLBACK}/${index}`) }],
    ['no address', { redirect_uris: [] }],
    ['a script as logo', { redirect_uris: [CALLBACK], logo_uri: 'javascript:alert(1)' }],
    ['the grant of machines', { redirect_uris: [CALLBACK], grant_types: ['client_credentials'] }],
    ['the scope of administrators', { redirect_uris: [CALLBACK], scope: 'openid users:write' }],
    ['a name of 1 MB', { redirect_uris: [CALLBACK], client_name: 'x'.repeat(2 ** 20) }],
  ])('%s registers nothing', async (_, client) => {
    const { rows: before } = await service.deps.pool.query('select count(*) from oauth_clients')
    const { status, body } = await register(client)
    expect([[400, 413].includes(status), body]).toEqual([true, expect.objectContaining({ error: expect.any(String) })])
    expect((await service.deps.pool.query('select count(*) from oauth_clients')).rows).toEqual(before)
  })

  test('rights that an administrator gives are not taken', async () => {
    const { body } = await register({ redirect_uris: [CALLBACK], role: 'service_role', introspects: [API] })
    const { body: seen } = await service.get(`/admin/oauth/clients/${body.client_id}`, service.admin)
    expect([seen.role, seen.introspects ?? []]).toEqual(['service', []])
  })
})
