// Mails as administrators see them: which template each kind has, how it looks with made-up values, and a sample to the
// own address. Routes: mail-templates.routes.ts.
import { ConfigError } from '@services/common/config/variables'
import { isAuthorizedAddress } from '../../../adapters/mail/authorized-addresses.ts'
import { SAMPLE_VARIABLES } from '../../../adapters/mail/check-template.ts'
import { ALL_KINDS, type MailKind, NOTIFICATION_KINDS } from '../../../adapters/mail/kinds.ts'
import { type MailTemplates, openMailTemplates } from '../../../adapters/mail/mail-templates.ts'
import { canSendMail } from '../../../adapters/mail/smtp.ts'
import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { type NewMail, queueMessage } from '../../../core/outbox/outbox.ts'
import { provenUser } from '../../../core/users/proven-addresses.ts'
import { findUserById } from '../../../core/users/users.store.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'

export interface Sample {
  kind: MailKind
  language: string
}

/** Opens the templates of this process at first use: without a worker it may lack their files. */
export function lazyTemplates(deps: Pick<Deps, 'config' | 'log' | 'now'>): () => MailTemplates {
  let opened: MailTemplates | undefined
  return () => {
    try {
      opened ??= openMailTemplates(deps)
      return opened
    } catch (cause) {
      if (!(cause instanceof ConfigError)) throw cause
      throw apiError('validation_failed', { status: 422, message: cause.problems.join('; '), cause })
    }
  }
}

/** Lists the kinds of mails. Those of sign-in are sent on request, so they have no switch of their own. */
export function listTemplates({ mail }: Deps['config'], templates: MailTemplates) {
  return {
    default_language: mail.defaultLocale,
    languages: mail.locales,
    sent_by: mail.byHook ? 'hook' : 'mail_server',
    templates: ALL_KINDS.map((kind) => ({
      kind,
      enabled: isSwitched(kind) ? mail.notifications[kind] === true : kind !== 'account_exists' || mail.accountExists,
      source: templates.sourceOf(kind),
      own_subject: mail.subjects[kind] !== undefined,
    })),
  }
}

const isSwitched = (kind: MailKind) => Object.hasOwn(NOTIFICATION_KINDS, kind)

export const previewMail = (templates: MailTemplates, { kind, language }: Sample) =>
  templates.render(kind, language, SAMPLE_VARIABLES[kind])

/**
 * Queues a sample to the confirmed address of the administrator who asks, and returns the id of the message. Its link
 * and code open nothing.
 */
export async function sendSample(deps: Deps, log: AuditLog, actor: Actor, { kind, language }: Sample): Promise<string> {
  const { config, db, limits } = deps
  if (config.mail.byHook) throw refused('The send-email hook sends the mails: no template is used')
  if (!canSendMail(config)) throw refused('No mail server is configured')
  const user = await findUserById(db, actor.id)
  const to = user && provenUser(user).email
  if (!to) throw refused('A sample goes to the confirmed address of the administrator, and this one has none')
  if (!isAuthorizedAddress(config.mail, to)) throw apiError('email_address_not_authorized')
  await limits.sampleSent(actor.id)
  const sample = {
    ...{ channel: 'mail', kind, userId: actor.id, to, locale: language, lifetimeSeconds: null },
    variables: SAMPLE_VARIABLES[kind],
  } as NewMail
  return db.transaction().execute(async (trx) => {
    const messageId = await queueMessage(deps, trx, sample)
    await audit(deps, trx, log, { action: 'mail_sample_sent', actor, traits: { kind, message_id: messageId } })
    return messageId
  })
}

const refused = (message: string) => apiError('validation_failed', { status: 422, message })
