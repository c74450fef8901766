// Channels of the outbox: a mail is rendered and goes to the mail server, an SMS to a gateway.
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import { isAuthorizedAddress } from '../../adapters/mail/authorized-addresses.ts'
import { isMailKind } from '../../adapters/mail/kinds.ts'
import type { MailTemplates } from '../../adapters/mail/mail-templates.ts'
import { hasMailServer, type Mailer } from '../../adapters/mail/smtp.ts'
import type { SmsSender } from '../../adapters/sms/send-sms.ts'
import type { Config } from '../../config.ts'
import type { Channel } from './deliver-message.ts'
import type { MessagePart } from './outbox.ts'

export const mailChannel =
  (
    config: { mail: Pick<Config['mail'], 'authorizedAddresses'>; smtp: Pick<Config['smtp'], 'host' | 'from'> },
    templates: MailTemplates,
    mailer: Mailer,
  ): Channel<'mail'> =>
  async ({ id, kind, locale, isPretended, second, ...first }) => {
    // Only a newer version can have queued an unknown kind; its own worker sends it.
    if (!isMailKind(kind)) throw new TemporaryFailure('this version knows no such mail')
    requireAuthorizedMails(config, [first, second])
    if (!hasMailServer(config.smtp)) throw new TemporaryFailure('this worker has no mail server')
    const send = async (part: MessagePart<'mail'>, mailId: string) => {
      const mail = await templates.render(kind, locale, part.variables)
      return mailer.send({ id: mailId, kind, to: part.to, ...mail, isPretended })
    }
    const { messageId } = await send(first, id)
    // Queued for a hook, by an instance with other settings.
    if (second) await send(second, `${id}-2`)
    return { provider: 'smtp', providerMessageId: messageId }
  }

/**
 * Throws for a mail that may not leave here. It was queued before the list was set, or by another instance, such as the
 * one that this database was copied from.
 */
export function requireAuthorizedMails(
  { mail }: { mail: Pick<Config['mail'], 'authorizedAddresses'> },
  parts: readonly (MessagePart<'mail'> | undefined)[],
): void {
  if (parts.every((part) => !part || isAuthorizedAddress(mail, part.to))) return
  throw new TemporaryFailure('mail may not go to this address')
}

export const smsChannel =
  (sender: SmsSender): Channel<'sms'> =>
  async ({ id, to, variables: { code, channel, text }, isPretended }) => {
    // The worker of an instance with other settings may have such a gateway.
    if (!sender.supports(channel)) throw new TemporaryFailure(`no gateway delivers by ${channel}`)
    if (isPretended) return { provider: 'pretended', providerMessageId: null }
    const { gateway, providerMessageId } = await sender.send({ id, to, text, code, channel })
    return { provider: gateway, providerMessageId: providerMessageId ?? null }
  }
