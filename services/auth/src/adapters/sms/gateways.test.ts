import { PermanentFailure } from '@services/common/queue/run-job'
import { createLogger } from '@services/common/telemetry/logger'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { smsConfig } from '../../../test/sms-config.ts'
import { type FarGateway, refusals, type SmsUpstream, startSmsGateways } from '../../../test/upstreams/sms-gateways.ts'
import { GatewayRefusal, type SmsMessage } from './gateway.ts'
import { createSmsSender } from './send-sms.ts'

const NAMED = ['twilio', 'messagebird', 'vonage', 'textlocal'] as const
const PHONE = '4915100000001'
const TEXT = 'Your code is 123456'

let upstream: SmsUpstream
beforeAll(async () => {
  upstream = await startSmsGateways()
})
afterEach(() => {
  upstream.requests.length = 0
  for (const gateway of NAMED) upstream.behave(gateway)
})
afterAll(() => upstream.close())

const send = (gateway: FarGateway, message: Partial<SmsMessage> = {}, settings: Record<string, string> = {}) => {
  const config = smsConfig({ ...upstream.settings(gateway), ...settings })
  const sender = createSmsSender(config, createLogger({ name: 'test', level: 'fatal' }))
  return sender.send({ id: 'message-1', to: PHONE, text: TEXT, code: '123456', channel: 'sms', ...message })
}

/** Failure of a send: its class, and the text that goes to the log. */
async function failureOf(gateway: FarGateway, settings: Record<string, string> = {}) {
  const error = await send(gateway, {}, settings).then(
    () => undefined,
    (failure: Error) => failure,
  )
  expect(error).toBeInstanceOf(Error)
  return { isPermanent: error instanceof PermanentFailure, text: (error as Error).message }
}

describe('a message goes out as each gateway documents it', () => {
  test('Twilio: basic credentials, messaging service, + before the number', async () => {
    expect(await send('twilio')).toEqual({
      gateway: 'twilio',
      providerMessageId: 'SM00000000000000000000000000000001',
    })
    expect(upstream.requests).toHaveLength(1)
    expect(upstream.requests[0]).toMatchObject({
      method: 'POST',
      path: '/2010-04-01/Accounts/AC00000000000000000000000000000001/Messages.json',
      form: { To: `+${PHONE}`, MessagingServiceSid: 'MG00000000000000000000000000000001', Body: TEXT },
    })
    const credentials = Buffer.from('AC00000000000000000000000000000001:twilio-token').toString('base64')
    expect(upstream.requests[0]?.headers.authorization).toBe(`Basic ${credentials}`)
  })

  test('Twilio: a number or name as sender goes into From', async () => {
    await send('twilio', {}, { AUTH_SMS_TWILIO_MESSAGE_SERVICE_SID: '+15550001111' })
    expect(upstream.requests[0]?.form).toEqual({ To: `+${PHONE}`, From: '+15550001111', Body: TEXT })
  })

  test.for<[string, Record<string, string>, Record<string, string>]>([
    [
      'from a number: both sides are marked',
      { AUTH_SMS_TWILIO_MESSAGE_SERVICE_SID: '15550001111' },
      { To: `whatsapp:+${PHONE}`, From: 'whatsapp:+15550001111', Body: TEXT },
    ],
    [
      'with a content template: the code is its variable 1',
      { AUTH_SMS_TWILIO_CONTENT_SID: 'HX1' },
      {
        To: `whatsapp:+${PHONE}`,
        MessagingServiceSid: 'MG00000000000000000000000000000001',
        ContentSid: 'HX1',
        ContentVariables: '{"1":"123456"}',
      },
    ],
  ])('Twilio WhatsApp %s', async ([, settings, form]) => {
    await send('twilio', { channel: 'whatsapp' }, settings)
    expect(upstream.requests[0]?.form).toEqual(form)
  })

  test('MessageBird: access key in a header, unicode', async () => {
    expect(await send('messagebird')).toMatchObject({ providerMessageId: 'e8077d803532c0b5937c639b60216938' })
    expect(upstream.requests[0]).toMatchObject({ method: 'POST', path: '/messages' })
    expect(upstream.requests[0]?.headers.authorization).toBe('AccessKey messagebird-key')
    expect(upstream.requests[0]?.form).toEqual({
      originator: 'Example',
      recipients: PHONE,
      body: TEXT,
      type: 'sms',
      datacoding: 'unicode',
      reference: 'message-1',
    })
  })

  test.for([
    [TEXT, undefined],
    ['Ваш код 123456', 'unicode'],
  ] as const)('Vonage: credentials in the body; %s has type %s', async ([text, type]) => {
    expect(await send('vonage', { text })).toMatchObject({ providerMessageId: '0A0000000123ABCD1' })
    expect(upstream.requests[0]).toMatchObject({ method: 'POST', path: '/sms/json' })
    expect(upstream.requests[0]?.form).toEqual({
      from: 'Example',
      to: PHONE,
      text,
      api_key: 'vonage-key',
      api_secret: 'vonage-secret',
      'client-ref': 'message-1',
      ...(type ? { type } : {}),
    })
  })

  test('TextLocal: key in the body', async () => {
    expect(await send('textlocal')).toMatchObject({ providerMessageId: '1151346216' })
    expect(upstream.requests[0]).toMatchObject({ method: 'POST', path: '/send' })
    expect(upstream.requests[0]?.form).toEqual({
      sender: 'EXAMPL',
      numbers: PHONE,
      message: TEXT,
      apikey: 'textlocal-key',
      custom: 'message-1',
    })
  })
})

describe('a documented refusal', () => {
  const about = {
    number: {
      twilio: ['invalidNumber', 'optedOut', 'landline', 'numberFailedAtOnce'],
      messagebird: ['invalidNumber'],
      vonage: ['invalidNumber', 'noSuchNumber', 'deadNumber', 'barredNumber'],
      textlocal: ['invalidNumber', 'noNumber'],
    },
    gateway: {
      twilio: ['regionOff', 'credentials'],
      messagebird: ['invalidOriginator', 'credentials', 'noCredit', 'noReason', 'sentToNobody'],
      vonage: ['credentials', 'noCredit'],
      textlocal: ['credentials', 'noCredit', 'templateMismatch', 'noReason'],
    },
    moment: {
      twilio: ['tooFast', 'failedAtOnce'],
      messagebird: ['internal'],
      vonage: ['tooFast', 'internal', 'noReason'],
      textlocal: [],
    },
  }
  const table = Object.entries(about).flatMap(([fault, gateways]) =>
    Object.entries(gateways).flatMap(([gateway, names]: [string, string[]]) =>
      names.map((name) => ({ fault, gateway, name })),
    ),
  )

  test('each is in the table', () => {
    const known = Object.entries(refusals).flatMap(([gateway, names]) => Object.keys(names).map((n) => gateway + n))
    expect(table.map(({ gateway, name }) => gateway + name).toSorted()).toEqual(known.toSorted())
  })

  // Which of the two permanent ones it was shows in whether another gateway is asked.
  test.for(table)('of $gateway, $name, is about the $fault', async ({ fault, gateway, name }) => {
    const named = gateway as keyof typeof refusals
    const other = named === 'vonage' ? 'textlocal' : 'vonage'
    const answers: Record<string, { status: number; body: string }> = refusals[named]
    upstream.behave(named, answers[name])
    const failure = await failureOf(named)
    expect(failure.isPermanent).toBe(fault !== 'moment')
    const providers = { AUTH_SMS_PROVIDER: `${named},${other}` }
    if (fault === 'number') expect(await failureOf(named, providers)).toMatchObject({ isPermanent: true })
    else expect(await send(named, {}, providers)).toMatchObject({ gateway: other })
  })

  test.for(NAMED)('of %s says nothing private', async (gateway) => {
    for (const answer of Object.values(refusals[gateway])) {
      upstream.behave(gateway, answer)
      expect((await failureOf(gateway)).text).toMatch(
        /^[a-z]+: (answered \d{3}(, code \d+)?|sent to no recipient|failed at once)$/,
      )
    }
  })
})

describe('an upstream out of order is worth a retry and is reported without secrets', () => {
  const secret = new RegExp(`${PHONE}|123456|twilio-token|messagebird-key|vonage-|textlocal-key|AC0000|127\\.0\\.0\\.1`)
  const faults = [
    ['HTTP 500', { status: 500, body: `failed for ${PHONE}` }, /answered 500/],
    ['HTTP 503 in HTML', { status: 503, body: '<html>' }, /answered 503/],
    ['garbage with 200', { status: 200, body: '<html>' }, /answered 200|has an unknown format/],
    ['an array with 200', { status: 200, body: '[1]' }, /answered 200|has an unknown format/],
    ['null with 200', { status: 200, body: 'null' }, /answered 200|has an unknown format/],
    ['nothing with 200', { status: 200, body: '' }, /answered 200|has an unknown format/],
    ['no answer', 'hang', /no answer within 0.3 s/],
    ['a connection that closes', 'drop', /UND_ERR_SOCKET|ECONNRESET/],
    ['an answer without end', 'endless', /longer than 65536 bytes/],
    ['an answer by drops', 'trickle', /no answer within 0.3 s/],
  ] as const
  const table = NAMED.flatMap((gateway) =>
    faults.map(([name, behaviour, text]) => ({ gateway, name, behaviour, text })),
  )

  test.for(table)('$gateway: $name', async ({ gateway, behaviour, text }) => {
    upstream.behave(gateway, behaviour)
    const isSlow = behaviour === 'hang' || behaviour === 'trickle'
    const failure = await failureOf(gateway, isSlow ? { AUTH_SMS_TIMEOUT: '300ms' } : {})
    expect(failure.isPermanent).toBe(false)
    expect(failure.text).toMatch(text)
    expect(failure.text).not.toMatch(secret)
  })

  test.for(NAMED)('%s: a redirect is not followed', async (gateway) => {
    upstream.behave(gateway, { status: 307, body: '', headers: { location: '/http/stolen' } })
    expect((await failureOf(gateway)).text).toMatch(/answered 307/)
    expect(upstream.requests.map(({ path }) => path)).not.toContain('/stolen')
  })

  test.for(NAMED)('%s: no server listens', async (gateway) => {
    const nowhere = { [`AUTH_SMS_${gateway.toUpperCase()}_URL`]: 'http://127.0.0.1:1' }
    expect(await failureOf(gateway, nowhere)).toMatchObject({ isPermanent: false })
  })
})

test('wrong credentials are refused by the upstream itself', async () => {
  const wrong = {
    AUTH_SMS_TWILIO_AUTH_TOKEN: 'wrong',
    AUTH_SMS_MESSAGEBIRD_ACCESS_KEY: 'wrong',
    AUTH_SMS_VONAGE_API_SECRET: 'wrong',
    AUTH_SMS_TEXTLOCAL_API_KEY: 'wrong',
  }
  for (const gateway of NAMED) expect(await failureOf(gateway, wrong)).toMatchObject({ isPermanent: true })
})

test('a refusal by a gateway is no failure of the number', () => {
  expect(new GatewayRefusal('x')).not.toBeInstanceOf(PermanentFailure)
})
