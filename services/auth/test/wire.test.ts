import { say, sayAllThenListen } from '@services/common/testing/http/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startImpatient, startTestService, type TestService } from './service.ts'

let service: TestService
let impatient: TestService
let port: number
/** Port of the service whose requests may take a second. */
let impatientPort: number
beforeAll(async () => {
  service = await startTestService()
  impatient = await startImpatient(service)
  ;[port, impatientPort] = [await listen(service), await listen(impatient)]
})
afterAll(async () => {
  await impatient.close()
  await service.close()
})

const listen = async ({ app }: TestService) => Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port)

test('an unknown expectation is ignored (RFC 9110 10.1.1)', async () => {
  const { status } = await say(port, 'GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: x\r\n\r\n')
  expect(status).toBe(200)
})

test.for<[string, string, number, string]>([
  ['no HTTP', 'hello\r\n\r\n', 400, 'validation_failed'],
  [
    'headers of 70 KB',
    `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(70_000)}\r\n\r\n`,
    431,
    'request_entity_too_large',
  ],
  ['no Host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'validation_failed'],
  ['a tunnel', 'CONNECT evil.example:443 HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'validation_failed'],
  ['two Hosts', 'GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\nConnection: close\r\n\r\n', 400, 'validation_failed'],
  [
    'an address that is none',
    'GET /%E0%A4%A HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
    400,
    'validation_failed',
  ],
  [
    'a compressed body',
    'POST /signup HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}',
    415,
    'bad_json',
  ],
  [
    'a transfer coding beside chunked',
    'POST /signup HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    400,
    'validation_failed',
  ],
  [
    'a body that never comes',
    'POST /signup HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{',
    408,
    'request_timeout',
  ],
])('%s is answered in the form of every other error', async ([, bytes, status, code]) => {
  const answer = await say(status === 408 ? impatientPort : port, bytes)
  expect([answer.status, JSON.parse(answer.body)]).toEqual([
    status,
    { code: status, error_code: code, msg: expect.any(String) },
  ])
  expect(answer.head).toMatch(new RegExp(`^x-sb-error-code: ${code}\r?$`, 'im'))
})

test('a request without a body that names a Content-Encoding is answered', async () => {
  const { status } = await say(
    port,
    'GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Encoding: gzip\r\n\r\n',
  )
  expect(status).toBe(200)
})

test('requests sent ahead are answered, but for a connection that sends more than sixteen: it ends', async () => {
  const ask = 'GET /health HTTP/1.1\r\nHost: a\r\n\r\n'
  const last = 'GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
  expect((await say(port, ask.repeat(16) + last)).answers).toBe(17)
  expect((await say(port, ask.repeat(1_000))).answers).toBeLessThan(17)
})

test.each([
  ['too large', 'POST', '/signup', 413],
  ['of a caller without a token', 'PUT', '/user', 401],
])('a body %s costs nobody the answer, though all of it is sent', async (_, method, path, status) => {
  const body = Buffer.alloc(24_000_000)
  const head = `${method} ${path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  const { text, failures } = await sayAllThenListen(port, head, body)
  expect([text.slice(0, 13), failures]).toEqual([`HTTP/1.1 ${status} `, []])
  expect(text).toMatch(/\r\n\r\n\{.*\}$/)
})

test('OPTIONS outside a preflight is no error', async () => {
  expect((await service.app.inject({ method: 'OPTIONS', url: '/token' })).statusCode).toBe(204)
})
