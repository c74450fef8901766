import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import type { SmsSender } from '../../adapters/sms/send-sms.ts'
import { smsText } from '../../adapters/sms/sms-text.ts'
import type { Config } from '../../config.ts'
import type { Channel } from './deliver-message.ts'

/** Kind of the SMS with the code of a second factor, as GET /admin/messages shows it. */
export const FACTOR_CODE_KIND = 'second_factor'

/** What an SMS in the outbox holds beside its number. */
export interface SmsVariables {
  code: string
  channel: SmsChannel
  /** By the template of the instance that was asked; a message of an older version has none. */
  text?: string
}

/** The SMS channel of the outbox: fills in the text and hands it to the gateways. */
export const smsChannel =
  ({ mfa, sms }: Pick<Config, 'mfa' | 'sms'>, sender: SmsSender): Channel =>
  async ({ id, kind, to, variables, isPretended }) => {
    const { code, channel, text: given } = variables as unknown as SmsVariables
    // The worker of an instance with other settings may have one.
    if (!sender.supports(channel)) throw new TemporaryFailure(`no gateway delivers by ${channel}`)
    const text = given ?? smsText(kind === FACTOR_CODE_KIND ? mfa.phone.template : sms.template, code)
    if (isPretended) return { provider: 'pretended', providerMessageId: null }
    const { gateway, providerMessageId } = await sender.send({ id, to, text, code, channel })
    return { provider: gateway, providerMessageId: providerMessageId ?? null }
  }
