import { PermanentFailure } from '@services/common/queue/run-job'
import type { Config } from '../../config.ts'
import { type GatewayAnswer, jsonAnswer, postForm } from './call-gateway.ts'
import { describeAnswer, failureOfStatus, GatewayRefusal, isAscii, messageIdFrom, type SmsGateway } from './gateway.ts'

type TextLocalSettings = Config['sms']['textlocal']

/** https://api.textlocal.in/docs: invalid number format; no valid numbers. Other codes concern us or the text. */
const NUMBER_REFUSED = ['32', '51']

export function createTextLocalGateway(settings: TextLocalSettings, timeoutSeconds: number): SmsGateway {
  return {
    name: 'textlocal',
    channels: ['sms'],
    async send({ id, to, text }) {
      const answer = await postForm('textlocal', timeoutSeconds, `${settings.url}/send`, {
        sender: settings.sender,
        numbers: to,
        message: text,
        apikey: settings.apiKey,
        custom: id,
        ...(isAscii(text) ? {} : { unicode: 'true' }),
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
