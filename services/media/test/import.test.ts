import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'
import { afterAll, beforeAll, expect } from 'vitest'
import { clip } from './clips.ts'
import { idIn, startTestService, type TestService, test } from './service.ts'

let site: string
const server = createFarServer((request, response) => {
  const answer = answers[request.url ?? '']
  if (answer) answer(request, response)
  else response.writeHead(404).end()
})
const answers: Record<string, RequestListener> = {
  '/page': (_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<p>hello'),
  '/text': (_request, response) => response.writeHead(200, { 'content-type': 'video/mp4' }).end('not a video'),
  '/empty': (_request, response) => response.writeHead(200).end(),
  '/broken': (_request, response) => response.writeHead(500).end(),
  '/large': (_request, response) => response.writeHead(200, { 'content-length': 200_000_000 }).flushHeaders(),
  '/cut': (_request, response) =>
    response.writeHead(200, { 'content-length': 1000 }).end('GIF89a', () => response.destroy()),
  '/metadata': (_request, response) => response.writeHead(302, { location: 'http://169.254.169.254/latest/' }).end(),
}

beforeAll(async () => {
  const [mp4, gif] = await Promise.all([readFile(await clip('plain.mp4')), readFile(await clip('plain.gif'))])
  answers['/clip.mp4'] = (_request, response) => response.writeHead(200).end(mp4)
  // Whatever the name and the header say.
  answers['/clip.php?id=1'] = (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(gif)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

test('an address of a clip becomes a clip, with the given description', async ({ service }) => {
  const answer = await service.importFrom({
    source: `${site}/clip.mp4`,
    title: 'Imported',
    tags: ['a, b', 'c'],
    nsfw: true,
    attribution: { site: 'https://example.com/', user: '@ada', url: 7 },
    colour: 'ignored',
  })
  expect(answer.status).toBe(422)
  expect(answer.body.error).toMatchObject({ code: 'invalid_field', param: 'attribution.url' })

  const right = await service.importFrom({
    source: `${site}/clip.mp4`,
    title: 'Imported',
    tags: ['a, b', 'c'],
    nsfw: true,
    attribution: { site: 'https://example.com/', user: '@ada', url: null },
    colour: 'ignored',
  })
  expect(right.status).toBe(201)
  expect(right.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(right.body.success.meta).toEqual({ duration: '2s', frames: '50', height: '60', width: '80' })
  const { body } = await service.get(`/media/${idIn(right)}`, { token: service.token })
  expect(body.success).toMatchObject({
    title: 'Imported',
    tags: ['a, b', 'c'],
    nsfw: true,
    attribution: { site: 'https://example.com/', user: 'ada' },
    source: { kind: 'import', url: `${site}/clip.mp4`, type: 'mp4' },
  })
})

test('the content decides the type, not the name or header of the file; null is "not given"', async ({ service }) => {
  const answer = await service.importFrom({ source: `${site}/clip.php?id=1`, title: null, attribution: null })
  expect(answer.status).toBe(201)
  expect(answer.body.success.meta.frames).toBe('15')
})

test.for<[string, number, string, object?]>([
  ['/page', 422, 'unsupported_site_content'],
  ['/empty', 422, 'unsupported_site_content'],
  ['/text', 415, 'unsupported_media_type', { accepted: ['image/gif', 'video/mp4', 'video/webm'] }],
  ['/missing', 424, 'source_fetch_failed', { upstream: '4xx' }],
  ['/broken', 424, 'source_fetch_failed', { upstream: '5xx' }],
  ['/cut', 424, 'source_fetch_failed', { upstream: 'interrupted' }],
  ['/large', 413, 'file_too_large', { limit: 157286400 }],
  ['/metadata', 403, 'source_forbidden'],
])('%s is %i %s, and nothing is left', async ([path, status, code, details], { service }) => {
  const before = await service.traces()
  const { status: got, body } = await service.importFrom({ source: site + path })
  expect([got, body.error.code]).toEqual([status, code])
  expect(body.error.details).toEqual(details)
  expect(await service.traces()).toEqual(before)
})

test('a source that does not answer is 424', async ({ service }) => {
  const { status, body } = await service.importFrom({ source: 'http://127.0.0.1:9/clip.mp4' })
  expect([status, body.error.details]).toEqual([424, { upstream: 'unreachable' }])
})

test.for<[unknown, number, string, string?]>([
  ['{"source":', 400, 'invalid_json'],
  ['', 400, 'invalid_json'],
  [{}, 400, 'missing_source'],
  [{ source: null }, 400, 'missing_source'],
  [[], 422, 'invalid_field'],
  ['"text"', 422, 'invalid_field'],
  [{ source: 3 }, 422, 'invalid_field', 'source'],
  [{ source: 'clip.mp4' }, 422, 'invalid_field', 'source'],
  [{ source: 'ftp://example.com/clip.mp4' }, 422, 'invalid_field', 'source'],
  [{ source: 'https://user:pass@example.com/' }, 422, 'invalid_field', 'source'],
  [{ source: `https://example.com/${'x'.repeat(2048)}` }, 422, 'invalid_field', 'source'],
  [{ source: 'https://example.com/', tags: 'a,b' }, 422, 'invalid_field', 'tags'],
  [{ source: 'https://example.com/', tags: [1] }, 422, 'invalid_field', 'tags.0'],
  [{ source: 'https://example.com/', nsfw: 'true' }, 422, 'invalid_field', 'nsfw'],
  [{ source: 'https://example.com/', title: {} }, 422, 'invalid_field', 'title'],
  [{ source: 'https://example.com/', attribution: 'me' }, 422, 'invalid_field', 'attribution'],
  [{ source: 'https://example.com/', attribution: { user: 'me' } }, 422, 'invalid_field', 'attribution.site'],
  [`{"source":"${'x'.repeat(1_100_000)}"}`, 413, 'body_too_large'],
])('%j is %i %s', async ([body, status, code, param], { service }) => {
  const answer = await service.importFrom(body)
  expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([status, code, param])
})

test('a body of another type is 415', async ({ service }) => {
  for (const type of ['text/plain', 'text/json', 'multipart/mixed; boundary=b', 'application/xml']) {
    const { status, body } = await service.importFrom('source=x', { 'content-type': type })
    expect([status, body.error.code]).toEqual([415, 'unsupported_media_type'])
  }
})

test('our own network is unreachable unless the operator allows it', async () => {
  const guarded = await startTestService({ MEDIA_IMPORT_ALLOW_CIDRS: '', MEDIA_WORKERS_ENABLED: 'false' })
  for (const source of [
    `${site}/clip.mp4`,
    'http://localhost/',
    'http://[::1]/',
    'http://169.254.169.254/',
    'http://0x7f.1/',
  ]) {
    const { status, body } = await guarded.importFrom({ source })
    expect([source, status, body.error.code, body.error.details]).toEqual([source, 403, 'source_forbidden', undefined])
  }
  await guarded.close()
})

test('networks and ports are refused as the operator says, before any connection', async () => {
  const denied = await startTestService({ MEDIA_EGRESS_DENY_CIDRS: '127.0.0.1/32', MEDIA_WORKERS_ENABLED: 'false' })
  const outcome = async (service: TestService, source: string) => {
    const { status, body } = await service.importFrom({ source })
    return [source, status, body.error.code]
  }
  const forbidden = (source: string) => [source, 403, 'source_forbidden']
  expect(await outcome(denied, `${site}/clip.mp4`)).toEqual(forbidden(`${site}/clip.mp4`))
  expect((await denied.importFrom({ source: 'http://127.0.0.2:9/' })).status).toBe(424)
  await denied.close()

  const ported = await startTestService({
    MEDIA_IMPORT_ALLOW_CIDRS: '',
    MEDIA_IMPORT_PORTS: '8443',
    MEDIA_WORKERS_ENABLED: 'false',
  })
  for (const source of ['https://files.test/', 'http://files.test/', 'https://8.8.8.8/']) {
    expect(await outcome(ported, source)).toEqual(forbidden(source))
  }
  // The port is allowed, and the name never resolves (RFC 6761).
  expect((await ported.importFrom({ source: 'https://files.invalid:8443/' })).status).toBe(424)
  await ported.close()
})

test('the service does not import what it serves itself', async ({ service }) => {
  for (const source of ['https://files.example/f/00000000.mp4', 'https://media.example/gif/00000000']) {
    const { status, body } = await service.importFrom({ source })
    expect([status, body.error.code]).toEqual([403, 'source_forbidden'])
  }
})
