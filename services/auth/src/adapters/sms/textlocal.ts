import { PermanentFailure } from '@services/common/queue'
import type { Config } from '../../config.ts'
import { callGateway, type GatewayAnswer, jsonAnswer } from './call-gateway.ts'
import { describeAnswer, failureOfStatus, GatewayRefusal, messageIdFrom, type SmsGateway } from './gateway.ts'

type TextLocalSettings = Config['sms']['textlocal']

/** https://api.textlocal.in/docs: invalid number format; no valid numbers. Other codes concern us or the text. */
const NUMBER_REFUSED = ['32', '51']

export function createTextLocalGateway(settings: TextLocalSettings, timeoutSeconds: number): SmsGateway {
  return {
    name: 'textlocal',
    channels: ['sms'],
    async send({ id, to, text }) {
      const isAscii = /^[\x20-\x7e\r\n]*$/.test(text)
      const answer = await callGateway('textlocal', timeoutSeconds, {
        method: 'POST',
        url: `${settings.url}/send`,
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body: new URLSearchParams({
          sender: settings.sender,
          numbers: to,
          message: text,
          apikey: settings.apiKey,
          custom: id,
          ...(isAscii ? {} : { unicode: 'true' }),
        }).toString(),
      })
      return { providerMessageId: readAnswer(answer) }
    },
  }
}

/** Returns the message's id. Refusals come with HTTP 200; the list of errors may be empty. */
function readAnswer({ status, text }: GatewayAnswer): string | undefined {
  const fact = jsonAnswer(text)
  const outcome = fact('status')
  if (outcome === 'success') return messageIdFrom(fact('messages.0.id'))
  if (outcome !== 'failure') throw failureOfStatus('textlocal', status)
  const code = fact('errors.0.code')
  const reason = describeAnswer('textlocal', status, code)
  throw NUMBER_REFUSED.includes(String(code)) ? new PermanentFailure(reason) : new GatewayRefusal(reason)
}
