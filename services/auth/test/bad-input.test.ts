import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect } from 'vitest'
import { type ApiDocument, endpointsOf } from './hostile-operations.ts'
import { test } from './service.ts'
import { PASSKEYS } from './webauthn/passkeys.ts'

const NEW_FORM = { 'x-supabase-api-version': '2024-01-01' }

describe('bodies', () => {
  test.for<[string, string, number, string]>([
    ['broken JSON', '{"email":', 400, 'bad_json'],
    ['nothing', '', 400, 'bad_json'],
    ['a list', '[]', 400, 'bad_json'],
    ['a string', '"hello"', 400, 'bad_json'],
    ['a prototype', '{"__proto__":{"a":1}}', 400, 'validation_failed'],
    ['a prototype in data', '{"data":{"constructor":{"prototype":{}}}}', 400, 'validation_failed'],
    ['a broken prototype', '{"__proto__":', 400, 'bad_json'],
    [
      'a number beyond all numbers',
      '{"email":"n@b.c","password":"correct horse","data":{"n":[1e999]}}',
      422,
      'validation_failed',
    ],
    ['NUL in an address', '{"email":"a\\u0000@b.c","password":"correct horse"}', 400, 'validation_failed'],
    ['NUL in data', '{"email":"nul@b.c","password":"correct horse","data":{"a":"\\u0000"}}', 400, 'validation_failed'],
    [
      'lone surrogates in data',
      '{"email":"sur@b.c","password":"correct horse","data":{"a":"\\ud800"}}',
      400,
      'validation_failed',
    ],
    [
      '100,000 levels',
      `{"email":"deep@b.c","password":"correct horse","data":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`,
      400,
      'validation_failed',
    ],
    [
      '5,000 lists',
      `{"email":"deep@b.c","password":"correct horse","data":{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}}`,
      400,
      'validation_failed',
    ],
    ['one byte over 1 MiB', `{"email":"${'a'.repeat(1024 * 1024)}"}`, 413, 'request_entity_too_large'],
  ])('%s', async ([, payload, status, code], { service }) => {
    const response = await service.app.inject({ method: 'POST', url: '/signup', payload })
    expect([response.statusCode, response.json().error_code]).toEqual([status, code])
  })

  test('null is "not given", whatever the content type says', async ({ service }) => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1']) {
      const response = await service.app.inject({
        method: 'POST',
        url: '/signup',
        payload: '{"email":"null@example.com","phone":null,"password":null}',
        headers: { 'content-type': type },
      })
      expect([response.statusCode, response.json().error_code]).toEqual([400, 'validation_failed'])
    }
    expect((await service.app.inject({ method: 'POST', url: '/signup', payload: 'null' })).statusCode).toBe(422)
  })

  test('an empty content type, and one that is none, say nothing either', async ({ service }) => {
    for (const type of ['', 'json', ';', 'application/']) {
      const response = await service.app.inject({
        method: 'POST',
        url: '/signup',
        payload: '{"email":"null@example.com","password":null}',
        headers: { 'content-type': type },
      })
      expect([type, response.statusCode, response.json().error_code]).toEqual([type, 400, 'validation_failed'])
      expect(response.json().msg).not.toContain('type')
    }
  })

  test('bytes that are no UTF-8 are refused: they would make one password of many', async ({ service }) => {
    for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0xaf]]) {
      const payload = Buffer.from(
        `{"email":"bytes@example.com","password":"correct horse ${'?'.repeat(bytes.length)}"}`,
      )
      Buffer.from(bytes).copy(payload, payload.indexOf('?'))
      const response = await service.app.inject({ method: 'POST', url: '/signup', payload })
      expect([response.statusCode, response.json().error_code]).toEqual([400, 'bad_json'])
    }
    const payload = Buffer.from('\ufeff{"email":"bytes@example.com","password":"größer 😀 horse"}')
    expect((await service.app.inject({ method: 'POST', url: '/signup', payload })).statusCode).toBe(200)
  })

  test('an operation without a body ignores one, so that every client can sign out', async ({ service }) => {
    const document: ApiDocument = (await service.get('/openapi.json')).body
    const operations = endpointsOf(document).filter(({ method, requestBody }) => method !== 'GET' && !requestBody)
    expect(operations.map(({ method, path }) => `${method} ${path}`)).toContain('POST /logout')
    for (const { method, path } of operations) {
      for (const payload of ['"global"', '[1]', '{', 'scope=global']) {
        const { accessToken } = await service.signedIn()
        const response = await service.app.inject({
          method: method as 'POST',
          url: path.replaceAll(/\{\w+\}/g, crypto.randomUUID()),
          payload,
          headers: path.startsWith('/admin') ? service.admin : { authorization: `Bearer ${accessToken}` },
        })
        expect([path, payload, response.body]).toEqual([path, payload, expect.not.stringContaining('bad_json')])
        if (path === '/logout') expect(response.statusCode).toBe(204)
      }
    }
  })

  test('data of every shape JSON has comes back as it was sent', async ({ service }) => {
    const data = {
      list: [1, [2], { a: null }],
      text: 'ü "quoted" \\ </script>',
      number: 1.5e-7,
      yes: true,
      '': { '': 0 },
    }
    const { body } = await service.post('/signup', { email: 'shapes@example.com', password: 'correct horse', data })
    expect(body.user_metadata).toMatchObject(data)
  })
})

describe('addresses', () => {
  test('an unknown one is 404, and one that lacks the method 405, whatever the body is', async ({ service }) => {
    for (const [url, status] of [
      ['/nothing/here', 404],
      ['/settings', 405],
    ] as const) {
      const response = await service.app.inject({ method: 'POST', url, payload: '{"broken":' })
      expect([url, response.statusCode]).toEqual([url, status])
    }
  })

  test('each documented one refuses the methods that it does not have, and names those it has', async ({
    service: shared,
  }) => {
    const service = await shared.with(PASSKEYS)
    const { body } = await service.get('/openapi.json')
    const id = '00000000-0000-4000-8000-000000000000'
    for (const [path, operations] of Object.entries<object>(body.paths)) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const) {
        if (method.toLowerCase() in operations) continue
        const { statusCode, headers } = await service.app.inject({ method, url: path.replaceAll(/\{\w+\}/g, id) })
        expect([method, path, statusCode]).toEqual([method, path, 405])
        const allowed = String(headers.allow).split(', ')
        expect(allowed).toEqual(expect.arrayContaining(Object.keys(operations).map((name) => name.toUpperCase())))
      }
    }
    await service.close()
  })

  test('an unknown one is 404, a known one with another method 405 with Allow', async ({ service }) => {
    expect(await service.get('/nothing/here')).toMatchObject({ status: 404, body: { error_code: 'not_found' } })
    const { status, body, headers } = await service.get('/signup')
    expect([status, body.error_code, headers.allow]).toEqual([405, 'method_not_allowed', 'POST'])
    expect((await service.app.inject({ method: 'PATCH', url: '/user' })).headers.allow).toBe('GET, HEAD, PUT, DELETE')
  })

  test.for([
    ['a parameter too long to be one', `/admin/users/${'%EF%B7%BA'.repeat(201)}`, 404, 'not_found'],
    ['a broken escape', '/admin/users/%zz', 400, 'validation_failed'],
  ] as const)('%s is refused in our form and not repeated', async ([, url, status, code], { service }) => {
    const answer = await service.get(url, service.admin)
    expect(answer).toMatchObject({ status, body: { code: status, error_code: code, msg: expect.any(String) } })
    expect(Object.keys(answer.body)).toEqual(['code', 'error_code', 'msg'])
    expect(answer.headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' })
  })

  test('hostile ones never answer 5xx', async ({ service }) => {
    for (const url of [
      '/%',
      '/%00',
      '/..%2f..%2fetc/passwd',
      `/${'a'.repeat(5000)}`,
      '/user?%',
      '/docs/static/../../../package.json',
      '/docs/static/..%2f..%2fpackage.json',
      '/verify?type=signup&token=%00%ff',
      '/token?grant_type=password&grant_type=x',
    ]) {
      const { statusCode } = await service.app.inject({
        method: url.startsWith('/token') ? 'POST' : 'GET',
        url,
        payload: url.startsWith('/token') ? {} : undefined,
      })
      expect([url, statusCode >= 500]).toEqual([url, false])
    }
  })
})

describe('errors', () => {
  test('that ask for a token say which kind (RFC 9110 15.5.2), no other does', async ({ service }) => {
    const answers = await Promise.all([
      service.get('/user'),
      service.get('/user', { authorization: 'Bearer nonsense' }),
      service.get('/admin/users'),
      service.post('/signup', {}),
    ])
    expect(answers.map(({ status, headers }) => [status, headers['www-authenticate']])).toEqual([
      [401, 'Bearer'],
      [403, undefined],
      [401, 'Bearer'],
      [422, undefined],
    ])
  })

  test('have the older form by default and the newer one on request, each with the code as a header', async ({
    service,
  }) => {
    const older = await service.post('/signup', { email: 'a@example.com', password: '123' })
    expect(older.text).toBe(
      '{"code":422,"error_code":"weak_password","msg":"Password should be at least 6 characters.","weak_password":{"reasons":["length"]}}',
    )
    const newer = await service.post('/signup', { email: 'a@example.com', password: '123' }, NEW_FORM)
    expect(newer.text).toBe(
      '{"code":"weak_password","message":"Password should be at least 6 characters.","weak_password":{"reasons":["length"]}}',
    )
    expect(newer.headers['x-supabase-api-version']).toBe('2024-01-01')
    for (const answer of [older, newer]) expect(answer.headers['x-sb-error-code']).toBe('weak_password')
  })

  test.for(['2023-12-31', 'latest', '2024-13-45', ''])(
    'version %j still gets the older form',
    async (version, { service }) => {
      const { body } = await service.post('/signup', { email: 'x' }, { 'x-supabase-api-version': version })
      expect(body.code).toBe(400)
    },
  )

  // contract/auth-core.md 18, BUG1.
  test('an unexpected one answers an id and nothing else', async ({ service }) => {
    const { deps } = service
    const { newId } = deps
    deps.newId = () => 'not-a-uuid'
    const { status, body, headers } = await service.post('/signup', {
      email: 'boom@example.com',
      password: 'correct horse',
    })
    deps.newId = newId
    expect(status).toBe(500)
    expect(body).toEqual({
      code: 500,
      error_code: 'unexpected_failure',
      msg: 'Something went wrong on our side',
      error_id: headers['x-request-id'],
    })
  })
})

test('a token is taken as it was issued, not with padding, blanks or other letters of base64', async ({ service }) => {
  const { accessToken } = await service.signedIn('padding@example.com')
  const [header, claims, signature] = accessToken.split('.')
  const withToken = (token: string) => service.get('/user', { authorization: `Bearer ${token}` })
  for (const token of [
    `${accessToken}=`,
    `${accessToken}==`,
    `${header}.${claims}=.${signature}`,
    `${header}=.${claims}.${signature}`,
    `${accessToken}+`,
  ]) {
    expect(await withToken(token)).toMatchObject({ status: 403, body: { error_code: 'bad_jwt' } })
  }
  expect((await withToken(accessToken)).status).toBe(200)
})

test('addresses with a zone, in any header, are no reason to fail', async ({ service }) => {
  const { body } = await service.get('/user', (await service.signedIn('zone@example.com')).auth)
  const signIn = await service.post(
    '/token?grant_type=password',
    { email: body.email, password: 'correct horse' },
    { 'x-forwarded-for': 'fe80::1%eth0, nonsense', 'sb-forwarded-for': '::1%lo' },
  )
  expect(signIn.status).toBe(200)
})

test('a path with a trailing slash and an unsupported grant without a body are answered as the reference does', async ({
  service,
}) => {
  expect((await service.get('/user/', (await service.signedIn()).auth)).status).toBe(200)
  const response = await service.app.inject({ method: 'POST', url: '/token?grant_type=magic' })
  expect(response.json()).toMatchObject({ error_code: 'invalid_credentials', msg: 'unsupported_grant_type' })
})

test('every answer carries the headers that keep browsers and caches careful', async ({ service }) => {
  // A refused link leads on to the application, and its address would be a token's where it is not refused.
  for (const url of ['/health', '/user', '/nothing', '/%E0%A4%A', '/settings', '/verify?type=signup&token=x']) {
    const { headers } = await service.get(url)
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'strict-transport-security': 'max-age=31536000',
      'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    })
    expect(headers).not.toHaveProperty('set-cookie')
  }
})

test('a service that is reached without TLS announces none', async ({ service }) => {
  const plain = await service.with({ AUTH_API_EXTERNAL_URL: 'http://auth.example' })
  expect((await plain.get('/health')).headers).not.toHaveProperty('strict-transport-security')
  await plain.close()
})

test('browsers may call from any origin, without cookies or certificates of theirs', async ({ service }) => {
  const { statusCode, headers } = await service.app.inject({
    method: 'OPTIONS',
    url: '/token',
    headers: {
      origin: 'https://app.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,x-client-info',
    },
  })
  expect(statusCode).toBe(204)
  expect(headers['access-control-allow-origin']).toBe('*')
  expect(headers).not.toHaveProperty('access-control-allow-credentials')
  expect(String(headers['access-control-allow-headers']).toLowerCase()).toContain('x-client-info')
})

test('/settings names exactly the eighteen providers and what is switched on', async ({ service }) => {
  const { body } = await service.get('/settings')
  expect(Object.keys(body.external)).toHaveLength(18)
  expect(body).toMatchObject({ disable_signup: false, autoconfirm: false, email_enabled: true, phone_enabled: false })
})

test('/health, /health/live, /health/ready, /openapi.json and /docs answer', async ({ service }) => {
  expect((await service.get('/health')).body).toMatchObject({ name: 'GoTrue', version: expect.any(String) })
  expect((await service.get('/health/live')).status).toBe(200)
  expect((await service.get('/health/ready')).status).toBe(200)
  const { body } = await service.get('/openapi.json')
  expect(Object.keys(body.paths)).toEqual(
    expect.arrayContaining(['/signup', '/token', '/verify', '/user', '/logout', '/settings']),
  )
  expect((await service.get('/docs/')).text).toContain('swagger')
})

test('a path that climbs out of the docs, as sent on the wire, is 404', async ({ service }) => {
  const { port } = new URL(await service.app.listen({ port: 0, host: '127.0.0.1' }))
  for (const path of ['/docs/static/../../../package.json', '/docs/static/..%2f..%2fpackage.json']) {
    const socket = connect(Number(port), '127.0.0.1')
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    await once(socket, 'close')
    expect([path, answer.split('\r\n')[0]]).toEqual([path, 'HTTP/1.1 404 Not Found'])
  }
})
