import { dereferenced } from '@services/common/testing/http/dereferenced'
import { undocumentedRoutes } from '@services/common/testing/http/held-answers'
import { expect } from 'vitest'
import { test } from './service.ts'

interface Operation {
  tags: string[]
  parameters?: { name: string; in: string }[]
  responses: Record<string, { headers?: Record<string, object> }>
  requestBody?: { content: Record<string, { example?: object; schema: { properties?: object } }> }
}

const GROUPS = [
  ...['sign-up', 'verify', 'sign-in', 'external sign-in', 'passkeys', 'account', 'second factors', 'OAuth server'],
  ...['admin', 'service'],
]

test('the groups of operations are in the order of their use, sign-up first and health last', async ({ service }) => {
  const { body } = await service.get('/openapi.json')
  expect(body.tags.map(({ name }: { name: string }) => name)).toEqual(GROUPS)
  const operations = Object.values<Record<string, Operation>>(body.paths).flatMap((path) => Object.values(path))
  expect(new Set(operations.flatMap(({ tags }) => tags))).toEqual(new Set(GROUPS))
})

/** Operations that the document leaves out, besides the page of /docs and its files. */
const UNDOCUMENTED = [
  // Pages and documents that no client calls.
  'GET /',
  'GET /openapi.json',
  'GET /ui/assets/*',
  // Refused, whatever comes: these features are never enabled.
  ...[...['/sso', '/scim'], '/admin/sso']
    .flatMap((path) => [path, `${path}/*`])
    .flatMap((path) => ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => `${method} ${path}`)),
  // Preflights of browsers, which send them by themselves.
  'OPTIONS *',
]

test('every other route is documented', async ({ service }) => {
  const routes = (await undocumentedRoutes(service.app)).filter((route) => !route.startsWith('GET /docs'))
  expect(routes.sort()).toEqual(UNDOCUMENTED.sort())
})

test('scripts of any origin may send each request header, and read each header of a success', async ({ service }) => {
  const { body } = await service.get('/openapi.json')
  const { paths } = dereferenced<{ paths: Record<string, Record<string, Operation>> }>(body)
  const operations = Object.values(paths).flatMap((path) => Object.values(path))
  const sent = operations.flatMap(({ parameters = [] }) =>
    parameters.flatMap((parameter) => (parameter.in === 'header' ? [parameter.name] : [])),
  )
  const read = operations.flatMap(({ responses }) =>
    Object.entries(responses).flatMap(([status, { headers = {} }]) =>
      status.startsWith('2') ? Object.keys(headers) : [],
    ),
  )
  const origin = 'https://app.example'
  const preflight = { origin, 'access-control-request-method': 'PUT' }
  const { headers: allowing } = await service.app.inject({ method: 'OPTIONS', url: '/user', headers: preflight })
  const { headers: exposing } = await service.get('/settings', { origin })
  const missing = (names: string[], list: unknown) => {
    const listed = String(list).toLowerCase().split(/, */)
    return [...new Set(names)].filter((name) => !listed.includes(name.toLowerCase()))
  }
  expect([sent.length, read.length]).not.toContain(0)
  expect(missing(sent, allowing['access-control-allow-headers'])).toEqual([])
  // A refusal of a client's token says why, and which scopes help.
  expect(missing([...read, 'WWW-Authenticate'], exposing['access-control-expose-headers'])).toEqual([])
})

test('each request for a link takes a code challenge', async ({ service }) => {
  const { body } = await service.get('/openapi.json')
  const takers: string[] = []
  const others: string[] = []
  for (const [path, operations] of Object.entries<Record<string, Operation>>(body.paths)) {
    for (const [method, { parameters = [], requestBody }] of Object.entries(operations)) {
      const members = Object.keys(requestBody?.content['application/json']?.schema.properties ?? {})
      if (![...members, ...parameters.map(({ name }) => name)].includes('redirect_to') || !requestBody) continue
      const list = members.includes('code_challenge') && members.includes('code_challenge_method') ? takers : others
      list.push(`${method.toUpperCase()} ${path}`)
    }
  }
  // It redeems a link.
  expect(others).toEqual(['POST /verify'])
  expect(takers).toEqual(
    expect.arrayContaining(['POST /signup', 'POST /invite', 'POST /admin/generate_link', 'PUT /user']),
  )
})

test('each JSON body has an example', async ({ service }) => {
  const { body } = await service.get('/openapi.json')
  for (const [path, operations] of Object.entries<Record<string, Operation>>(body.paths)) {
    for (const [method, { requestBody }] of Object.entries(operations)) {
      const media = requestBody?.content['application/json']
      if (media) expect([method, path, media.example]).toEqual([method, path, expect.any(Object)])
    }
  }
})

test('each operation has an id of its own, and what operations share has a name', async ({ service }) => {
  const { body, text } = await service.get('/openapi.json')
  const operations = Object.values<Record<string, { operationId: string }>>(body.paths).flatMap((path) =>
    Object.values(path),
  )
  const ids = operations.map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z]+$/)
  expect(Object.keys(body.components.schemas)).toEqual(
    expect.arrayContaining(['Error', 'Factor', 'Identity', 'Session', 'SessionInfo', 'User', 'UserList']),
  )
  const { responses } = body.paths['/user'].get
  expect(responses[200].content['application/json'].schema).toEqual({ $ref: '#/components/schemas/User' })
  expect(responses[401]).toEqual({ $ref: '#/components/responses/Error401' })
  expect(body.components.responses.Error401.content).toEqual({
    'application/json': { schema: { $ref: '#/components/schemas/Error' } },
  })
  // Inlining every shape would make it three times as large.
  expect(text.length).toBeLessThan(300_000)
})

test('numbers, choices, what is needed, what may be left out and what may be null are described as they are', async ({
  service,
}) => {
  const { paths } = (await service.get('/openapi.json')).body
  const parameters: { name: string; required: boolean; schema: object }[] = [
    ...paths['/admin/users'].get.parameters,
    ...paths['/token'].post.parameters,
  ]
  const parameter = (name: string) => parameters.find((each) => each.name === name)
  expect(parameter('per_page')).toMatchObject({ required: false, schema: { type: 'integer' } })
  expect(parameter('grant_type')).toMatchObject({
    required: true,
    schema: { type: 'string', enum: ['password', 'refresh_token', 'pkce', 'id_token', 'web3'] },
  })
  expect(paths['/admin/users/{user_id}'].delete.requestBody.required).toBe(false)
  const { requestBody } = paths['/factors'].post
  expect(requestBody.required).toBe(true)
  const { schema } = requestBody.content['application/json']
  expect(schema.required).toEqual(['factor_type'])
  expect(schema.properties).toMatchObject({
    factor_type: { type: 'string', enum: ['totp', 'phone', 'webauthn'] },
    friendly_name: { type: ['string', 'null'] },
  })
})

test('the examples can be sent as they are: sign-up, sign-in, mails, a change, a factor, users of an admin', async ({
  service,
}) => {
  const open = await service.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
  const { body } = await open.get('/openapi.json')
  const send = (method: 'POST' | 'PUT', path: string, { headers = {}, url = path } = {}) =>
    open.app.inject({
      method,
      url,
      payload: body.paths[path][method.toLowerCase()].requestBody.content['application/json'].example,
      headers,
    })
  expect(await send('POST', '/signup')).toMatchObject({ statusCode: 200 })
  const signedIn = await send('POST', '/token', { url: '/token?grant_type=password' })
  expect(signedIn.statusCode).toBe(200)
  const user = { headers: { authorization: `Bearer ${signedIn.json().access_token}` } }
  expect(await send('PUT', '/user', user)).toMatchObject({ statusCode: 200 })
  expect(await send('POST', '/factors', user)).toMatchObject({ statusCode: 200 })
  const made = await send('POST', '/admin/users', { headers: service.admin })
  expect(made.statusCode).toBe(200)
  const one = { headers: service.admin, url: `/admin/users/${made.json().id}` }
  expect(await send('PUT', '/admin/users/{user_id}', one)).toMatchObject({ statusCode: 200 })
  for (const path of ['/otp', '/magiclink', '/recover', '/resend']) {
    // Each address is written to once a minute.
    await service.settled()
    service.clock.advance({ seconds: 61 })
    expect([path, (await send('POST', path)).statusCode]).toEqual([path, 200])
  }
  for (const path of ['/invite', '/admin/generate_link']) {
    expect([path, (await send('POST', path, { headers: service.admin })).statusCode]).toEqual([path, 200])
  }
})

test('the operations are below the external URL, the contact is the site, and the page of /docs calls them where it came from', async ({
  service,
}) => {
  const below = await service.with({ AUTH_API_EXTERNAL_URL: 'https://example.com/auth' })
  expect((await below.get('/openapi.json')).body.servers).toEqual([{ url: 'https://example.com/auth' }])
  const { servers, info } = (await service.get('/openapi.json')).body
  expect(servers).toEqual([{ url: 'https://auth.example' }])
  expect(info.contact).toEqual({ name: 'site.example', url: 'https://site.example' })
  expect((await below.get('/docs/json')).body.servers).toEqual([{ url: '/auth' }])
  expect((await service.get('/docs/json')).body.servers).toBeUndefined()
})

test('a base path that a route begins with, too, takes nothing from the document', async ({ service }) => {
  const below = await service.with({ AUTH_API_EXTERNAL_URL: 'https://example.com/admin' })
  const { status, body } = await below.get('/openapi.json')
  expect([status, Object.keys(body.paths)]).toEqual([200, Object.keys((await service.get('/openapi.json')).body.paths)])
})

test('the link of /docs leads to the document that names its server, with a slash at the end of the page or without', async ({
  service,
}) => {
  const below = await service.with({ AUTH_API_EXTERNAL_URL: 'https://example.com/auth' })
  for (const page of ['/auth/docs', '/auth/docs/']) {
    const [, link = ''] = /href="([^"]+)">openapi\.json</.exec((await below.get(page)).text) ?? []
    const { pathname } = new URL(link, `https://example.com${page}`)
    expect(pathname).toBe('/auth/openapi.json')
    expect((await below.get(pathname)).body.servers).toEqual([{ url: 'https://example.com/auth' }])
  }
})
