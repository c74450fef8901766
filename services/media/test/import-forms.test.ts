// Imports without JSON: forms, and the query of a GET, as the service's original took them.
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clip } from './clips.ts'
import { type Answer, type FormFields, idIn, startTestService, type TestService } from './service.ts'
import { bytes, startFarSide } from './upstreams/far-side.ts'

let service: TestService
let far: Awaited<ReturnType<typeof startFarSide>>
let file: Buffer
let direct: string
let source: string
beforeAll(async () => {
  far = await startFarSide(['far.example'])
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
  direct = `${far.base}/far.example/clip.mp4`
  source = `${direct}?a=1&b=2`
  file = await readFile(await clip('plain.mp4'))
})
beforeEach(() => far.answers({ 'https://far.example/clip.mp4': bytes(file) }))
afterAll(async () => {
  await service.close()
  far.close()
})

type Send = (fields: FormFields, headers?: Record<string, string>) => Promise<Answer>

const byQuery: Send = (fields, headers = {}) =>
  service.call('GET', `/media/import?${new URLSearchParams(fields)}`, { headers: { token: service.token, ...headers } })
const byUrlencoded: Send = (fields, headers = {}) =>
  service.call('POST', '/media/import', {
    body: new URLSearchParams(fields),
    headers: { token: service.token, ...headers },
  })
const byMultipart: Send = (fields, headers = {}) => {
  const form = new FormData()
  for (const [name, value] of fields) form.append(name, value)
  return service.call('POST', '/media/import', { body: form, headers: { token: service.token, ...headers } })
}

const ways: [string, Send][] = [
  ['the query of a GET', byQuery],
  ['a urlencoded form', byUrlencoded],
  ['a multipart form', byMultipart],
]

const detailsOf = async (answer: Answer) =>
  (await service.get(`/media/${idIn(answer)}`, { token: service.token })).body.success

describe.each(ways)('%s', (_, send) => {
  test('imports as JSON does, with the spellings of an upload', async () => {
    const answer = await send([
      ['source', source],
      ['title', 'Two & two'],
      ['tags[]', 'a, b'],
      ['tags[1]', 'c'],
      ['nsfw', 'on'],
      ['attribution[site]', 'reddit'],
      ['attribution.user', 'u/someone'],
      ['start', '0:00.5'],
      ['unknown', 'ignored'],
    ])
    expect([answer.status, answer.headers.get('ratelimit-limit')]).toEqual([201, '100000'])
    expect(Object.keys(answer.body.success)).toEqual(['page', 'files', 'oembed', 'embed', 'meta'])
    expect(await detailsOf(answer)).toMatchObject({
      ...{ title: 'Two & two', tags: ['a', 'b', 'c'], nsfw: true, edit: { start: 0.5 } },
      attribution: { site: 'reddit', user: 'someone' },
      source: { kind: 'import', url: source },
    })
  })

  test('reads Prefer, include=details and Idempotency-Key, whichever way came first', async () => {
    const key = { 'idempotency-key': `key of ${_}`, prefer: 'respond-async' }
    const fields: FormFields = [
      ['source', source],
      ['title', 'Once'],
    ]
    const first = await send(fields, key)
    expect(first.headers.get('preference-applied')).toBe('respond-async')
    const again = await service.call('POST', '/media/import?include=details', {
      body: JSON.stringify({ source, title: 'Once' }),
      headers: { token: service.token, 'content-type': 'application/json', ...key },
    })
    expect([idIn(again), again.headers.get('idempotency-replayed')]).toEqual([idIn(first), 'true'])
    expect(again.body.success).toHaveProperty('state')
    const other = await send(
      [
        ['source', source],
        ['title', 'Twice'],
      ],
      key,
    )
    expect([other.status, other.body.error.code]).toEqual([409, 'idempotency_conflict'])
  })

  test.each<[string, FormFields, Record<string, string>, number, string, string?]>([
    ['no token', [['source', 'https://far.example/clip.mp4']], { token: '' }, 401, 'token_missing_or_invalid'],
    ['no source', [['title', 'x']], {}, 400, 'missing_source'],
    [
      '61 fields',
      Array.from({ length: 61 }, () => ['source', 'https://far.example/clip.mp4']),
      {},
      400,
      'invalid_request',
    ],
    ['a bad source', [['source', 'ftp://far.example/a']], {}, 422, 'invalid_field', 'source'],
    [
      'a bad flag',
      [
        ['source', 'https://far.example/clip.mp4'],
        ['nsfw', 'perhaps'],
      ],
      {},
      422,
      'invalid_field',
      'nsfw',
    ],
    [
      'a bad edit',
      [
        ['source', 'https://far.example/clip.mp4'],
        ['speed', '9'],
      ],
      {},
      422,
      'invalid_field',
      'speed',
    ],
    ['a private address', [['source', 'http://10.0.0.1/a.mp4']], {}, 403, 'source_forbidden'],
  ])('with %s is refused, and leaves nothing', async (_, fields, headers, status, code, param) => {
    const before = await service.traces()
    const answer = await send(fields, headers)
    expect([answer.status, answer.body.error.code, answer.body.error.param]).toEqual([status, code, param])
    expect(await service.traces()).toEqual(before)
  })

  test('counts against the limit of imports, and a token without the scope adds nothing', async () => {
    const { token } = await service.newToken({ limits: { import: 1 } })
    const fields: FormFields = [['source', source]]
    expect((await send(fields, { token })).status).toBe(201)
    const second = await send(fields, { token })
    expect([second.status, second.body.error.code]).toEqual([429, 'rate_limited'])
    const reader = await service.newToken({ scopes: ['read'] })
    expect((await send(fields, { token: reader.token })).body.error.code).toBe('insufficient_scope')
  })
})

test('a token in the query is none: a link alone adds nothing', async () => {
  const before = await service.traces()
  const query = new URLSearchParams({ source, token: service.token, Token: service.token, access_token: service.token })
  expect((await service.get(`/media/import?${query}`)).status).toBe(401)
  expect(await service.traces()).toEqual(before)
})

test.each([
  ['HEAD', '/media/import', 'POST, GET'],
  ['PUT', '/media/import', 'POST, GET'],
  ['DELETE', '/media/import', 'POST, GET'],
  ['GET', '/media/upload', 'POST'],
  ['HEAD', '/media/upload', 'POST'],
  ['PUT', '/media/upload', 'POST'],
])('%s %s is 405, names the methods that are, and has no effect', async (method, path, allow) => {
  const before = await service.traces()
  // Outside the document, which has no such operation.
  const { status, headers } = await fetch(`${service.url}${path}?source=${encodeURIComponent(source)}`, {
    ...{ method, headers: { token: service.token } },
  })
  expect([status, headers.get('allow')]).toEqual([405, allow])
  expect(await service.traces()).toEqual(before)
})

test('the answer to a GET is not cached, and a source may have a query that is not encoded', async () => {
  const { status, headers, body } = await service.get(`/media/import?source=${direct}?x=1`, {
    token: service.token,
  })
  expect([status, headers.get('cache-control'), body.success.meta.frames]).toEqual([201, 'no-store', '50'])
})

describe('a body', () => {
  const post = (body: NonNullable<RequestInit['body']>, type: string) =>
    service.call('POST', '/media/import', { body, headers: { token: service.token, 'content-type': type } })

  test.each<[string, () => [NonNullable<RequestInit['body']>, string], number, string]>([
    ['of another type', () => ['source=x', 'text/plain'], 415, 'unsupported_media_type'],
    [
      'of over 128 KiB',
      () => [`title=${'x'.repeat(140_000)}`, 'application/x-www-form-urlencoded'],
      413,
      'body_too_large',
    ],
    ['multipart without a boundary', () => ['x', 'multipart/form-data'], 400, 'malformed_multipart'],
    [
      'multipart that ends early',
      () => ['--b\r\nContent-Disposition: form-data; name="source"\r\n\r\nx', 'multipart/form-data; boundary=b'],
      400,
      'malformed_multipart',
    ],
    ['multipart of dashes', () => ['-'.repeat(120_000), 'multipart/form-data; boundary=-'], 400, 'missing_source'],
  ])('%s', async (_, make, status, code) => {
    const answer = await post(...make())
    expect([answer.status, answer.body.error.code]).toEqual([status, code])
  })

  test('with a file is pointed to the upload', async () => {
    const form = new FormData()
    form.append('file', new Blob(['x']), 'clip.mp4')
    const { status, body } = await service.call('POST', '/media/import', {
      body: form,
      headers: { token: service.token },
    })
    expect([status, body.error.message, body.error.param]).toEqual([400, 'A file is sent to /media/upload.', 'file'])
  })
})
