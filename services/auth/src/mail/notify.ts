import type { Transaction } from 'kysely'
import type { Config } from '../config.ts'
import type { DB, Metadata } from '../db/tables.ts'
import type { NOTIFICATION_KINDS } from './kinds.ts'
import { type OutboxDeps, queueMail } from './outbox.ts'

export interface NotifyDeps extends OutboxDeps {
  config: Config
}

/** How long a notification is worth sending; it carries nothing that expires. */
const LIFETIME_SECONDS = 7 * 86_400

/**
 * Tells a user by mail of a change to their account, where the setting of the kind wants it and there is an address. It
 * goes out with the change: both are committed or neither.
 */
export async function notify(
  deps: NotifyDeps,
  trx: Transaction<DB>,
  user: { id: string; email: string | null; user_metadata: Metadata },
  kind: keyof typeof NOTIFICATION_KINDS,
  variables: Record<string, string> = {},
  to = user.email,
): Promise<void> {
  if (!to || !deps.config.mail.notifications[kind]) return
  await queueMail(deps, trx, {
    kind,
    userId: user.id,
    to,
    lifetimeSeconds: LIFETIME_SECONDS,
    variables: { SiteURL: deps.config.siteUrl, Email: user.email ?? '', Data: user.user_metadata, ...variables },
  })
}
