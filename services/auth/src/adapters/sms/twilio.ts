import { PermanentFailure } from '@services/common/queue/run-job'
import type { Twilio } from 'twilio'
import type { MessageListInstanceCreateOptions } from 'twilio/lib/rest/api/v2010/account/message.js'
import type { Config } from '../../config.ts'
import { callGateway, type GatewayAnswer } from './call-gateway.ts'
import {
  describeAnswer,
  failureOfStatus,
  GatewayRefusal,
  messageIdFrom,
  type SmsGateway,
  type SmsMessage,
} from './gateway.ts'

type TwilioSettings = Config['sms']['twilio']

/**
 * Codes of https://www.twilio.com/docs/api/errors about the recipient. In order: not a number, a short code, the sender
 * itself, a premium number, opted out, not mobile, a landline. The last two are of WhatsApp. Others concern us or are
 * temporary.
 */
const NUMBER_REFUSED = new Set([21211, 21217, 21265, 21266, 21268, 21610, 21614, 21635, 63003, 63024])

/** Statuses of accepted messages that failed at once. */
const FAILED_STATUSES = ['failed', 'undelivered']

/**
 * Sends through Twilio's SDK, which builds the request and reads the answer. The HTTP exchange is ours: the SDK's
 * follows proxy variables, logs to the console and cannot be pointed elsewhere. It is loaded with the first message,
 * because it takes 33 MiB that an idle service does not need.
 */
export function createTwilioGateway(settings: TwilioSettings, timeoutSeconds: number): SmsGateway {
  let client: Promise<Twilio> | undefined
  return {
    name: 'twilio',
    channels: ['sms', 'whatsapp'],
    async send(message) {
      client ??= openClient(settings, timeoutSeconds)
      const { sid, status, errorCode } = await create(await client, messageFields(settings, message))
      if (!sid) throw new Error('twilio: the answer has an unknown format')
      if (FAILED_STATUSES.includes(status)) throw failureOfCode(200, errorCode) ?? new Error('twilio: failed at once')
      return { providerMessageId: messageIdFrom(sid) }
    },
  }
}

async function create(client: Twilio, fields: MessageListInstanceCreateOptions) {
  try {
    return await client.messages.create(fields)
  } catch (error) {
    throw toFailure(error)
  }
}

function messageFields({ sender, contentSid }: TwilioSettings, { to, text, code, channel }: SmsMessage) {
  const from = sender.startsWith('MG') ? { messagingServiceSid: sender } : { from: sender }
  if (channel === 'sms') return { to: `+${to}`, ...from, body: text }
  const number = /^\+?([1-9][0-9]{1,14})$/.exec(sender)?.[1]
  const content = contentSid ? { contentSid, contentVariables: JSON.stringify({ 1: code }) } : { body: text }
  return { to: `whatsapp:+${to}`, ...(number ? { from: `whatsapp:+${number}` } : from), ...content }
}

async function openClient({ url, accountSid, authToken }: TwilioSettings, timeoutSeconds: number): Promise<Twilio> {
  const { default: twilio } = await import('twilio')
  const httpClient = { request: (request: SdkRequest) => exchange(url, timeoutSeconds, request) }
  // The SDK declares its own client class, but calls nothing except `request`.
  return twilio(accountSid, authToken, { httpClient: httpClient as never })
}

interface SdkRequest {
  method: string
  uri: string
  username?: string
  password?: string
  headers?: Record<string, string>
  data?: Record<string, string>
}

async function exchange(base: string, timeoutSeconds: number, request: SdkRequest) {
  const { pathname, search } = new URL(request.uri)
  const credentials = Buffer.from(`${request.username}:${request.password}`).toString('base64')
  const answer = await callGateway('twilio', timeoutSeconds, {
    method: request.method.toUpperCase(),
    url: base + pathname + search,
    headers: { ...request.headers, Authorization: `Basic ${credentials}` },
    body: new URLSearchParams(request.data).toString(),
  })
  return { statusCode: answer.status, body: bodyOf(answer), headers: {} }
}

/** The SDK throws for a success that it cannot parse, and for a failure whose JSON is not an object. */
function bodyOf({ text }: GatewayAnswer): object {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? body : {}
  } catch {
    return {}
  }
}

/** The SDK's errors carry status and code; ours, from the exchange, are fit for the log. */
function toFailure(error: unknown): Error {
  const { status, code } = error as { status?: number; code?: number }
  if (typeof status !== 'number') {
    const isOurs = error instanceof Error && error.message.startsWith('twilio: ')
    return isOurs ? error : new GatewayRefusal('twilio: the SDK refused the message')
  }
  return failureOfCode(status, code) ?? failureOfStatus('twilio', status, code)
}

function failureOfCode(status: number, code: number | undefined): Error | undefined {
  return NUMBER_REFUSED.has(Number(code)) ? new PermanentFailure(describeAnswer('twilio', status, code)) : undefined
}
