// The session of a browser: a cookie that stands for a token, for our own pages alone.
import { describe, expect } from 'vitest'
import { clip } from '../../../../test/clips.ts'
import { mediaHere } from '../../../../test/command-line.ts'
import {
  BASE_URL,
  formOf,
  idIn,
  settingsOf,
  startTestService,
  type TestService,
  test,
} from '../../../../test/service.ts'
import { cleanUp } from '../../../housekeeping.ts'

const OWN = { 'sec-fetch-site': 'same-origin' }
const SCRIPT = { ...OWN, 'x-media': '1' }
const DAY = 86_400

const cookieOf = (headers: Headers): string => headers.getSetCookie()[0]?.split(';')[0] ?? ''

/** Signs a browser in; returns its cookie. */
async function signedIn(service: TestService, token: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await service.call('POST', '/session', { headers: { ...SCRIPT, token, ...headers } })
  expect(answer.status).toBe(204)
  return cookieOf(answer.headers)
}

const listed = (service: TestService, cookie: string, headers: Record<string, string> = OWN) =>
  service.get('/media', { cookie, ...headers })

const refusal = ({ status, body }: { status: number; body: { error?: { code: string } } }) => [status, body.error?.code]

describe('a sign-in', () => {
  test('by header answers 204 with a cookie that scripts and other sites do not get', async ({ service }) => {
    const answer = await service.call('POST', '/session', { headers: { ...SCRIPT, token: service.token } })
    expect([answer.status, answer.text, answer.headers.get('cache-control')]).toEqual([204, '', 'private, no-store'])
    const [cookie = ''] = answer.headers.getSetCookie()
    expect(cookie).toMatch(/^__Host-media=[\w-]{43}; /)
    expect(cookie.split('; ').slice(1).sort()).toEqual(
      ['HttpOnly', `Max-Age=${30 * DAY}`, 'Path=/', 'SameSite=Strict', 'Secure'].sort(),
    )
    const { rows } = await service.deps.pool.query('select * from browser_sessions')
    expect(JSON.stringify(rows)).not.toContain(cookieOf(answer.headers).split('=')[1])
    expect(JSON.stringify(rows)).not.toContain(service.token)
  })

  test.for([
    ['/library?tag=cat%20s', '/library?tag=cat%20s'],
    ['//evil.example/x', '/library'],
    ['/\\evil.example', '/library'],
    ['https://evil.example', '/library'],
    ['/x\r\nset-cookie: a=b', '/library'],
    ['', '/library'],
    [`/${'x'.repeat(2000)}`, '/library'],
  ] as const)('by the form leads to next, if that is a path of this service: %s', async ([next, to], { service }) => {
    const body = new URLSearchParams({ token: ` ${service.token} `, next })
    const answer = await service.call('POST', '/session', { headers: OWN, body })
    expect([answer.status, answer.headers.get('location')]).toEqual([303, BASE_URL + to])
    expect((await listed(service, cookieOf(answer.headers))).status).toBe(200)
  })

  test('with an unknown, expired or revoked token is refused alike, and the page asks again', async ({ service }) => {
    const expired = await service.newToken({ expiresAt: new Date(service.clock.now().getTime() - 1) })
    const revoked = await service.newToken()
    await service.deps.pool.query('update api_tokens set revoked_at = now() where id = $1', [revoked.id])
    const texts = new Set<string>()
    for (const token of ['mh_nothing', expired.token, revoked.token]) {
      const called = await service.call('POST', '/session', { headers: { ...SCRIPT, token } })
      expect(refusal(called)).toEqual([401, 'token_missing_or_invalid'])
      const body = new URLSearchParams({ token, next: '/library' })
      const { status, text, headers } = await service.call('POST', '/session', { headers: OWN, body })
      expect([status, headers.getSetCookie()]).toEqual([401, []])
      expect(text).toContain('role="alert">This token is unknown, expired or revoked.')
      expect(text).toContain('name="next" value="/library"')
      expect(text).not.toContain(token)
      texts.add(text)
    }
    expect(texts.size).toBe(1)
  })

  test.for([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { origin: 'https://evil.example' },
    {},
  ])('from no page of ours signs no visitor in: %j', async (headers, { service }) => {
    const token = service.token
    const called = await service.call('POST', '/session', { headers: { ...headers, token, 'x-media': '1' } })
    expect([...refusal(called), called.headers.getSetCookie()]).toEqual([403, 'wrong_origin', []])
    const sent = await service.call('POST', '/session', { headers, body: new URLSearchParams({ token }) })
    expect([sent.status, sent.headers.getSetCookie()]).toEqual([403, []])
  })

  test('of a browser that names its sender in Origin alone is accepted from this origin', async ({ service }) => {
    const headers = { origin: BASE_URL, token: service.token }
    expect((await service.call('POST', '/session', { headers })).status).toBe(204)
  })

  test('is counted by the address of the client, and by no other', async () => {
    const service = await startTestService({ MEDIA_RATE_LIMIT_HEADER: 'x-real-ip', MEDIA_RATE_LIMIT_PUBLIC: '1000/1m' })
    const attempt = (address: string) =>
      service.call('POST', '/session', { headers: { ...SCRIPT, token: 'mh_x', 'x-real-ip': address } })
    const answers = await Promise.all(Array.from({ length: 40 }, () => attempt('203.0.113.1')))
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(30)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(10)
    expect((await attempt('203.0.113.2')).status).toBe(401)
    await service.close()
  })
})

describe('a session', () => {
  test('has the scopes and limits of its token', async ({ service }) => {
    const reader = await service.newToken({ scopes: ['read'] })
    const cookie = await signedIn(service, reader.token)
    const { status, headers } = await listed(service, cookie)
    expect([status, headers.get('cache-control')]).toEqual([200, 'private, no-store'])
    expect(headers.get('ratelimit-limit')).not.toBeNull()
    const body = JSON.stringify({ source: 'https://a.example/x.gif' })
    const init = { headers: { ...SCRIPT, cookie, 'content-type': 'application/json' }, body }
    expect(refusal(await service.call('POST', '/media/import', init))).toEqual([403, 'insufficient_scope'])
    expect(refusal(await service.get('/tokens', { ...OWN, cookie }))).toEqual([403, 'insufficient_scope'])
  })

  test('uploads, changes and deletes as its token does', async ({ service }) => {
    const { token, id } = await service.newToken()
    const cookie = await signedIn(service, token)
    const file = await clip('plain.gif')
    await service.ready(file)
    const added = await service.call('POST', '/media/upload', {
      ...{ headers: { ...SCRIPT, cookie }, body: await formOf(file) },
    })
    const path = `/media/${idIn(added)}`
    const { rows } = await service.deps.pool.query('select token_id from clips where id = $1', [path.slice(7)])
    expect(rows).toEqual([{ token_id: id }])
    const json = { ...SCRIPT, cookie, 'content-type': 'application/json' }
    const change = await service.call('PATCH', path, { headers: json, body: JSON.stringify({ title: 'A cat' }) })
    expect(change.status).toBe(200)
    expect((await service.call('DELETE', path, { headers: { ...SCRIPT, cookie } })).status).toBe(204)
  })

  test.for([
    ['a page of another site', { 'sec-fetch-site': 'cross-site', 'x-media': '1' }],
    ['another host of the domain', { 'sec-fetch-site': 'same-site', 'x-media': '1' }],
    ['the address bar', { 'sec-fetch-site': 'none', 'x-media': '1' }],
    ['another origin, by an older browser', { origin: 'https://evil.example', 'x-media': '1' }],
    ['an unknown sender', { 'x-media': '1' }],
    ['a form of this origin', { 'sec-fetch-site': 'same-origin' }],
  ] as const)('changes nothing for %s', async ([, headers], { service }) => {
    const cookie = await signedIn(service, service.token)
    const body = JSON.stringify({ source: 'https://a.example/x.gif' })
    const json = { ...headers, cookie, 'content-type': 'application/json' }
    const answers = await Promise.all([
      service.call('POST', '/media/import', { headers: json, body }),
      service.call('GET', '/media/import?source=https%3A%2F%2Fa.example%2Fx.gif', { headers: { ...headers, cookie } }),
      service.call('DELETE', '/session', { headers: { ...headers, cookie } }),
    ])
    expect(answers.map(refusal)).toEqual(Array.from(answers, () => [403, 'wrong_origin']))
    expect((await listed(service, cookie)).status).toBe(200)
  })

  test('is read by our own pages alone', async ({ service }) => {
    const cookie = await signedIn(service, service.token)
    for (const site of ['cross-site', 'same-site', 'none']) {
      expect(refusal(await listed(service, cookie, { 'sec-fetch-site': site }))).toEqual([403, 'wrong_origin'])
    }
    const { headers } = await service.get('/media', { ...OWN, cookie, origin: BASE_URL })
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('access-control-allow-credentials')).toBeNull()
  })

  test('does not count where a request has the header of a token', async ({ service }) => {
    const cookie = await signedIn(service, service.token)
    expect(refusal(await service.get('/media', { ...OWN, cookie, token: 'mh_x' }))).toEqual([
      ...[401, 'token_missing_or_invalid'],
    ])
    const cross = { cookie, token: service.token, 'sec-fetch-site': 'cross-site' }
    expect((await service.get('/media', cross)).status).toBe(200)
  })

  test('does not show the token', async ({ service }) => {
    const cookie = await signedIn(service, service.token)
    expect(refusal(await service.get('/sharex.sxcu', { ...OWN, cookie }))).toEqual([401, 'token_missing_or_invalid'])
  })

  test.for(['revoked_at', 'expires_at'] as const)('ends with its token: %s', async (column, { service }) => {
    const { token, id } = await service.newToken()
    const cookie = await signedIn(service, token)
    await service.deps.pool.query(`update api_tokens set ${column} = $2 where id = $1`, [id, service.clock.now()])
    const { headers, ...answer } = await listed(service, cookie)
    expect(refusal(answer)).toEqual([401, 'session_required'])
    expect(headers.getSetCookie()).toEqual([expect.stringMatching(/^__Host-media=; .*Max-Age=0/)])
  })

  test('lasts thirty days from its last use, and is renewed once a day', async ({ service }) => {
    const cookie = await signedIn(service, service.token)
    expect((await listed(service, cookie)).headers.getSetCookie()).toEqual([])
    service.clock.advance({ seconds: 29 * DAY })
    const renewed = await listed(service, cookie)
    expect(cookieOf(renewed.headers)).toBe(cookie)
    expect((await listed(service, cookie)).headers.getSetCookie()).toEqual([])
    service.clock.advance({ seconds: 29 * DAY })
    expect((await listed(service, cookie)).status).toBe(200)
    service.clock.advance({ seconds: 31 * DAY })
    expect(refusal(await listed(service, cookie))).toEqual([401, 'session_required'])
    await cleanUp(service.deps)
    expect((await service.deps.pool.query('select * from browser_sessions')).rows).toEqual([])
  })

  test('ends alone, or with all others of its token', async ({ service }) => {
    const { token } = await service.newToken()
    const [first = '', second = '', third = '', other = ''] = [
      ...(await Promise.all([1, 2, 3].map(() => signedIn(service, token)))),
      await signedIn(service, service.token),
    ]
    const end = (cookie: string, query = '') =>
      service.call('DELETE', `/session${query}`, { headers: { ...SCRIPT, cookie } })
    expect((await end(first)).status).toBe(204)
    expect(refusal(await listed(service, first))).toEqual([401, 'session_required'])
    expect((await listed(service, second)).status).toBe(200)
    const ended = await end(second, '?all=1')
    expect([ended.status, cookieOf(ended.headers)]).toEqual([204, '__Host-media='])
    expect(refusal(await listed(service, third))).toEqual([401, 'session_required'])
    expect((await listed(service, other)).status).toBe(200)
    expect(refusal(await service.call('DELETE', '/session', { headers: SCRIPT }))).toEqual([401, 'session_required'])
  })

  test('is replaced by the next sign-in of its browser', async ({ service }) => {
    const first = await signedIn(service, service.token)
    const second = await signedIn(service, service.token, { cookie: first })
    expect(refusal(await listed(service, first))).toEqual([401, 'session_required'])
    const { status, headers } = await service.get('/session?next=%2Fdocs', { ...OWN, cookie: second })
    expect([status, headers.get('location')]).toEqual([303, `${BASE_URL}/docs`])
  })

  test('of an expired token does not come back with a longer life of it', async ({ service }) => {
    const { token, id } = await service.newToken()
    const cookie = await signedIn(service, token)
    // The command has the clock of the machine.
    await service.deps.pool.query(`update api_tokens set expires_at = '2020-01-01' where id = $1`, [id])
    const settings = settingsOf(service.deps.config.database.url, service.blobsDir)
    await mediaHere(['tokens', 'update', id, '--expires', 'never'], settings)
    expect((await service.get('/media', { token })).status).toBe(200)
    expect(refusal(await listed(service, cookie))).toEqual([401, 'session_required'])
  })

  test('does not stand in the way where no token is asked for', async () => {
    const open = await startTestService({ MEDIA_UPLOAD_AUTH: 'optional' })
    const file = await clip('plain.gif')
    const added = await open.ready(file, [], { prefer: 'delete-link' })
    const reader = await open.newToken({ scopes: ['read'] })
    for (const cookie of ['__Host-media=ended', await signedIn(open, reader.token)]) {
      const headers = { ...OWN, cookie }
      expect((await open.call('POST', '/media/upload', { headers, body: await formOf(file) })).status).toBe(201)
    }
    const headers = {
      ...OWN,
      cookie: '__Host-media=ended',
      'x-delete-token': added.headers.get('x-delete-token') ?? '',
    }
    expect((await open.call('DELETE', `/media/${idIn(added)}`, { headers })).status).toBe(204)
    await open.close()
  })

  test('is one of a hundred of a token: a further one ends the one unused for longest', async ({ service }) => {
    const { token, id } = await service.newToken()
    const oldest = await signedIn(service, token)
    service.clock.advance({ seconds: 1 })
    const next = await signedIn(service, token)
    service.clock.advance({ seconds: 1 })
    await Promise.all(Array.from({ length: 98 }, () => signedIn(service, token)))
    expect((await listed(service, oldest)).status).toBe(200)
    await signedIn(service, token)
    expect((await listed(service, oldest)).status).toBe(401)
    expect((await listed(service, next)).status).toBe(200)
    const { rows } = await service.deps.pool.query('select hash from browser_sessions where token_id = $1', [id])
    expect(rows).toHaveLength(100)
  })

  test('is none of a revoked token, and the command says how many ended', async ({ service }) => {
    const { token, id } = await service.newToken()
    await Promise.all([1, 2].map(() => signedIn(service, token)))
    const settings = settingsOf(service.deps.config.database.url, service.blobsDir)
    const { stdout } = await mediaHere(['tokens', 'revoke', id], settings)
    expect(stdout).toContain('sessions of browsers ended: 2')
    const { rows } = await service.deps.pool.query('select hash from browser_sessions where token_id = $1', [id])
    expect(rows).toEqual([])
  })
})

describe('the page', () => {
  test('shows the form, in the language of the browser, under a policy without inline parts', async ({ service }) => {
    const { status, text, headers } = await service.get('/session', { 'accept-language': 'de-AT, en;q=0.5' })
    expect([status, headers.get('cache-control')]).toEqual([200, 'private, no-store'])
    expect(text).toContain('<html lang="de">')
    expect(text).toContain('Mit einem Token anmelden')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
    expect(text).not.toMatch(/<style|<script|style=/)
  })

  test('signs out by forms that only a page of the session has', async ({ service }) => {
    const cookie = await signedIn(service, service.token, { 'user-agent': 'Mozilla/5.0 (X11; Linux) Firefox/140.0' })
    const { text } = await service.get('/session', { cookie, 'sec-fetch-site': 'none' })
    expect(text).toContain('You are signed in')
    expect(text).not.toContain(service.token)
    const [, formToken = ''] = /name="form_token" value="([\w-]+)"/.exec(text) ?? []
    const send = (form_token: string) => {
      const init = { headers: { ...OWN, cookie }, body: new URLSearchParams({ form_token }) }
      return service.call('POST', '/session/end', init)
    }
    expect([(await send('x')).status, (await listed(service, cookie)).status]).toEqual([303, 200])
    const { status, headers } = await send(formToken)
    expect([status, headers.get('location'), cookieOf(headers)]).toEqual([303, `${BASE_URL}/session`, '__Host-media='])
    expect(refusal(await listed(service, cookie))).toEqual([401, 'session_required'])
    expect((await send(formToken)).text).toContain('Your session has ended.')
  })

  test('of an ended session says so, and removes the cookie', async ({ service }) => {
    const { text, headers } = await service.get('/session', { cookie: '__Host-media=x', 'sec-fetch-site': 'none' })
    expect(text).toContain('Your session has ended.')
    expect(cookieOf(headers)).toBe('__Host-media=')
  })
})

test('MEDIA_LIBRARY=off has neither the page nor the cookie', async ({ service }) => {
  const cookie = await signedIn(service, service.token)
  const off = await startTestService({ MEDIA_LIBRARY: 'off', MEDIA_DATABASE_URL: service.deps.config.database.url })
  expect((await off.get('/session')).status).toBe(404)
  expect((await off.call('POST', '/session', { headers: { ...SCRIPT, token: service.token } })).status).toBe(404)
  expect(refusal(await off.get('/media', { cookie, ...OWN }))).toEqual([401, 'token_missing_or_invalid'])
  await off.close()
})

test('without https the cookie has no prefix that browsers refuse there', async () => {
  const plain = await startTestService({ MEDIA_BASE_URL: 'http://127.0.0.1:8082' })
  const answer = await plain.call('POST', '/session', { headers: { ...SCRIPT, token: plain.token } })
  expect(answer.headers.getSetCookie()).toEqual([expect.stringMatching(/^media=[\w-]{43}; (?!.*Secure)/)])
  expect((await listed(plain, cookieOf(answer.headers))).status).toBe(200)
  await plain.close()
})
