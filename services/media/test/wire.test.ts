import { say } from '@services/common/testing/http/raw-http'
import { expect } from 'vitest'
import { gif } from './gif-bytes.ts'
import { idIn, type TestService, test } from './service.ts'

const portOf = ({ url }: TestService) => Number(new URL(url).port)

test.for<[string, string, number, string]>([
  ['no HTTP', 'hello\r\n\r\n', 400, 'invalid_request'],
  [
    'a chunk of no length',
    'POST /media/import HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    400,
    'invalid_request',
  ],
  ['headers of 20 KB', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
  ['no Host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'invalid_request'],
  ['a tunnel', 'CONNECT evil.example:443 HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'invalid_request'],
  ['two Hosts', 'GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\nConnection: close\r\n\r\n', 400, 'invalid_request'],
  ['two Hosts that agree', 'GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\nConnection: close\r\n\r\n', 400, 'invalid_request'],
  [
    'a compressed body',
    'POST /media/import HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}',
    415,
    'unsupported_media_type',
  ],
  [
    'a transfer coding beside chunked',
    'POST /media/import HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    400,
    'invalid_request',
  ],
  ['an address that is none', 'GET /%E0%A4%A HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 400, 'invalid_request'],
])('%s is answered in the form of every other error', async ([, bytes, status, code], { service }) => {
  const answer = await say(portOf(service), bytes)
  expect([answer.status, JSON.parse(answer.body)]).toEqual([
    status,
    {
      error: { code, message: expect.any(String), request_id: expect.any(String) },
      message: expect.any(String),
      reference: expect.stringContaining(`#${code}`),
    },
  ])
  expect(answer.head).toMatch(/^content-type: application\/json; charset=utf-8\r?$/im)
})

test('an unknown expectation is ignored (RFC 9110 10.1.1)', async ({ service }) => {
  const head = 'GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n'
  expect((await say(portOf(service), `${head}Expect: x\r\n\r\n`)).status).toBe(200)
})

test('a request without a body that names a Content-Encoding is answered', async ({ service }) => {
  const head = 'GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n'
  expect((await say(portOf(service), `${head}Content-Encoding: gzip\r\n\r\n`)).status).toBe(200)
})

test('requests sent ahead are answered, but for a connection that sends more than sixteen: it ends', async ({
  service,
}) => {
  const ask = 'GET /health HTTP/1.1\r\nHost: a\r\n\r\n'
  const last = 'GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
  expect((await say(portOf(service), ask.repeat(16) + last)).answers).toBe(17)
  expect((await say(portOf(service), ask.repeat(1_000))).answers).toBeLessThan(17)
})

test('without a body a JSON content type is ignored on DELETE and refused on POST', async ({ service }) => {
  const headers = { token: service.token, 'content-type': 'application/json' }
  const code = async (method: string, path: string, body?: string) =>
    (await service.call(method, path, { headers, ...(body === undefined ? {} : { body }) })).body.error.code
  expect(await code('DELETE', '/media/00000000')).toBe('not_found')
  expect(await code('DELETE', '/media/00000000', '{')).toBe('invalid_json')
  expect(await code('POST', '/media/import', '')).toBe('invalid_json')
})

test('a body of JSON is UTF-8 that can be stored as it is', async ({ service }) => {
  const id = idIn(await service.readyAlike(gif(16, 16, [{ delay: 10 }])))
  const headers = { token: service.token, 'content-type': 'application/json' }
  const change = async (body: string | Buffer) => {
    const answer = await service.call('PATCH', `/media/${id}`, { headers, body })
    return [answer.status, answer.body.error?.code]
  }
  expect(await change(Buffer.from([...Buffer.from('{"title":"'), 0xff, 0xfe, ...Buffer.from('"}')]))).toEqual([
    400,
    'invalid_json',
  ])
  for (const body of ['{"title":"\\ud800"}', '{"tags":["a\\u0000b"]}', '{"__proto__":1,"title":"x"}']) {
    expect([body, ...(await change(body))]).toEqual([body, 400, 'invalid_request'])
  }
  expect(await change('{"title":"größer 😀"}')).toEqual([200, undefined])
})

test('an unknown path is 404, and an unsupported method 405, whatever the body is', async ({ service }) => {
  const headers = { 'content-type': 'application/json' }
  const status = async (path: string) => (await service.call('POST', path, { headers, body: '' })).status
  expect([await status('/nothing/here'), await status('/oembed')]).toEqual([404, 405])
})

test('HTTP/1.0 needs no Host, and OPTIONS outside a preflight is no error', async ({ service }) => {
  expect((await say(portOf(service), 'GET /health HTTP/1.0\r\n\r\n')).status).toBe(200)
  expect((await service.call('OPTIONS', '/media/upload')).status).toBe(204)
})
