import { PermanentFailure } from '@services/common/queue'
import type { Config } from '../config.ts'
import type { Channel } from '../messages/deliver-message.ts'
import { isAuthorizedAddress } from './authorized-addresses.ts'
import { isMailKind } from './kinds.ts'
import type { MailTemplates } from './mail-templates.ts'
import type { Mailer } from './smtp.ts'

/** The mail channel of the outbox: renders a message and hands it to the mail server. */
export const mailChannel =
  (config: { mail: Pick<Config['mail'], 'authorizedAddresses'> }, templates: MailTemplates, mailer: Mailer): Channel =>
  async ({ id, kind, to, variables, locale }) => {
    // Only a newer version can have queued a kind that is not known here.
    if (!isMailKind(kind)) throw new PermanentFailure('this version knows no such mail')
    // Queued before the list was set, or by the service this database was copied from.
    if (!isAuthorizedAddress(config.mail, to)) throw new PermanentFailure('mail may not go to this address')
    const mail = await templates.render(kind, locale, variables)
    const { messageId } = await mailer.send({ id, kind, to, ...mail })
    return { provider: 'smtp', providerMessageId: messageId }
  }
