import type { Transaction } from 'kysely'
import type { Pkce } from '../auth-codes/pkce.ts'
import type { Config } from '../config.ts'
import type { DB } from '../db/tables.ts'
import type { SmsChannel } from '../sms/gateway.ts'
import type { Address } from '../users/address.ts'
import { setSentAt, touchUser, type User } from '../users/users.store.ts'
import { sendCodeSms } from './code-sms.ts'
import { type LinkMailDeps, type MailContext, sendLinkMail } from './link-mail.ts'

/** What a confirmation takes over from the request that caused it. */
export interface ConfirmationOrder {
  address: Address
  context: MailContext
  pkce?: Pkce | undefined
  smsChannel?: SmsChannel | undefined
  /** Becomes the user's with the confirmation, whoever registered the address before; null: none. */
  passwordHash?: string | null | undefined
  messageId?: string | undefined
}

type ConfirmationDeps = LinkMailDeps & { config: Pick<Config, 'sms'> }

/**
 * Sends the link or code that confirms a pending `holder`. For a confirmed one the same work is done and no message
 * leaves, so that neither answer nor time tells which of both it was.
 */
export async function sendConfirmation(
  deps: ConfirmationDeps,
  trx: Transaction<DB>,
  holder: User,
  order: ConfirmationOrder,
): Promise<{ isPending: boolean }> {
  const { address, passwordHash } = order
  const isPending = isUnconfirmed(holder, address)
  const message = {
    user: holder,
    to: address.value,
    isPretended: !isPending,
    messageId: order.messageId,
    password: passwordHash === undefined || !isPending ? undefined : { hash: passwordHash },
  }
  if (address.channel === 'email') {
    // Who was invited is invited again, whoever asks: their link must not turn into one that demands a password, nor set a
    // password that somebody else chose.
    const invitation = holder.invited_at ? ({ kind: 'invite', password: { hash: null } } as const) : undefined
    await sendLinkMail(deps, trx, {
      ...message,
      ...order.context,
      kind: 'confirmation',
      pkce: order.pkce,
      ...invitation,
    })
  } else {
    await sendCodeSms(deps, trx, { ...message, purpose: 'phone_confirmation', channel: order.smsChannel ?? 'sms' })
  }
  if (isPending) await setSentAt(trx, holder.id, 'confirmation_sent_at', deps.now())
  else await touchUser(trx, holder.id, holder.updated_at)
  return { isPending }
}

/** Whether the address is the account's own, not one it has through an identity, and not proven yet. */
export const isUnconfirmed = (user: User, { channel, value }: Address): boolean =>
  user[channel] === value && !user[`${channel}_confirmed_at`]
