import type { Transaction } from 'kysely'
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import type { Share } from '../limits/message-guards.ts'
import { deleteOneTimeTokens, type TakenToken } from '../one-time-tokens/one-time-tokens.store.ts'
import { type Pkce, pkceOf } from '../one-time-tokens/pkce.ts'
import { type NewMail, queueMessage } from '../outbox/outbox.ts'
import type { Address } from '../users/address.ts'
import { requestEmailChange, requestPhoneChange } from '../users/addresses.store.ts'
import { setSentAt, type User } from '../users/users.store.ts'
import { sendCodeSms } from './code-message.ts'
import { issueLinkMail, type LinkMailDeps, type MailContext } from './link-mail.ts'
import { type BudgetDeps, type Recipient, withMessagesCounted } from './message-budget.ts'
import { type Gap, type SendGapDeps, withinGaps } from './send-gap.ts'

const gapKindOf = ({ channel }: Address) => (channel === 'email' ? 'email_change' : 'phone_change')

/**
 * Counts the messages of address changes, then runs `work`, whose transaction queues them. Counting needs connections
 * of its own, so it happens before that transaction. A message to the current address counts in `share`, one to a new
 * address counts as a stranger's. Gaps are kept per user and per address: one user may not write to many addresses, nor
 * many users to one.
 */
export function withChangesCounted<Result>(
  deps: BudgetDeps & SendGapDeps,
  user: Pick<User, 'id' | 'email' | 'email_confirmed_at'>,
  wanted: readonly Address[],
  share: Share,
  work: () => Promise<Result>,
): Promise<Result> {
  return withinGaps(deps, gapsOf(user, wanted), () =>
    withMessagesCounted(deps, addressesToAgree(deps, user, wanted, share), work),
  )
}

/** A change and the tokens of the addresses that have not agreed, the new address first. */
export interface PendingChange {
  address: Address
  tokens: readonly Pick<
    TakenToken,
    'purpose' | 'relates_to' | 'session_id' | 'code_challenge' | 'code_challenge_method'
  >[]
}

/** Counts the messages that repeat a change, as a stranger's: any caller may request them. */
export function withRepeatCounted<Result>(
  deps: BudgetDeps & SendGapDeps,
  user: Pick<User, 'id'>,
  change: PendingChange | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!change) return work()
  const { channel } = change.address
  const recipients = change.tokens.map(({ relates_to: value }) => ({ channel, value }))
  return withinGaps(deps, gapsOf(user, [change.address]), () => withMessagesCounted(deps, recipients, work))
}

const gapsOf = (user: Pick<User, 'id'>, wanted: readonly Address[]): Gap[] =>
  wanted.flatMap((to) => [user.id, to.value].map((key) => ({ kind: gapKindOf(to), key })))

/** Lists the recipients of changes: the wanted addresses, and the current one if it must agree too. */
export const addressesToAgree = (
  deps: { config: Pick<Config, 'mail'> },
  user: Pick<User, 'email' | 'email_confirmed_at'>,
  wanted: readonly Address[],
  share: Share = 'strangers',
): Recipient[] =>
  wanted.flatMap((to) =>
    to.channel === 'email' && user.email && needsBothAddresses(deps, user)
      ? [to, { channel: 'email', value: user.email, share }]
      : [to],
  )

interface EmailChangeOrder {
  context: MailContext
  pkce?: Pkce | undefined
  messageId?: string | undefined
  /** Session that requests the change; null: none. */
  sessionId: string | null
  /** Pretended: the address belongs to another account, which no answer may reveal. */
  delivery?: 'real' | 'pretended'
}

/** Asks the new address to confirm the change and, if changes are secured, the current one. Drops an earlier change. */
export async function sendEmailChange(
  deps: LinkMailDeps,
  trx: Transaction<DB>,
  user: User,
  newEmail: string,
  { context, pkce, messageId, sessionId, delivery = 'real' }: EmailChangeOrder,
): Promise<void> {
  await beginEmailChange(deps, trx, user, newEmail, sessionId)
  const mail = { ...context, kind: 'email_change', user, newEmail, pkce, sessionId, delivery } as const
  const toNew = await issueLinkMail(deps, trx, { ...mail, to: newEmail, purpose: 'email_change_new', messageId })
  const toCurrent = needsBothAddresses(deps, user)
    ? await issueLinkMail(deps, trx, { ...mail, to: user.email as string, purpose: 'email_change_current' })
    : undefined
  await queueMails(deps, trx, [toNew, toCurrent])
}

type ChangeMail = Awaited<ReturnType<typeof issueLinkMail>>

/** A hook is asked to send the mails of both addresses at once, as in the reference; a mail server gets one each. */
async function queueMails(deps: LinkMailDeps, trx: Transaction<DB>, mails: readonly ChangeMail[]): Promise<void> {
  const [first, second] = mails.filter((mail) => mail !== undefined) as NewMail<'email_change'>[]
  if (first && second && deps.config.mail.byHook) return void (await queueMessage(deps, trx, { ...first, second }))
  if (first) await queueMessage(deps, trx, first)
  if (second) await queueMessage(deps, trx, second)
}

/**
 * Sends the mails of a pending change again, to the addresses that have not agreed. The change stays as it is: its
 * session, the agreement of the other address, and links and codes that were sent before. Without a challenge in the
 * request the new link has the previous one's.
 */
export async function repeatEmailChange(
  deps: LinkMailDeps,
  trx: Transaction<DB>,
  user: User,
  { address: { value: newEmail }, tokens }: PendingChange,
  { context, pkce, messageId }: Pick<EmailChangeOrder, 'context' | 'pkce'> & { messageId: string },
): Promise<void> {
  const mails: ChangeMail[] = []
  for (const [index, token] of tokens.entries()) {
    const mail = await issueLinkMail(deps, trx, {
      ...{ ...context, kind: 'email_change', user, newEmail, to: token.relates_to, purpose: token.purpose },
      pkce: pkce ?? pkceOf(token),
      sessionId: token.session_id,
      isRepeat: true,
      ...(index === 0 ? { messageId } : {}),
    })
    mails.push(mail)
  }
  await queueMails(deps, trx, mails)
  await setSentAt(trx, user.id, 'email_change_sent_at', deps.now())
}

/** Records the requested address; links and codes for another one are deleted. */
export async function beginEmailChange(
  deps: { now: () => Date },
  trx: Transaction<DB>,
  user: Pick<User, 'id' | 'email_change'>,
  newEmail: string,
  sessionId: string | null,
): Promise<void> {
  if (user.email_change !== newEmail) {
    await deleteOneTimeTokens(trx, user.id, ['email_change_new', 'email_change_current'])
  }
  await requestEmailChange(trx, user.id, { email: newEmail, sessionId }, deps.now())
}

/** Whether a change waits for two confirmations: an unconfirmed current address need not agree. */
export const needsBothAddresses = (
  { config: { mail } }: { config: Pick<Config, 'mail'> },
  user: Pick<User, 'email' | 'email_confirmed_at'>,
): boolean => mail.secureEmailChange && !mail.autoconfirm && Boolean(user.email && user.email_confirmed_at)

/** Sends a code to the new number, which stays pending until the user enters it. */
export async function sendPhoneChange(
  deps: LinkMailDeps & { config: Pick<Config, 'sms'> },
  trx: Transaction<DB>,
  user: User,
  newPhone: string,
  order: { channel: SmsChannel; sessionId: string | null; messageId?: string; isRepeat?: boolean },
): Promise<void> {
  await requestPhoneChange(trx, user.id, { phone: newPhone, sessionId: order.sessionId }, deps.now())
  await sendCodeSms(deps, trx, { user, to: newPhone, purpose: 'phone_change', ...order })
}
