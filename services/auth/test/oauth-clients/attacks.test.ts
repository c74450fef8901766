// Attacks on OAuth servers, each by its name and section in RFC 9700, or in the RFC of the part that it attacks.
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
import { type Answer, locationOf, type SignedIn, type TestService } from '../service.ts'
import { API, type Application, answer, application, ISSUER, startOAuthServer } from './application.ts'

let service: TestService
let honest: Application
let victim: SignedIn
let attacker: SignedIn
beforeAll(async () => {
  service = await startOAuthServer()
  honest = await application(service)
  ;[victim, attacker] = [await service.signedIn(), await service.signedIn()]
})
afterAll(() => service.close())

describe('mix-up (4.4)', () => {
  const { challenge } = newVerifier()
  test.each<[string, Parameters, 'approve' | 'deny']>([
    ['a code', {}, 'approve'],
    ['a denial', { prompt: 'consent' }, 'deny'],
    ['a refused request', { scope: 'nothing' }, 'approve'],
    ['a refused method', { code_challenge_method: 'plain', code_challenge: challenge }, 'approve'],
  ])('%s names the issuer', async (_, parameters, action) => {
    const back = await answer(service, victim, authorizePath(honest.id, parameters), action)
    expect(back.searchParams.getAll('iss')).toEqual([ISSUER])
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

describe('clickjacking (4.16) and leaks in referrers (4.2)', () => {
  const isClosed = ({ headers }: Answer) => {
    expect(headers['content-security-policy']).toContain("frame-ancestors 'none'")
    expect(headers['referrer-policy']).toMatch(/^(no-referrer|same-origin)$/)
    expect(headers['cache-control']).toContain('no-store')
  }

  test('the page that posts a code has no frame, no referrer and no other host, and its address no code', async () => {
    const redirect = await answer(service, victim, authorizePath(honest.id, { response_mode: 'form_post' }))
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

  test('a form is answered with 303, which posts nothing on (4.12)', async () => {
    const form = Object.fromEntries(new URLSearchParams(authorizePath(honest.id).split('?')[1]))
    expect((await service.submit('/oauth/authorize', form)).status).toBe(303)
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
