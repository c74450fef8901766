import type { Transaction } from 'kysely'
import type { Pkce } from '../auth-codes/pkce.ts'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import type { SmsChannel } from '../sms/gateway.ts'
import { requestEmailChange, requestPhoneChange, type User } from '../users/users.store.ts'
import { sendCodeSms } from './code-sms.ts'
import { type MailContext, sendLinkMail } from './link-mail.ts'

export interface EmailChangeOrder {
  context: MailContext
  pkce?: Pkce | undefined
  messageId?: string | undefined
}

/**
 * Asks the new address to agree and, where changes are secured, the current one too. The address stays as it is until
 * they have (../verify/); a change asked for before is forgotten.
 */
export async function sendEmailChange(
  deps: Deps,
  trx: Transaction<DB>,
  user: User,
  newEmail: string,
  { context, pkce, messageId }: EmailChangeOrder,
): Promise<void> {
  await requestEmailChange(trx, user.id, newEmail, deps.now())
  const mail = { ...context, kind: 'email_change', user, newEmail, pkce } as const
  await sendLinkMail(deps, trx, { ...mail, to: newEmail, purpose: 'email_change_new', messageId })
  if (needsBothAddresses(deps, user)) {
    await sendLinkMail(deps, trx, { ...mail, to: user.email as string, purpose: 'email_change_current' })
  }
}

/** Whether a change of address waits for two confirmations. */
export const needsBothAddresses = (
  { config: { mail } }: { config: Deps['config'] },
  user: { email: string | null },
): boolean => mail.secureEmailChange && !mail.autoconfirm && Boolean(user.email)

/** Sends a code to the new number, which stays pending until it is typed in. */
export async function sendPhoneChange(
  deps: Deps,
  trx: Transaction<DB>,
  user: User,
  newPhone: string,
  channel: SmsChannel,
  messageId?: string,
): Promise<void> {
  await requestPhoneChange(trx, user.id, newPhone, deps.now())
  await sendCodeSms(deps, trx, { user, to: newPhone, purpose: 'phone_change', channel, messageId })
}
