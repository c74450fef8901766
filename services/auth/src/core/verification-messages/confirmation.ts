import type { Transaction } from 'kysely'
import type { PasswordState } from '../../adapters/mail/kinds.ts'
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import type { Config } from '../../config.ts'
import type { DB, Metadata } from '../../db/tables.ts'
import type { Pkce } from '../one-time-tokens/pkce.ts'
import type { Address } from '../users/address.ts'
import { type LockedAccount, setSentAt, touchUser, type User } from '../users/users.store.ts'
import { sendCodeSms } from './code-message.ts'
import { type AccountToLink, type LinkMailDeps, type MailContext, sendLinkMail } from './link-mail.ts'

export interface ConfirmationOrder {
  address: Address
  context: MailContext
  pkce?: Pkce | undefined
  smsChannel?: SmsChannel | undefined
  /** The request was recorded as a claim (../users/address-claims.ts). */
  isClaim?: boolean
  /** A sign-up: it named a password, which other claims may have voided. */
  isSignUp?: boolean
  /** A first sign-in with an account at a provider that has not verified the address. */
  external?: AccountToLink
  messageId?: string | undefined
}

/**
 * Sends a pending `account` a link or code. A confirmed one takes the same work, to reveal nothing, but gets no
 * message. Its owner learns of a sign-up, or of a first sign-in at a provider, where that is enabled.
 */
export async function sendConfirmation(
  deps: LinkMailDeps & { config: Pick<Config, 'sms'> },
  trx: Transaction<DB>,
  account: LockedAccount,
  order: ConfirmationOrder,
): Promise<{ isPending: boolean }> {
  const { address, isClaim, isSignUp, external } = order
  const { accountExists } = address.channel === 'email' ? deps.config.mail : deps.config.sms
  const isPending = isUnconfirmed(account, address)
  const user = { ...account, user_metadata: ownData(account, address) }
  const message = {
    user,
    to: address.value,
    delivery: isPending ? 'real' : (isSignUp || external) && accountExists ? 'notice' : 'pretended',
    messageId: order.messageId,
    isClaim: isClaim === true && isPending,
  } as const
  if (address.channel === 'email') {
    await sendLinkMail(deps, trx, {
      ...message,
      ...order.context,
      // An invited user is invited again: the link must not turn into one that demands a password.
      kind: account.invited_at ? 'invite' : 'confirmation',
      pkce: order.pkce,
      password: passwordState(account, order),
      // An invitation names no provider, so its link links none.
      external: account.invited_at ? undefined : external,
    })
  } else {
    await sendCodeSms(deps, trx, { ...message, purpose: 'phone_confirmation', channel: order.smsChannel ?? 'sms' })
  }
  if (isPending) await setSentAt(trx, account.id, 'confirmation_sent_at', deps.now())
  else await touchUser(trx, account.id, account.updated_at)
  return { isPending }
}

/** Data for the owner of the address: of the request's own claim, and none that a registrant chose. */
function ownData({ claim, ...account }: LockedAccount, { channel }: Address): Metadata {
  if (claim) return claim.data
  return account[`${channel}_assumed`] ? {} : account.user_metadata
}

function passwordState({ claim, password_hash }: LockedAccount, { isSignUp }: ConfirmationOrder): PasswordState {
  if (claim ? claim.password_hash : password_hash) return 'chosen'
  return isSignUp ? 'dropped' : ''
}

export const isUnconfirmed = (user: User, { channel, value }: Address): boolean =>
  user[channel] === value && !user[`${channel}_confirmed_at`]
