import type { Transaction } from 'kysely'
import type { DB, TokenPurpose } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { issueToken } from '../one-time-tokens/issue-token.ts'
import type { SmsChannel } from '../sms/gateway.ts'
import { testCodeOf } from '../sms/test-numbers.ts'
import type { User } from '../users/users.store.ts'

export interface CodeSms {
  user: User
  to: string
  purpose: TokenPurpose
  channel: SmsChannel
  password?: { hash: string | null } | undefined
  /** The same work is done and no message leaves. */
  isPretended?: boolean
  messageId?: string | undefined
}

/** Issues a code and writes its SMS into the outbox, in the caller's transaction. */
export async function sendCodeSms(deps: Deps, trx: Transaction<DB>, sms: CodeSms): Promise<void> {
  const lifetimeSeconds = sms.isPretended ? 0 : deps.config.sms.codeLifetimeSeconds
  await issueToken(deps, trx, {
    userId: sms.user.id,
    purpose: sms.purpose,
    relatesTo: sms.to,
    codeLength: deps.config.sms.codeLength,
    lifetimeSeconds,
    code: testCodeOf(deps.config.sms.testNumbers, sms.to, deps.now()),
    password: sms.password,
  })
}
