import type { Transaction } from 'kysely'
import { isAuthorizedAddress } from '../../adapters/mail/authorized-addresses.ts'
import type { MailVariables, NOTIFICATION_KINDS } from '../../adapters/mail/kinds.ts'
import { pickLocale } from '../../adapters/mail/locale.ts'
import { hasMailServer } from '../../adapters/mail/smtp.ts'
import type { Config } from '../../config.ts'
import type { DB, Metadata } from '../../db/tables.ts'
import type { OutboxDeps } from './outbox.ts'
import { type NewMail, queueMail } from './queue-mail.ts'

export interface NotifyDeps extends OutboxDeps {
  config: Pick<Config, 'mail' | 'siteUrl' | 'smtp'>
}

type Kind = keyof typeof NOTIFICATION_KINDS
/** What a kind tells beside what all of them do. */
type Details<K extends Kind> = Omit<MailVariables[K], 'SiteURL' | 'Email' | 'Data'>

/**
 * Tells a user by mail of a change to their account, where the setting of the kind wants it and there are a mail server and
 * an address that mail may go to. It goes out with the change: both are committed or neither. `acceptLanguage`: of the
 * request that changes it; `to`: another address than the user's own; `always`: whatever the setting says.
 */
export async function notify<K extends Kind>(
  deps: NotifyDeps,
  trx: Transaction<DB>,
  user: { id: string; email: string | null; user_metadata: Metadata },
  kind: K,
  details: Details<K>,
  {
    acceptLanguage,
    to = user.email,
    always = false,
  }: { acceptLanguage: string | undefined; to?: string | null; always?: boolean },
): Promise<void> {
  const { mail, siteUrl, smtp } = deps.config
  if (!to || !(always || mail.notifications[kind]) || !hasMailServer(smtp) || !isAuthorizedAddress(mail, to)) return
  const variables = { SiteURL: siteUrl, Email: user.email ?? '', Data: user.user_metadata, ...details }
  const locale = pickLocale(mail, { metadata: user.user_metadata, acceptLanguage })
  await queueMail(deps, trx, {
    kind,
    userId: user.id,
    to,
    lifetimeSeconds: null,
    variables,
    locale,
  } as unknown as NewMail)
}

/** Tells of a new number: that it changed, where there was one, and that it is a new way to sign in, where there was none. */
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
