import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import { isAuthorizedAddress } from '../../adapters/mail/authorized-addresses.ts'
import { isMailKind } from '../../adapters/mail/kinds.ts'
import type { MailTemplates } from '../../adapters/mail/mail-templates.ts'
import { hasMailServer, type Mailer } from '../../adapters/mail/smtp.ts'
import type { Config } from '../../config.ts'
import type { Channel } from './deliver-message.ts'

/** The mail channel of the outbox: renders a message and hands it to the mail server. */
export const mailChannel =
  (
    config: { mail: Pick<Config['mail'], 'authorizedAddresses'>; smtp: Pick<Config['smtp'], 'host' | 'from'> },
    templates: MailTemplates,
    mailer: Mailer,
  ): Channel =>
  async ({ id, kind, to, variables, locale, isPretended }) => {
    // Only a newer version can have queued a kind that is not known here; its own worker sends it.
    if (!isMailKind(kind)) throw new TemporaryFailure('this version knows no such mail')
    // Queued before the list was set, by the service this database was copied from, or by an instance with another list.
    if (!isAuthorizedAddress(config.mail, to)) throw new TemporaryFailure('mail may not go to this address')
    if (!hasMailServer(config.smtp)) throw new TemporaryFailure('this worker has no mail server')
    const mail = await templates.render(kind, locale, variables)
    const { messageId } = await mailer.send({ id, kind, to, ...mail, isPretended })
    return { provider: 'smtp', providerMessageId: messageId }
  }
