import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createFarServer } from '@services/common/testing/http/far-server'

export type FarGateway = 'twilio' | 'messagebird' | 'vonage' | 'textlocal' | 'http'

export interface SeenRequest {
  gateway: FarGateway
  method: string
  /** Path and query as the gateway would see them on a host of its own. */
  path: string
  headers: IncomingMessage['headers']
  body: string
  form: Record<string, string>
}

/** Instead of a message taken over: another answer, or none. */
export type Behaviour = { status: number; body: string; headers?: Record<string, string> } | Silence
/**
 * `hang`: no answer. `drop`: the connection closes. `endless`: an answer without end. `trickle`: a byte now and then.
 */
type Silence = 'hang' | 'drop' | 'endless' | 'trickle'

export interface SmsUpstream {
  /** Every request, including those that were refused. */
  requests: SeenRequest[]
  /** Messages taken over, oldest first; `to` is digits. */
  messages: { gateway: FarGateway; to: string; text: string; channel: 'sms' | 'whatsapp' }[]
  /** Sets the next answers; undefined: the real one's to a good request. */
  behave(gateway: FarGateway, behaviour?: Behaviour): void
  /** Variables that point a service here, with credentials that this side knows. */
  settings(...gateways: FarGateway[]): Record<string, string>
  /** The newest message to a number, waiting for it if need be. */
  waitFor(to: string): Promise<SmsUpstream['messages'][number]>
  close(): Promise<void>
}

export const CREDENTIALS = {
  AUTH_SMS_TWILIO_ACCOUNT_SID: 'AC00000000000000000000000000000001',
  AUTH_SMS_TWILIO_AUTH_TOKEN: 'twilio-token',
  AUTH_SMS_TWILIO_MESSAGE_SERVICE_SID: 'MG00000000000000000000000000000001',
  AUTH_SMS_MESSAGEBIRD_ACCESS_KEY: 'messagebird-key',
  AUTH_SMS_MESSAGEBIRD_ORIGINATOR: 'Example',
  AUTH_SMS_VONAGE_API_KEY: 'vonage-key',
  AUTH_SMS_VONAGE_API_SECRET: 'vonage-secret',
  AUTH_SMS_VONAGE_FROM: 'Example',
  AUTH_SMS_TEXTLOCAL_API_KEY: 'textlocal-key',
  AUTH_SMS_TEXTLOCAL_SENDER: 'EXAMPL',
}

const json = (status: number, body: unknown): Behaviour & object => ({ status, body: JSON.stringify(body) })

const twilioError = (status: number, code: number, message: string) =>
  json(status, { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status })
const messageBirdError = (status: number, code: number, description: string, parameter: string | null) =>
  json(status, { errors: [{ code, description, parameter }] })
const vonageError = (status: string, text: string) =>
  json(200, { 'message-count': '1', messages: [{ status, 'error-text': text }] })
const textLocalError = (code: number, message: string) => json(200, { errors: [{ code, message }], status: 'failure' })

/** Refusals in the words and forms each gateway documents. */
export const refusals = {
  twilio: {
    invalidNumber: twilioError(400, 21211, "The 'To' number +4915100000001 is not a valid phone number."),
    optedOut: twilioError(400, 21610, 'Attempt to send to unsubscribed recipient'),
    landline: twilioError(400, 21614, "'To' number is not a valid mobile number"),
    regionOff: twilioError(
      400,
      21408,
      "Permission to send an SMS has not been enabled for the region of the 'To' number",
    ),
    credentials: twilioError(401, 20003, 'Authenticate'),
    tooFast: twilioError(429, 20429, 'Too Many Requests'),
    failedAtOnce: json(201, { sid: 'SM2', status: 'failed', error_code: 30008, error_message: 'Unknown error' }),
    numberFailedAtOnce: json(201, { sid: 'SM2', status: 'failed', error_code: 21610, error_message: 'unsubscribed' }),
  },
  messagebird: {
    invalidNumber: messageBirdError(422, 9, 'no (correct) recipients found', 'recipients'),
    invalidOriginator: messageBirdError(422, 9, 'originator is invalid', 'originator'),
    credentials: messageBirdError(401, 2, 'Request not allowed (incorrect access_key)', 'access_key'),
    noCredit: messageBirdError(402, 25, 'Not enough balance', null),
    internal: messageBirdError(500, 99, 'Internal error', null),
    noReason: json(422, { errors: [] }),
    sentToNobody: json(201, { id: 'mb', recipients: { totalCount: 1, totalSentCount: 0, items: [] } }),
  },
  vonage: {
    invalidNumber: vonageError('6', 'The message was invalid'),
    noSuchNumber: vonageError('3', 'The value of one or more parameters is invalid'),
    deadNumber: vonageError('33', 'The number is no longer active'),
    barredNumber: vonageError('7', 'The number you are trying to submit to is blacklisted'),
    credentials: vonageError('4', 'Bad Credentials'),
    noCredit: vonageError('9', 'Partner quota exceeded'),
    tooFast: vonageError('1', 'Throttled'),
    internal: vonageError('5', 'Internal Error'),
    noReason: json(200, { 'message-count': '0', messages: [] }),
  },
  textlocal: {
    invalidNumber: textLocalError(32, 'Invalid number format'),
    noNumber: textLocalError(51, 'No valid numbers specified'),
    credentials: textLocalError(3, 'Invalid login details'),
    noCredit: textLocalError(7, 'Insufficient credits'),
    templateMismatch: textLocalError(80, 'Invalid template'),
    noReason: json(200, { errors: [], status: 'failure' }),
  },
} as const

/** One loopback server that is all gateways, each under its own path, taking messages over as the real ones do. */
export async function startSmsGateways(): Promise<SmsUpstream> {
  const requests: SeenRequest[] = []
  const messages: SmsUpstream['messages'] = []
  const behaviours = new Map<FarGateway, Behaviour>()
  const waiting = new Set<() => void>()
  const server = createFarServer(async (request, response) => {
    const seen = await read(request).catch(() => undefined)
    // A caller that gave up in the middle of its request.
    if (!seen) return
    requests.push(seen)
    const behaviour = behaviours.get(seen.gateway) ?? takeOver(seen)
    if (typeof behaviour === 'string') return keepSilent(behaviour, response)
    if (!behaviours.has(seen.gateway) && behaviour.status < 300) {
      messages.push(messageIn(seen))
      for (const check of waiting) check()
    }
    response.writeHead(behaviour.status, { 'content-type': 'application/json', ...behaviour.headers })
    response.end(behaviour.body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const newest = (to: string) => messages.findLast((message) => message.to === to)
  return {
    requests,
    messages,
    behave(gateway, behaviour) {
      if (behaviour === undefined) behaviours.delete(gateway)
      else behaviours.set(gateway, behaviour)
    },
    settings: (...gateways) => ({
      AUTH_SMS_PROVIDER: gateways.join(','),
      AUTH_SMS_TWILIO_URL: `${base}/twilio`,
      AUTH_SMS_MESSAGEBIRD_URL: `${base}/messagebird`,
      AUTH_SMS_VONAGE_URL: `${base}/vonage`,
      AUTH_SMS_TEXTLOCAL_URL: `${base}/textlocal`,
      AUTH_SMS_HTTP_URL: `${base}/http/`,
      ...CREDENTIALS,
    }),
    waitFor: (to) =>
      new Promise((resolve) => {
        const check = () => {
          const message = newest(to)
          if (!message) return
          waiting.delete(check)
          resolve(message)
        }
        waiting.add(check)
        check()
      }),
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function read(request: IncomingMessage): Promise<SeenRequest> {
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) body += chunk
  const [, gateway = '', path = ''] = /^\/(\w+)(.*)$/.exec(request.url ?? '') ?? []
  const isForm = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded')
  return {
    gateway: gateway as FarGateway,
    method: request.method ?? '',
    path,
    headers: request.headers,
    body,
    form: isForm ? Object.fromEntries(new URLSearchParams(body)) : {},
  }
}

/** The real one's answer to a good request; wrong credentials get its own refusal, an unknown path 404. */
function takeOver(seen: SeenRequest): Behaviour {
  const { headers, form, path, gateway, method } = seen
  const account = CREDENTIALS.AUTH_SMS_TWILIO_ACCOUNT_SID
  if (gateway === 'http') return json(200, { status: 'ok', result: { id: 'http-1' } })
  if (gateway === 'twilio' && method === 'POST' && path === `/2010-04-01/Accounts/${account}/Messages.json`) {
    const basic = Buffer.from(`${account}:${CREDENTIALS.AUTH_SMS_TWILIO_AUTH_TOKEN}`).toString('base64')
    if (headers.authorization !== `Basic ${basic}`) return refusals.twilio.credentials
    return json(201, {
      account_sid: account,
      api_version: '2010-04-01',
      body: form.Body,
      date_created: 'Thu, 24 Aug 2023 05:01:45 +0000',
      date_sent: null,
      direction: 'outbound-api',
      error_code: null,
      error_message: null,
      num_segments: '1',
      price: null,
      sid: 'SM00000000000000000000000000000001',
      status: 'accepted',
      to: form.To,
    })
  }
  if (gateway === 'messagebird' && method === 'POST' && path === '/messages') {
    if (headers.authorization !== 'AccessKey messagebird-key') return refusals.messagebird.credentials
    const recipients = {
      totalCount: 1,
      totalSentCount: 1,
      items: [{ recipient: Number(form.recipients), status: 'sent' }],
    }
    return json(201, { id: 'e8077d803532c0b5937c639b60216938', direction: 'mt', type: 'sms', recipients })
  }
  if (gateway === 'vonage' && method === 'POST' && path === '/sms/json') {
    if (form.api_key !== 'vonage-key' || form.api_secret !== 'vonage-secret') return refusals.vonage.credentials
    const message = {
      to: form.to,
      'message-id': '0A0000000123ABCD1',
      status: '0',
      'remaining-balance': '3.14',
      network: '12345',
    }
    return json(200, { 'message-count': '1', messages: [message] })
  }
  if (gateway === 'textlocal' && method === 'POST' && path === '/send') {
    if (form.apikey !== 'textlocal-key') return refusals.textlocal.credentials
    const messages = [{ id: '1151346216', recipient: Number(form.numbers) }]
    return json(200, { balance: 1162, batch_id: 123456789, cost: 1, num_messages: 1, messages, status: 'success' })
  }
  return json(404, {})
}

function messageIn({ gateway, form, body }: SeenRequest): SmsUpstream['messages'][number] {
  const sent = gateway === 'http' && body.startsWith('{') ? JSON.parse(body) : form
  const to = String(form.To ?? form.recipients ?? form.numbers ?? sent.to)
  const text = String(form.Body ?? form.body ?? form.message ?? sent.text ?? form.ContentVariables)
  return { gateway, to: to.replace(/^\D+/, ''), text, channel: to.startsWith('whatsapp:') ? 'whatsapp' : 'sms' }
}

function keepSilent(silence: Silence, response: ServerResponse): void {
  if (silence === 'drop') response.socket?.destroy()
  if (silence === 'endless') {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(16_384)));
    }
    response.on('drain', more)
    more()
  }
  if (silence === 'trickle') {
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  }
}
