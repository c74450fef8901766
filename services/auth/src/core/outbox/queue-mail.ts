import type { Transaction } from 'kysely'
import type { MailKind, MailVariables } from '../../adapters/mail/kinds.ts'
import type { DB } from '../../db/tables.ts'
import { hashLinkToken } from '../one-time-tokens/one-time-token.ts'
import { type OutboxDeps, queueMessage } from './outbox.ts'

interface MailOf<Kind extends MailKind> {
  kind: Kind
  userId: string | null
  to: string
  variables: MailVariables[Kind]
  /**
   * How long link and code live from when the mail leaves; null for notifications, which have neither. 0: a mail that is
   * only pretended, which costs what a real one does and never leaves.
   */
  lifetimeSeconds: number | null
  messageId?: string | undefined
  /** From pickLocale; MAILER_DEFAULT_LOCALE when left out. */
  locale?: string | undefined
  /** For a mail with a code and no link: the hash its token is stored by, so that it counts from when the mail leaves. */
  codeHash?: Buffer | undefined
}

export type NewMail = { [Kind in MailKind]: MailOf<Kind> }[MailKind]

/** Writes a mail into the outbox, in the transaction of the rows it belongs to; a worker sends it. Returns its id. */
export function queueMail(deps: OutboxDeps, trx: Transaction<DB>, mail: NewMail): Promise<string> {
  const linkHash = 'TokenHash' in mail.variables ? hashLinkToken(mail.variables.TokenHash) : undefined
  return queueMessage(deps, trx, { ...mail, channel: 'mail', linkHash })
}
