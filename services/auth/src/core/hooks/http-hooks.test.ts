import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { perFile } from '@services/common/testing/per-file'
import { Webhook } from 'standardwebhooks'
import { describe, expect, onTestFinished } from 'vitest'
import { test as base, type TestService } from '../../../test/service.ts'
import { FAILURES, json, startUpstream, text, type Upstream } from '../../../test/upstream.ts'
import type { AuditLog } from '../audit/audit.ts'

const SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes, ok').toString('base64')}`
const OTHER = `whsec_${Buffer.from('another secret of thirty-two byt').toString('base64')}`
const POINT = 'AUTH_HOOK_PASSWORD_VERIFICATION_ATTEMPT'

const test = base.extend<object & { receiver: Upstream }>({
  receiver: perFile(() => startUpstream(json({}))),
})

/** The answer as a receiver writes it: with its content type. */
const answers = (status: number, body: string, headers: Record<string, string> = {}) =>
  ((response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)) satisfies Parameters<
    Upstream['answer']
  >[0]

/** Asks once, and returns the answer or the failure, beside the log lines. */
async function ask(
  { service, receiver }: { service: TestService; receiver: Upstream },
  respond: Parameters<Upstream['answer']>[0],
  settings: Record<string, string> = {},
) {
  const own = await service.with({
    [`${POINT}_ENABLED`]: 'true',
    [`${POINT}_URI`]: `${receiver.url}/hook?key=hidden`,
    [`${POINT}_SECRETS`]: `v1,${SECRET}`,
    ...settings,
  })
  onTestFinished(() => own.close())
  receiver.answer(respond)
  receiver.requests.length = 0
  const lines: { level: string; facts: Record<string, unknown> }[] = []
  const log = {
    info: (facts: Record<string, unknown>) => void lines.push({ level: 'info', facts }),
    warn: (facts: Record<string, unknown>) => void lines.push({ level: 'warn', facts }),
  } as unknown as AuditLog
  const payload = { user_id: 'b7a0c3a5-5f7e-4f0e-8f8e-0a8c1f3c0a11', valid: true }
  const outcome = await own.deps.hooks.ask('password-verification', log, payload).then(
    (answer) => ({ answer }),
    ({ status, code, message }) => ({ status, code, message }),
  )
  return { ...outcome, lines, requests: [...receiver.requests] }
}

describe('an answer', () => {
  test.for<[string, ReturnType<typeof answers>, object]>([
    ['is an object', answers(200, '{"decision":"reject","message":"no"}'), { decision: 'reject', message: 'no' }],
    ['has members that mean nothing here', answers(200, '{"claims":1,"other":[]}'), {}],
    ['has a member that is null', answers(200, '{"decision":null}'), {}],
    ['is accepted', answers(202, '{}'), {}],
    ['has a type with parameters', answers(200, '{}', { 'content-type': 'Application/JSON; charset=utf-8' }), {}],
    ['has no body', (response) => void response.writeHead(204).end(), {}],
    ['has an error without a message', answers(200, '{"error":{"http_code":403,"message":""}}'), {}],
    ['has an error that is null', answers(200, '{"error":null}'), {}],
    ['has 200 KiB', answers(200, `{"message":"${'x'.repeat(204_800 - 14)}"}`), { message: 'x'.repeat(204_800 - 14) }],
  ])('%s', async ([, respond, answer], { service, receiver }) => {
    expect(await ask({ service, receiver }, respond)).toMatchObject({ answer })
  })
})

const failed = (message: string) => ({ status: 500, code: 'unexpected_failure', message })
const refused = (status: number, message: string) => ({ status, code: 'hook_rejected', message })
const unfit = failed('Error unmarshaling JSON output.')
const busy = failed('Service currently unavailable due to hook')
const tooLarge = {
  status: 422,
  code: 'hook_payload_over_size_limit',
  message: 'Payload size exceeded size limit of 204800 bytes',
}
const wrongType = (message: string) => ({ status: 400, code: 'hook_payload_invalid_content_type', message })

describe('a hook that', () => {
  test.for<[string, Parameters<Upstream['answer']>[0], object]>([
    ['refuses', answers(200, '{"error":{"http_code":403,"message":"not you"}}'), refused(403, 'not you')],
    ['refuses without a status', answers(200, '{"error":{"message":"not you"}}'), refused(500, 'not you')],
    ['refuses with a success', answers(200, '{"error":{"http_code":200,"message":"no"}}'), refused(500, 'no')],
    ['refuses with no status at all', answers(200, '{"error":{"http_code":1e9,"message":"no"}}'), refused(500, 'no')],
    ['refuses by its status', answers(403, '{"error":{"message":"not you"}}'), refused(403, 'not you')],
    ['refuses by both', answers(400, '{"error":{"http_code":429,"message":"slow"}}'), refused(429, 'slow')],
    ['refuses in other JSON', answers(403, '{"message":"not you"}'), failed(unexpected(403))],
    ['refuses in words', text('{"error":{"message":"not you"}}', 403), failed(unexpected(403))],
    ['answers 400', answers(400, '{}'), failed('Invalid payload sent to hook')],
    ['answers 401', answers(401, ''), failed('Hook requires authorization token')],
    ['answers 201', answers(201, '{}'), failed(unexpected(201))],
    ['answers 500', answers(500, '{"error":{"message":"stack"}}'), failed(unexpected(500))],
    ['redirects', FAILURES.redirects as never, failed(unexpected(307))],
    ['answers 429', answers(429, ''), busy],
    ['answers 503', answers(503, ''), busy],
    ['answers 503 to each attempt', answers(503, '', { 'retry-after': '100' }), busy],
    ['answers too much', answers(200, `{"message":"${'x'.repeat(204_800)}"}`), tooLarge],
    ['answers without a type', text('{}'), wrongType('Invalid Content-Type: Missing Content-Type header')],
    [
      'answers HTML',
      answers(200, '{}', { 'content-type': 'text/html' }),
      wrongType('Invalid JSON response. Received content-type: text/html'),
    ],
    ['answers no JSON', answers(200, '{'), unfit],
    ['answers nothing as JSON', answers(200, ''), unfit],
    ['answers a list', answers(200, '[]'), unfit],
    ['answers a wrong member', answers(200, '{"should_logout_user":"yes"}'), unfit],
    ['answers a wrong error', answers(200, '{"error":"no"}'), unfit],
    ['answers a wrong status', answers(200, '{"error":{"http_code":"403","message":"no"}}'), unfit],
    ['answers a wrong message', answers(200, '{"error":{"message":5}}'), unfit],
  ])('%s', async ([, respond, failure], { service, receiver }) => {
    const { lines, ...outcome } = await ask({ service, receiver }, respond)
    expect(outcome).toMatchObject(failure)
    const { code } = failure as { code: string }
    const success = code === 'hook_rejected'
    expect(lines).toMatchObject([{ level: success ? 'info' : 'warn', facts: { success, result: code } }])
  })

  test.for(['hangs before the answer', 'hangs within the answer', 'answers without end'])(
    '%s takes no longer than its time',
    async (failure, { service, receiver }) => {
      const respond: Parameters<Upstream['answer']>[0] = (response, body) => {
        response.setHeader('content-type', 'application/json')
        FAILURES[failure]?.(response, body)
      }
      const timeout = { [`${POINT}_TIMEOUT`]: '100ms' }
      const outcome = await ask({ service, receiver }, respond, timeout)
      const late = 'Failed to reach hook within maximum time of 0.100000 seconds'
      const expected = failure === 'answers without end' ? [tooLarge.code, 'hook_timeout'] : ['hook_timeout']
      expect(expected).toContain('code' in outcome && outcome.code)
      if ('code' in outcome && outcome.code === 'hook_timeout') expect(outcome.message).toBe(late)
    },
  )
})

const unexpected = (status: number) => `Unexpected status code returned from hook: ${status}`

describe('another attempt', () => {
  test.for<[string, (isFirst: boolean) => Parameters<Upstream['answer']>[0]]>([
    ['the connection closes', (isFirst) => (isFirst ? (FAILURES['closes the connection'] as never) : json200)],
    [
      'the answer is cut',
      (isFirst) =>
        isFirst
          ? (response) => {
              response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' }).write('{')
              response.destroy()
            }
          : json200,
    ],
    ['it is busy', (isFirst) => (isFirst ? answers(503, 'later', { 'retry-after': '9' }) : json200)],
    ['it has too many', (isFirst) => (isFirst ? answers(429, '', { 'retry-after': 'Mon' }) : json200)],
  ])('follows when %s, with the same id and body', async ([, respond], { service, receiver }) => {
    const { requests, lines, ...outcome } = await ask({ service, receiver }, (response, body) => {
      respond(receiver.requests.length === 1)(response, body)
    })
    expect(outcome).toEqual({ answer: { decision: 'continue' } })
    expect(requests.map(({ headers }) => headers['webhook-id'])).toEqual(Array(2).fill(lines[0]?.facts.hookId))
    expect(new Set(requests.map(({ body }) => body)).size).toBe(1)
    expect(lines).toHaveLength(1)
  })

  test('is the last one of ATTEMPTS', async ({ service, receiver }) => {
    const attempts = { [`${POINT}_ATTEMPTS`]: '2' }
    const closes = FAILURES['closes the connection'] as Parameters<Upstream['answer']>[0]
    expect(await ask({ service, receiver }, closes, attempts)).toMatchObject({
      ...{ status: 422, code: 'hook_timeout_after_retry', message: 'Failed to reach hook after maximum retries' },
      requests: { length: 2 },
    })
  })
})

const json200 = answers(200, '{"decision":"continue"}')

describe('a request', () => {
  test('holds metadata and payload, and is signed for receivers of Standard Webhooks', async ({
    service,
    receiver,
  }) => {
    const secrets = { [`${POINT}_SECRETS`]: `v1,${SECRET}|v1,${OTHER}|` }
    const { requests, lines } = await ask({ service, receiver }, json200, secrets)
    const [{ method, path, headers, body } = {} as never] = requests
    expect({ method, path }).toEqual({ method: 'POST', path: '/hook?key=hidden' })
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'accept-encoding': 'identity' })
    const id = headers['webhook-id']
    expect(JSON.parse(body)).toEqual({
      metadata: { uuid: id, time: service.clock.now().toISOString(), name: 'password-verification' },
      user_id: 'b7a0c3a5-5f7e-4f0e-8f8e-0a8c1f3c0a11',
      valid: true,
    })
    // The library compares with the machine's clock.
    const seconds = Number(headers['webhook-timestamp'])
    expect(seconds).toBe(Math.floor(service.clock.now().getTime() / 1000))
    const sent = new Date(seconds * 1000)
    for (const secret of [SECRET, OTHER]) {
      const signature = new Webhook(secret).sign(String(id), sent, body)
      expect(String(headers['webhook-signature']).split(' ')).toContain(signature)
    }
    expect(lines).toMatchObject([
      {
        level: 'info',
        facts: { action: 'run_hook', hook: 'password-verification', uri: `${receiver.url}/hook`, success: true },
      },
    ])
    expect(JSON.stringify(lines)).not.toContain('hidden')
  })

  test('is signed by an Ed25519 key', async ({ service, receiver }) => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const own = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
    const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
    const key = `v1a,whpk_${own.toString('base64')}:whsk_${Buffer.concat([seed, own]).toString('base64')}`
    const { requests } = await ask({ service, receiver }, json200, { [`${POINT}_SECRETS`]: key })
    const [{ headers, body } = {} as never] = requests
    const [version, signature = ''] = String(headers['webhook-signature']).split(',')
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    expect(version).toBe('v1a')
    const verifier = createPublicKey(publicKey.export({ format: 'pem', type: 'spki' }))
    expect(verify(null, Buffer.from(signed), verifier, Buffer.from(signature, 'base64'))).toBe(true)
  })

  test('has no signature where that is switched off', async ({ service, receiver }) => {
    const unsigned = { [`${POINT}_SECRETS`]: '', [`${POINT}_UNSIGNED`]: 'true' }
    const { requests } = await ask({ service, receiver }, json200, unsigned)
    expect(requests[0]?.headers['webhook-id']).toBeTruthy()
    expect(requests[0]?.headers['webhook-signature']).toBeUndefined()
  })

  test('uses the connection of an earlier one', async ({ service }) => {
    const ports = new Set<number | undefined>()
    const receiver = await startUpstream((response) => {
      ports.add(response.socket?.remotePort)
      answers(200, '{}')(response)
    })
    onTestFinished(() => receiver.close())
    const again: Parameters<Upstream['answer']>[0] = (response) => {
      ports.add(response.socket?.remotePort)
      answers(200, '{}')(response)
    }
    for (let time = 0; time < 3; time++) await ask({ service, receiver }, again)
    expect(ports.size).toBe(1)
  })
})
