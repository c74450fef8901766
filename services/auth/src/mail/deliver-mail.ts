import { PermanentFailure } from '@services/common/queue'
import type { Channel } from '../messages/deliver-message.ts'
import { isMailKind } from './kinds.ts'
import type { MailTemplates } from './mail-templates.ts'
import type { Mailer } from './smtp.ts'

/** The mail channel of the outbox: renders a message and hands it to the mail server. */
export const mailChannel =
  (templates: MailTemplates, mailer: Mailer): Channel =>
  async ({ id, kind, to, variables, locale }) => {
    // Only a newer version can have queued a kind that is not known here.
    if (!isMailKind(kind)) throw new PermanentFailure('this version knows no such mail')
    const mail = await templates.render(kind, locale, variables)
    const { messageId } = await mailer.send({ id, kind, to, ...mail })
    return { provider: 'smtp', providerMessageId: messageId }
  }
