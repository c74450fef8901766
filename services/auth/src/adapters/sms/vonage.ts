import { PermanentFailure } from '@services/common/queue'
import type { Config } from '../../config.ts'
import { callGateway, type GatewayAnswer, jsonAnswer } from './call-gateway.ts'
import { describeAnswer, failureOfStatus, GatewayRefusal, messageIdFrom, type SmsGateway } from './gateway.ts'

type VonageSettings = Config['sms']['vonage']

/** https://developer.vonage.com/en/api-errors/sms: no such number; no network for it; barred; no longer in use. */
const NUMBER_REFUSED = ['3', '6', '7', '33']
/** Throttled; internal error; too many connections. Other codes concern credentials, credit or sender. */
const PASSING = ['1', '5', '10']

export function createVonageGateway(settings: VonageSettings, timeoutSeconds: number): SmsGateway {
  return {
    name: 'vonage',
    channels: ['sms'],
    async send({ id, to, text }) {
      const isAscii = /^[\x20-\x7e\r\n]*$/.test(text)
      const answer = await callGateway('vonage', timeoutSeconds, {
        method: 'POST',
        url: `${settings.url}/sms/json`,
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body: new URLSearchParams({
          from: settings.from,
          to,
          text,
          api_key: settings.apiKey,
          api_secret: settings.apiSecret,
          'client-ref': id,
          ...(isAscii ? {} : { type: 'unicode' }),
        }).toString(),
      })
      return { providerMessageId: readAnswer(answer) }
    },
  }
}

/** Returns the first part's id. Refusals come with HTTP 200 and a status of their own, a string. */
function readAnswer({ status, text }: GatewayAnswer): string | undefined {
  const fact = jsonAnswer(text)
  const code = fact('messages.0.status')
  if (code === undefined) throw failureOfStatus('vonage', status)
  if (code === '0') return messageIdFrom(fact('messages.0.message-id'))
  const reason = describeAnswer('vonage', status, code)
  if (NUMBER_REFUSED.includes(String(code))) throw new PermanentFailure(reason)
  throw PASSING.includes(String(code)) ? new Error(reason) : new GatewayRefusal(reason)
}
