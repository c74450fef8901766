// The work of a message request for an address without an account, which must cost as much as for one with an account.
// Each statement for an account has one here that finds nothing or writes a row of the same weight; housekeeping
// deletes it.
import type { Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import { writeDecoys } from '../../db/decoy-rows.store.ts'
import type { DB } from '../../db/tables.ts'
import type { AuditLog } from '../audit/audit.ts'
import type { User } from '../users/users.store.ts'
import { sendCodeSms } from './code-message.ts'
import { type LinkMailDeps, sendLinkMail } from './link-mail.ts'
import type { MessageRequest } from './message-request.ts'

export async function pretendMessage(
  deps: LinkMailDeps & { config: Pick<Config, 'auditInDatabase' | 'sms'> },
  trx: Transaction<DB>,
  log: AuditLog,
  user: User,
  kind: 'recovery' | 'magic_link' | 'confirmation',
  { address, context, pkce, smsChannel = 'sms', messageId }: MessageRequest,
): Promise<void> {
  log.info({ kind }, 'message not sent, only pretended: no account has the address, or it gets no message')
  if (deps.config.auditInDatabase) await writeDecoys(trx, [`audit ${address.value}`], deps.now())
  const message = { user, to: address.value, messageId, delivery: 'decoy' as const }
  if (address.channel === 'email') await sendLinkMail(deps, trx, { ...message, ...context, kind, pkce })
  else await sendCodeSms(deps, trx, { ...message, purpose: 'phone_confirmation', channel: smsChannel })
  await writeDecoys(trx, [`sent ${address.value}`], deps.now())
}
