import { pickLocale } from '@services/common/pages/locale'
import type { Transaction } from 'kysely'
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import { smsText } from '../../adapters/sms/sms-text.ts'
import { testCodeOf } from '../../adapters/test-codes.ts'
import type { Config } from '../../config.ts'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { countMessage } from '../../metrics.ts'
import { type IssueTokenDeps, issueToken } from '../one-time-tokens/one-time-token.ts'
import { dropQueued } from '../outbox/messages.store.ts'
import { type OutboxDeps, queueMessage } from '../outbox/outbox.ts'
import type { User } from '../users/users.store.ts'

/**
 * Delivery of a message. All take the same work, so that none reveals an account.
 * `real`: link and code leave. `pretended`: nothing leaves. `decoy`: pretended for an address that no account has.
 * `notice`: the owner of the account learns instead that it exists.
 */
export type Delivery = 'real' | 'pretended' | 'decoy' | 'notice'

export interface Sending {
  /** Id that was promised to a caller before. */
  messageId?: string | undefined
  isClaim?: boolean
  /** Session that requests it. */
  sessionId?: string | null | undefined
  /** Repeats a message that is still good: its links and its code stay valid. */
  isRepeat?: boolean | undefined
  /** `real` when left out. */
  delivery?: Delivery
}

interface CodeMessage extends Sending {
  user: User
  to: string
  purpose: TokenPurpose
}

/**
 * Issues a code without a link and writes its mail into the outbox, in the caller's transaction; none to a test
 * address.
 */
export async function sendCodeMail(
  deps: IssueTokenDeps & OutboxDeps & { config: Pick<Config, 'mail' | 'siteUrl'> },
  trx: Transaction<DB>,
  mail: CodeMessage & { purpose: 'reauthentication'; acceptLanguage: string | undefined },
): Promise<void> {
  const { user, to, purpose, acceptLanguage, messageId, sessionId } = mail
  const { codeLength, codeLifetimeSeconds: lifetimeSeconds, testAddresses } = deps.config.mail
  const testCode = testCodeOf(testAddresses, to, deps.now())
  const order = { userId: user.id, purpose, relatesTo: to, codeLength, lifetimeSeconds, sessionId, code: testCode }
  const { code, codeHash } = await issueToken(deps, trx, order)
  if (testCode) return
  const variables = { SiteURL: deps.config.siteUrl, Email: to, Token: code, Data: user.user_metadata }
  const locale = pickLocale(deps.config.mail, { metadata: user.user_metadata, acceptLanguage })
  const message = { kind: purpose, userId: user.id, to, variables, codeHash, lifetimeSeconds, messageId, locale }
  await queueMessage(deps, trx, { channel: 'mail', ...message })
}

/**
 * Additional digits beyond the cap: with six others, a mail a minute at five attempts each is guessed once in a million
 * days.
 */
export const LONG_CODE_DIGITS = 4

/**
 * Issues a code and writes its SMS into the outbox, in the caller's transaction. A test number's code is fixed and not
 * sent.
 */
export async function sendCodeSms(
  deps: IssueTokenDeps & OutboxDeps & { config: Pick<Config, 'sms' | 'siteUrl'> },
  trx: Transaction<DB>,
  {
    user,
    to,
    purpose,
    channel,
    isClaim,
    sessionId,
    delivery = 'real',
    messageId,
    hasLongCode = false,
    isRepeat,
  }: CodeMessage & { channel: SmsChannel; hasLongCode?: boolean | undefined },
): Promise<void> {
  const { byHook, codeLength, codeLifetimeSeconds, template, testNumbers } = deps.config.sms
  const testCode = testCodeOf(testNumbers, to, deps.now())
  const isPretended = delivery !== 'real'
  const lifetimeSeconds = isPretended ? 0 : codeLifetimeSeconds
  const userId = delivery === 'decoy' ? null : user.id
  const token = { userId, purpose, relatesTo: to, isClaim, sessionId, isRepeat, isPretended }
  const digits = codeLength + (hasLongCode ? LONG_CODE_DIGITS : 0)
  const order = { ...token, codeLength: digits, lifetimeSeconds, code: testCode }
  const { code, codeHash, ...issued } = await issueToken(deps, trx, order)
  if (testCode) return
  // One that has not left costs a second SMS, and the lifetime of its code has not begun.
  const replacesQueued = issued.repeatsCode && (await dropQueued(trx, user.id, purpose, deps.now()))
  if (replacesQueued) countMessage('sms', purpose, 'dropped')
  const repeatsCode = issued.repeatsCode && !replacesQueued
  const data = byHook ? user.user_metadata : undefined
  if (delivery === 'notice') {
    const text = `You already have an account at ${new URL(deps.config.siteUrl).host}.`
    const variables = { code: '', channel, text, data }
    const notice = { kind: 'account_exists', userId, to, variables, messageId } as const
    await queueMessage(deps, trx, { channel: 'sms', lifetimeSeconds: null, ...notice })
    return
  }
  const variables = { code, channel, text: smsText(template, code), data }
  const message = { kind: purpose, userId, to, variables, codeHash, repeatsCode, lifetimeSeconds, messageId }
  await queueMessage(deps, trx, { channel: 'sms', ...message })
}
