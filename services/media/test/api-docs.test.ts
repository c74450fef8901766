import { undocumentedRoutes } from '@services/common/testing/http/held-answers'
import { expect } from 'vitest'
import { clip } from './clips.ts'
import { idIn, test } from './service.ts'

interface Operation {
  tags: string[]
  requestBody?: { content: Record<string, { example?: Record<string, unknown> }> }
}

const GROUPS = [
  'media',
  'albums',
  'files',
  'pages',
  'session',
  'webhooks',
  'tokens',
  'moderation',
  'administration',
  'service',
]

test('/docs has our name and icon, fits phones, and loads nothing inline and nothing from other hosts', async ({
  service,
}) => {
  for (const path of ['/docs', '/docs/']) {
    const { status, text, headers } = await service.get(path)
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(text).toContain('<title>Media API</title>')
    expect(text).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">')
    expect(text).not.toMatch(/fastify|<style|style=|<script>/i)
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/)
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    for (const [, address = ''] of text.matchAll(/(?:href|src)="([^"]+)"/g)) {
      const { pathname } = new URL(address, `https://media.example${path}`)
      expect([pathname, (await service.get(pathname)).status]).toEqual([pathname, 200])
    }
  }
})

/** Operations that the document leaves out, besides the pages of /docs and their files. */
const UNDOCUMENTED = [
  // Pages and what they consist of.
  ...['GET /', 'GET /assets/*', 'GET /embed.js', 'GET /favicon.ico', 'GET /favicon.svg', 'GET /gif/:id/delete'],
  ...['GET /library', 'GET /library/cards', 'GET /library/:id', 'GET /library/delete', 'POST /library/delete'],
  ...['GET /library/albums', 'POST /library/albums', 'GET /library/albums/:id', 'POST /library/albums/:id'],
  ...['GET /library/albums/:id/delete', 'POST /library/albums/:id/delete'],
  'GET /openapi.json',
  'GET /robots.txt',
  'POST /session/end',
  ...['GET /admin', 'GET /admin/clips', 'POST /admin/decide', 'GET /admin/tokens', 'POST /admin/tokens'],
  ...['GET /admin/tokens/:id', 'POST /admin/tokens/:id', 'POST /admin/tokens/:id/sessions'],
  ...['POST /admin/tokens/:id/revoke', 'GET /admin/queue', 'POST /admin/queue/:id', 'GET /admin/webhooks'],
  ...['GET /admin/storage', 'POST /admin/storage/check', 'GET /admin/settings', 'GET /admin/audit'],
  // Preflights of browsers, which send them by themselves.
  'OPTIONS *',
  // PATCH, HEAD or DELETE behind a proxy that knows GET and POST only: `X-HTTP-Method-Override` says which.
  'POST /tus/:id',
]

test('every other route is documented', async ({ service }) => {
  const routes = (await undocumentedRoutes(service.app)).filter((route) => !route.startsWith('GET /docs'))
  expect(routes.sort()).toEqual(UNDOCUMENTED.sort())
})

test('the groups of operations are in the order of their use, and health is last', async ({ service }) => {
  const { body } = await service.get('/openapi.json')
  expect(body.tags.map(({ name }: { name: string }) => name)).toEqual(GROUPS)
  const used = Object.values<Record<string, Operation>>(body.paths).flatMap((path) =>
    Object.values(path).flatMap(({ tags }) => tags),
  )
  expect(new Set(used)).toEqual(new Set(GROUPS))
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
    expect.arrayContaining(['Clip', 'Delivery', 'Error', 'Problem', 'Token', 'Webhook']),
  )
  expect(body.servers).toEqual([{ url: 'https://media.example' }])
  expect(body.info.contact).toEqual({ name: 'Media', url: 'https://media.example' })
  // Inlining each shape in every place took 6 KB an operation.
  expect(text.length / ids.length).toBeLessThan(3_500)
})

test('files, pages, events and refusals have the media types that they are answered with', async ({ service }) => {
  const { paths, components } = (await service.get('/openapi.json')).body
  const typesOf = (path: string, method: string, status: number) => {
    const response = paths[path][method].responses[status]
    const { content } = response.$ref ? components.responses[response.$ref.split('/').at(-1)] : response
    return Object.keys(content ?? {})
  }
  const files = ['image/gif', 'image/jpeg', 'video/mp4', 'video/webm', 'image/webp']
  expect(typesOf('/f/{id}.{kind}', 'get', 200)).toEqual(files)
  expect(typesOf('/f/{id}.{kind}', 'get', 206)).toEqual([...files, 'multipart/byteranges'])
  for (const status of [200, 206, 304]) expect(typesOf('/f/{id}.{kind}', 'head', status)).toEqual([])
  expect(typesOf('/gif/{id}', 'get', 200)).toEqual(['text/html'])
  expect(typesOf('/oembed', 'get', 200)).toEqual(['application/json', 'text/xml'])
  expect(typesOf('/media/{id}/events', 'get', 200)).toEqual(['text/event-stream'])
  expect(typesOf('/media/{id}/events', 'get', 404)).toEqual(['application/json', 'application/problem+json'])
  expect(typesOf('/tus', 'post', 201)).toEqual([])
  expect(typesOf('/tus/{id}', 'head', 200)).toEqual([])
})

test('numbers, choices, what is needed and what may be null are described as they are', async ({ service }) => {
  const { paths } = (await service.get('/openapi.json')).body
  const parameter = (path: string, method: string, name: string) =>
    paths[path][method].parameters.find((each: { name: string }) => each.name === name)
  expect(parameter('/media', 'get', 'limit').schema).toEqual({ type: 'integer', minimum: 1, maximum: 100, default: 50 })
  expect(parameter('/oembed', 'get', 'url')).toMatchObject({ required: true, schema: { type: 'string' } })
  expect(parameter('/oembed', 'get', 'maxwidth').schema.type).toBe('integer')
  expect(parameter('/tus/{id}', 'head', 'tus-resumable')).toMatchObject({ required: true, schema: { enum: ['1.0.0'] } })
  const { schema } = paths['/media/import'].post.requestBody.content['application/json']
  expect(schema).toMatchObject({ required: ['source'], properties: { title: { type: ['string', 'null'] } } })
})

test('each JSON body has an example, which is accepted as it is', async ({ service }) => {
  const { body } = await service.get('/openapi.json')
  const { token, id: tokenId } = await service.newToken({ scopes: ['admin', 'write'] })
  const id = idIn(await service.ready(await clip('plain.gif')))
  const album = await service.call('POST', '/albums', {
    headers: { token: service.token, 'content-type': 'application/json' },
    body: JSON.stringify({ title: 'of the example', visibility: 'private' }),
  })
  // The clip of the example.
  await service.deps.pool.query(
    `insert into clips (id, token_id, source_id, source_kind, created_at)
     select 'EBhlMmOU', token_id, source_id, 'upload', created_at from clips where id = $1`,
    [id],
  )
  const answers: Record<string, number> = {}
  for (const [path, operations] of Object.entries<Record<string, Operation>>(body.paths)) {
    for (const [method, { requestBody }] of Object.entries(operations)) {
      const media = requestBody?.content['application/json']
      if (!media) continue
      expect([method, path, media.example]).toEqual([method, path, expect.any(Object)])
      // One leaves the machine, the other is for the owner of a clip alone.
      if (path === '/media/import' || path === '/media/{id}/copies') continue
      const reported = path === '/reports/{id}' && (await service.get('/reports', { token })).body.success.items[0]
      const subject = reported
        ? reported.id
        : path === '/tokens/{id}'
          ? tokenId
          : path.startsWith('/albums')
            ? album.body.success.id
            : id
      const answer = await service.call(method.toUpperCase(), path.replace('{id}', subject), {
        headers: { token, 'content-type': 'application/json' },
        body: JSON.stringify(media.example),
      })
      answers[`${method} ${path}`] = answer.status
    }
  }
  expect(answers).toEqual({
    'patch /albums/{id}': 200,
    'patch /media/{id}': 200,
    'patch /tokens/{id}': 200,
    'post /albums/{id}/links': 201,
    'post /albums': 201,
    'post /albums/{id}/items': 200,
    'put /albums/{id}/items': 200,
    'post /gif/{id}/report': 202,
    'post /media/bulk': 200,
    'post /media/{id}/links': 200,
    'post /media/{id}/moderation': 200,
    'post /reports/{id}': 200,
    'post /tokens': 201,
    'post /views': 200,
    'post /webhooks': 201,
  })
})
