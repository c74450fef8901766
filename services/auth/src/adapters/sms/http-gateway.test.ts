import { PermanentFailure } from '@services/common/queue/run-job'
import { createLogger } from '@services/common/telemetry/logger'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { smsConfig } from '../../../test/sms-config.ts'
import { type Behaviour, type SmsUpstream, startSmsGateways } from '../../../test/upstreams/sms-gateways.ts'
import { createSmsSender } from './send-sms.ts'

const FORM = '{"Content-Type":"application/x-www-form-urlencoded"}'
const NASTY = '"quoted" & a=b\n{{ .To }} \\ 50% ü'

let upstream: SmsUpstream
beforeAll(async () => {
  upstream = await startSmsGateways()
})
afterEach(() => {
  upstream.requests.length = 0
  upstream.behave('http')
})
afterAll(() => upstream.close())

function send(settings: Record<string, string> = {}, text = 'Your code is 012345') {
  const config = smsConfig({ ...upstream.settings('http'), ...settings })
  const sender = createSmsSender(config, createLogger({ name: 'test', level: 'fatal' }))
  return sender.send({ id: 'message-1', to: '4915100000001', text, code: '012345', channel: 'sms' })
}

const address = () => upstream.settings('http').AUTH_SMS_HTTP_URL as string

test('with nothing but an address it posts number and text as JSON', async () => {
  expect(await send()).toEqual({ gateway: 'http', providerMessageId: undefined })
  expect(upstream.requests[0]).toMatchObject({ method: 'POST', path: '/' })
  expect(upstream.requests[0]?.headers['content-type']).toBe('application/json')
  expect(JSON.parse(upstream.requests[0]?.body ?? '')).toEqual({ to: '4915100000001', text: 'Your code is 012345' })
})

test('headers, method and all four placeholders are its settings', async () => {
  await send({
    AUTH_SMS_HTTP_METHOD: 'PUT',
    AUTH_SMS_HTTP_HEADERS: '{"Authorization":"Bearer key","Content-Type":"application/vnd.sms+json"}',
    AUTH_SMS_HTTP_BODY: '{"n":[{{ .To }}],"t":"{{.Text}}","c":"{{ .Code }}","i":"{{- .MessageID -}}"}',
  })
  const [request] = upstream.requests
  expect(request?.method).toBe('PUT')
  expect(request?.headers).toMatchObject({ authorization: 'Bearer key', 'content-type': 'application/vnd.sms+json' })
  expect(JSON.parse(request?.body ?? '')).toEqual({
    n: [4915100000001],
    t: 'Your code is 012345',
    c: '012345',
    i: 'message-1',
  })
})

test('a text cannot leave its place, neither in JSON nor in a form nor in the address', async () => {
  await send({}, NASTY)
  await send({ AUTH_SMS_HTTP_HEADERS: FORM, AUTH_SMS_HTTP_BODY: 'to={{ .To }}&text={{ .Text }}&end=1' }, NASTY)
  await send(
    { AUTH_SMS_HTTP_METHOD: 'get', AUTH_SMS_HTTP_URL: `${address()}?to={{ .To }}&text={{ .Text }}&end=1` },
    NASTY,
  )
  const [json, form, get] = upstream.requests
  expect(JSON.parse(json?.body ?? '')).toEqual({ to: '4915100000001', text: NASTY })
  expect(form?.form).toEqual({ to: '4915100000001', text: NASTY, end: '1' })
  expect(get).toMatchObject({ method: 'GET', body: '' })
  const query = new URL(get?.path ?? '', 'http://x').searchParams
  expect(Object.fromEntries(query)).toEqual({ to: '4915100000001', text: NASTY, end: '1' })
})

test('the id is taken from the answer by its path, and only if it looks like one', async () => {
  const path = { AUTH_SMS_HTTP_MESSAGE_ID: 'result.0.id' }
  const answers: [unknown, string | undefined][] = [
    [{ result: [{ id: 'abc-1' }] }, 'abc-1'],
    [{ result: [{ id: 17 }] }, '17'],
    [{ result: [{ id: 'sent to 4915100000001, thanks' }] }, undefined],
    [{ result: [{ id: { nested: true } }] }, undefined],
    [{ result: 'text' }, undefined],
    [null, undefined],
  ]
  for (const [body, id] of answers) {
    upstream.behave('http', { status: 200, body: JSON.stringify(body) })
    expect((await send(path)).providerMessageId).toBe(id)
  }
})

test.for<[string, string, Behaviour, 'sent' | 'refused' | 'retry']>([
  ['200-299', 'a status in the range', { status: 204, body: '' }, 'sent'],
  ['200-299', 'a status outside it', { status: 302, body: '' }, 'retry'],
  ['200,202', 'a status between two listed', { status: 201, body: '' }, 'refused'],
  ['200-299', 'a refusal', { status: 403, body: '' }, 'refused'],
  ['200-299', 'too many requests', { status: 429, body: '' }, 'retry'],
  ['200-299', 'an error of theirs', { status: 502, body: '<html>' }, 'retry'],
  ['200,status=ok', 'the fact', { status: 200, body: '{"status":"ok"}' }, 'sent'],
  ['200,status=ok', 'another fact', { status: 200, body: '{"status":"failed"}' }, 'refused'],
  ['200,status=ok', 'no fact', { status: 200, body: '{}' }, 'refused'],
  ['200,status=ok', 'garbage instead of facts', { status: 200, body: '<html>' }, 'refused'],
  ['200,list.0.error=0', 'a number', { status: 200, body: '{"list":[{"error":0}]}' }, 'sent'],
  ['200,a=1,b=true', 'one fact of two', { status: 200, body: '{"a":1,"b":false}' }, 'refused'],
  ['200,status=ok', 'a connection that closes', 'drop', 'retry'],
  ['200', 'an answer without end', 'endless', 'retry'],
])('success is %s: %s', async ([success, , behaviour, expected]) => {
  upstream.behave('http', behaviour)
  const outcome = await send({ AUTH_SMS_HTTP_SUCCESS: success }).then(
    () => 'sent',
    (error: Error) => (error instanceof PermanentFailure ? 'refused' : 'retry'),
  )
  expect(outcome).toBe(expected)
})
