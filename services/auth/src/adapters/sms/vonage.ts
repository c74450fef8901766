import { PermanentFailure } from '@services/common/queue/run-job'
import type { Config } from '../../config.ts'
import { type GatewayAnswer, jsonAnswer, postForm } from './call-gateway.ts'
import { describeAnswer, failureOfStatus, GatewayRefusal, isAscii, messageIdFrom, type SmsGateway } from './gateway.ts'

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
      const answer = await postForm('vonage', timeoutSeconds, `${settings.url}/sms/json`, {
        from: settings.from,
        to,
        text,
        api_key: settings.apiKey,
        api_secret: settings.apiSecret,
        'client-ref': id,
        ...(isAscii(text) ? {} : { type: 'unicode' }),
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
