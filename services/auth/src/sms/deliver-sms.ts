import { PermanentFailure } from '@services/common/queue'
import type { Config } from '../config.ts'
import { FACTOR_CODE_KIND } from '../factors/phone-code.ts'
import type { Channel } from '../messages/deliver-message.ts'
import type { SmsChannel } from './gateway.ts'
import type { SmsSender } from './send-sms.ts'
import { smsText } from './sms-text.ts'

/** What an SMS in the outbox holds beside its number. */
export interface SmsVariables {
  code: string
  channel: SmsChannel
}

/** The SMS channel of the outbox: fills in the text and hands it to the gateways. */
export const smsChannel =
  ({ mfa, sms }: Pick<Config, 'mfa' | 'sms'>, sender: SmsSender): Channel =>
  async ({ id, kind, to, variables }) => {
    const { code, channel } = variables as unknown as SmsVariables
    if (!sender.supports(channel)) throw new PermanentFailure(`no gateway delivers by ${channel}`)
    const { gateway, providerMessageId } = await sender.send({
      id,
      to,
      text: smsText(kind === FACTOR_CODE_KIND ? mfa.phone.template : sms.template, code),
      code,
      channel,
    })
    return { provider: gateway, providerMessageId: providerMessageId ?? null }
  }
