import type { Transaction } from 'kysely'
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import { smsText } from '../../adapters/sms/sms-text.ts'
import { testCodeOf } from '../../adapters/sms/test-numbers.ts'
import type { Config } from '../../config.ts'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { type IssueTokenDeps, issueToken } from '../one-time-tokens/one-time-token.ts'
import { type OutboxDeps, queueMessage } from '../outbox/outbox.ts'
import type { User } from '../users/users.store.ts'

export interface CodeSms {
  user: User
  to: string
  purpose: TokenPurpose
  channel: SmsChannel
  isClaim?: boolean
  /** The same work is done and no message leaves: for accounts whose existence an answer must not tell. */
  isPretended?: boolean
  /** Pretended for an address that no account has. */
  isNobodys?: boolean
  /** Id of the message, where it was promised to a caller before. */
  messageId?: string | undefined
}

/** Issues a code and writes its SMS into the outbox, in the caller's transaction. A test number's code is fixed and not sent. */
export async function sendCodeSms(
  deps: IssueTokenDeps & OutboxDeps & { config: Pick<Config, 'sms'> },
  trx: Transaction<DB>,
  { user, to, purpose, channel, isClaim, isPretended, isNobodys, messageId }: CodeSms,
): Promise<void> {
  const { sms } = deps.config
  const testCode = testCodeOf(sms.testNumbers, to, deps.now())
  const lifetimeSeconds = isPretended ? 0 : sms.codeLifetimeSeconds
  const userId = isNobodys ? null : user.id
  const { code, codeHash } = await issueToken(deps, trx, {
    userId,
    purpose,
    relatesTo: to,
    codeLength: sms.codeLength,
    lifetimeSeconds,
    code: testCode,
    isClaim,
    isPretended,
  })
  if (testCode) return
  await queueMessage(deps, trx, {
    channel: 'sms',
    kind: purpose,
    userId,
    to,
    variables: { code, channel, text: smsText(sms.template, code) },
    codeHash,
    lifetimeSeconds,
    messageId,
  })
}
