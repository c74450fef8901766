import { pickLocale } from '@services/common/pages/locale'
import type { Transaction } from 'kysely'
import { isAuthorizedAddress } from '../../adapters/mail/authorized-addresses.ts'
import type { MailDetails, NOTIFICATION_KINDS } from '../../adapters/mail/kinds.ts'
import { canSendMail } from '../../adapters/mail/smtp.ts'
import { testCodeOf } from '../../adapters/test-codes.ts'
import type { Config } from '../../config.ts'
import type { DB, Metadata } from '../../db/tables.ts'
import { type NewMail, type OutboxDeps, queueMessage } from './outbox.ts'

export interface NotifyDeps extends OutboxDeps {
  config: Pick<Config, 'mail' | 'siteUrl' | 'smtp'>
}

/** Whether notices to an address are sent: not where nothing sends mail, or the address may not get any. */
export const getsNotices = (
  { config, now }: Pick<NotifyDeps, 'config' | 'now'>,
  to: string | null | undefined,
): to is string =>
  Boolean(to) &&
  !testCodeOf(config.mail.testAddresses, to as string, now()) &&
  canSendMail(config) &&
  isAuthorizedAddress(config.mail, to as string)

/**
 * Notifies in the change's transaction if the kind is enabled (or `always`) and `to`, else the user, can get mail. A
 * user without `id` is deleted by the transaction, and the message outlives it.
 */
export async function notify<Kind extends keyof typeof NOTIFICATION_KINDS>(
  deps: NotifyDeps,
  trx: Transaction<DB>,
  user: { id: string | null; email: string | null; user_metadata: Metadata },
  kind: Kind,
  details: MailDetails[Kind],
  {
    acceptLanguage,
    to = user.email,
    always = false,
  }: { acceptLanguage: string | undefined; to?: string | null; always?: boolean },
): Promise<void> {
  const { mail, siteUrl } = deps.config
  if (!(always || mail.notifications[kind]) || !getsNotices(deps, to)) return
  const variables = { SiteURL: siteUrl, Email: user.email ?? '', Data: user.user_metadata, ...details }
  const locale = pickLocale(mail, { metadata: user.user_metadata, acceptLanguage })
  const notice: NewMail<Kind> = { channel: 'mail', kind, userId: user.id, to, lifetimeSeconds: null, variables, locale }
  await queueMessage(deps, trx, notice)
}

/** Notifies of a new number: that it replaced another one, or that it is a new way to sign in. */
export async function notifyPhoneChange(
  deps: NotifyDeps,
  trx: Transaction<DB>,
  before: { id: string; email: string | null; phone: string | null; user_metadata: Metadata },
  phone: string,
  isNewIdentity: boolean,
  acceptLanguage: string | undefined,
): Promise<void> {
  const from = { acceptLanguage }
  if (before.phone && before.phone !== phone) {
    await notify(deps, trx, before, 'phone_changed_notification', { Phone: phone, OldPhone: before.phone }, from)
  }
  if (isNewIdentity) await notify(deps, trx, before, 'identity_linked_notification', { Provider: 'phone' }, from)
}
