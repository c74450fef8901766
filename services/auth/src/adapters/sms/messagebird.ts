import { PermanentFailure } from '@services/common/queue/run-job'
import type { Config } from '../../config.ts'
import { type GatewayAnswer, jsonAnswer, postForm } from './call-gateway.ts'
import { describeAnswer, failureOfStatus, GatewayRefusal, messageIdFrom, type SmsGateway } from './gateway.ts'

type MessageBirdSettings = Config['sms']['messagebird']

export function createMessageBirdGateway(settings: MessageBirdSettings, timeoutSeconds: number): SmsGateway {
  return {
    name: 'messagebird',
    channels: ['sms'],
    async send({ id, to, text }) {
      const { originator } = settings
      const fields = { originator, recipients: to, body: text, type: 'sms', datacoding: 'unicode', reference: id }
      const headers = { authorization: `AccessKey ${settings.accessKey}` }
      const answer = await postForm('messagebird', timeoutSeconds, `${settings.url}/messages`, fields, headers)
      return { providerMessageId: readAnswer(answer) }
    },
  }
}

/** Returns the message's id; throws unless the upstream reports a recipient. */
function readAnswer({ status, text }: GatewayAnswer): string | undefined {
  const fact = jsonAnswer(text)
  if (status < 200 || status > 299) throw failureOf(status, fact)
  const sent = fact('recipients.totalSentCount')
  if (typeof sent !== 'number') throw new Error('messagebird: the answer has an unknown format')
  if (sent < 1) throw new GatewayRefusal('messagebird: sent to no recipient')
  return messageIdFrom(fact('id'))
}

/** Codes 9 and 10 name a missing or invalid parameter; all others concern the account or are temporary. */
function failureOf(status: number, fact: (path: string) => unknown): Error {
  const code = fact('errors.0.code')
  const isAboutNumber = [9, 10].includes(Number(code)) && /^recipients?$/.test(String(fact('errors.0.parameter')))
  return isAboutNumber
    ? new PermanentFailure(describeAnswer('messagebird', status, code))
    : failureOfStatus('messagebird', status, code)
}
