import type { Transaction } from 'kysely'
import { pickLocale } from '../../adapters/mail/locale.ts'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { type IssueTokenDeps, issueToken } from '../one-time-tokens/one-time-token.ts'
import { type OutboxDeps, queueMessage } from '../outbox/outbox.ts'
import type { User } from '../users/users.store.ts'

export interface CodeMail {
  user: User
  to: string
  purpose: 'reauthentication'
  acceptLanguage: string | undefined
  messageId?: string | undefined
}

/** Issues a code without a link and writes its mail into the outbox, in the caller's transaction. */
export async function sendCodeMail(
  deps: IssueTokenDeps & OutboxDeps & { config: Pick<Config, 'mail' | 'siteUrl'> },
  trx: Transaction<DB>,
  { user, to, purpose, acceptLanguage, messageId }: CodeMail,
): Promise<void> {
  const { codeLength, codeLifetimeSeconds: lifetimeSeconds } = deps.config.mail
  const { code, codeHash } = await issueToken(deps, trx, {
    userId: user.id,
    purpose,
    relatesTo: to,
    codeLength,
    lifetimeSeconds,
  })
  const variables = {
    SiteURL: deps.config.siteUrl,
    Email: to,
    Token: code,
    Data: user.user_metadata,
  }
  const locale = pickLocale(deps.config.mail, { metadata: user.user_metadata, acceptLanguage })
  await queueMessage(deps, trx, {
    channel: 'mail',
    kind: purpose,
    userId: user.id,
    to,
    lifetimeSeconds,
    messageId,
    variables,
    codeHash,
    locale,
  })
}
